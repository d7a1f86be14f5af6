"""The command line, as a user meets it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recrawl.cli.app import app
from recrawl.cli.init import EXAMPLE
from recrawl.cli.surface import safe
from recrawl.declare.load import load
from recrawl.demo.server import Reply, Server
from recrawl.demo.site import DemoSite
from recrawl.run.progress import LOOKED_AT

DECLARATION = """
from recrawl import Feed, Price, Record, Sitemap, Source, Stock, css

class Product(Record, table="products", key="sku"):
    sku: str = css(".sku::text")
    name: str = css("h1.name::text")
    price: Price | None = css(".price::text")
    stock: Stock = css(".stock::text")

shop = Source("shop", find=Sitemap("{base}/sitemaps/shop.xml", match=r"/shop/"), read=Product, page_id="sku",
              currency="CNY", forced_looks=0.0)
news = Source("news", find=[Sitemap("{base}/sitemaps/news.xml", match=r"/news/"), Feed("{base}/feed.xml")],
              zone="Asia/Shanghai", forced_looks=0.0)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECRAWL_STORE", raising=False)
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")


def run(*arguments: str) -> Result:
    """The command line within this process."""
    return CliRunner().invoke(app, list(arguments))


def as_plain_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which may not write where the mode of a file forbids it."""
    command = [sys.executable, "-m", "recrawl", *arguments]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write anywhere, and setpriv is not here to take that right away")
        command = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """A database of the demo site's first two days, and what `sync --json` said on each."""
    folder = tmp_path_factory.mktemp("synced")
    declared = folder / "shops.py"
    store = folder / "recrawl.db"
    said = []
    with DemoSite() as site:
        declared.write_text(DECLARATION.replace("{base}", site.url))
        for day in (1, 2):
            site.step(day)
            said.append(run("sync", str(declared), "--store", str(store), "--json"))
    return store, said


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[str, Mapping[str, str]], Reply]], str]]:
    """Starts a small server for a function; its address."""
    servers = []

    def start(answer: Callable[[str, Mapping[str, str]], Reply]) -> str:
        server = Server(answer)
        server.start()
        servers.append(server)
        return server.url

    yield start
    for server in servers:
        server.stop()


def test_two_syncs_look_at_what_changed_and_their_summaries_add_up(synced: tuple[Path, list[Result]]) -> None:
    first, second = (json.loads(result.stdout)["sources"] for result in synced[1])
    for source in [*first, *second]:
        counts = source["counts"]
        assert counts["looked_at"] == sum(counts[name] for name in LOOKED_AT)
        assert counts["waiting"] == 0
        assert source["complete"]
    shop, news = second
    assert first[0]["counts"]["new"] == 55
    assert (shop["counts"]["new"], shop["counts"]["changed"]) == (1, 6)
    assert (news["counts"]["new"], news["counts"]["changed"]) == (2, 3)
    assert news["counts"]["unchanged_hint"] > 40


def test_a_sync_that_ends_with_dead_letters_exits_with_3(synced: tuple[Path, list[Result]]) -> None:
    assert [result.exit_code for result in synced[1]] == [3, 3]


def test_status_groups_dead_letters_and_says_what_to_do(synced: tuple[Path, list[Result]]) -> None:
    result = run("status", "--store", str(synced[0]))
    assert result.exit_code == 0
    assert "1 x judge:quarantined" in result.stdout
    assert "/login" in result.stdout
    assert "->" in result.stdout
    told = json.loads(run("status", "shop", "--store", str(synced[0]), "--json").stdout)
    (shop,) = told["sources"]
    assert shop["records"] == {"products": {"live": 56, "deleted": 0}}
    assert shop["run"]["state"] == "failures"
    assert shop["needs_attention"]


def test_status_with_check_asks_for_health_and_not_for_dead_letters(synced: tuple[Path, list[Result]]) -> None:
    result = run("status", "--check", "--store", str(synced[0]))
    assert (result.exit_code, result.stdout) == (0, "All is well.\n")


def test_status_of_an_unknown_source_names_those_that_are_there(synced: tuple[Path, list[Result]]) -> None:
    result = run("status", "shpo", "--store", str(synced[0]))
    assert result.exit_code == 2
    assert "Did you mean 'shop'" in result.stderr


def test_reading_a_database_that_is_not_there_creates_none(tmp_path: Path) -> None:
    for command in (["status"], ["show", "x"], ["diff", "x"], ["export", "pages"], ["db", "check"]):
        result = run(*command)
        assert result.exit_code == 1, command
        assert "there is no database" in result.stderr
        assert "recrawl sync" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_show_finds_a_page_by_id_by_url_and_by_an_address_it_had(synced: tuple[Path, list[Result]]) -> None:
    by_id = json.loads(run("show", "HB-1001", "--store", str(synced[0]), "--json").stdout)
    url = by_id["page"]["url"]
    by_url = json.loads(run("show", url + "?utm_source=x", "--store", str(synced[0]), "--json").stdout)
    assert by_id == by_url
    assert [version["kind"] for version in by_id["versions"]] == ["created", "updated"]
    assert by_id["records"][0]["data"]["price_amount"] == "44.99"


def test_show_of_an_older_version_shows_its_records(synced: tuple[Path, list[Result]]) -> None:
    result = run("show", "HB-1001", "--version", "1", "--store", str(synced[0]))
    assert "49.99" in result.stdout
    assert run("show", "HB-1001", "--version", "9", "--store", str(synced[0])).exit_code == 2


def test_show_body_writes_the_bytes_that_came(synced: tuple[Path, list[Result]]) -> None:
    result = run("show", "HB-1001", "--body", "--store", str(synced[0]))
    assert result.stdout_bytes.startswith(b"<!DOCTYPE html>")
    assert b"$44.99" in result.stdout_bytes


def test_show_body_of_a_page_that_never_read_well_is_what_came_instead(synced: tuple[Path, list[Result]]) -> None:
    letters = run("export", "dead_letters", "--format", "jsonl", "--source", "news", "--store", str(synced[0]))
    url = json.loads(letters.stdout.splitlines()[0])["url"]
    assert b"<form" in run("show", url, "--body", "--store", str(synced[0])).stdout_bytes


def test_a_page_that_is_not_known_is_an_error_of_one_sentence(synced: tuple[Path, list[Result]]) -> None:
    result = run("show", "https://nowhere.example/", "--store", str(synced[0]))
    assert result.exit_code == 1
    assert result.stderr.startswith("recrawl: no page 'https://nowhere.example/' is known")


def test_diff_tells_each_field_that_changed(synced: tuple[Path, list[Result]]) -> None:
    result = run("diff", "HB-1001", "--store", str(synced[0]))
    assert "- 49.99" in result.stdout
    assert "+ 44.99" in result.stdout
    (told,) = json.loads(run("diff", "HB-1001", "--store", str(synced[0]), "--json").stdout)["differences"]
    assert (told["field"], told["before"], told["after"]) == ("price_amount", "49.99", "44.99")


def test_diff_of_a_long_text_shows_the_lines_that_changed(synced: tuple[Path, list[Result]]) -> None:
    pages = run("export", "pages", "--format", "jsonl", "--source", "news", "--store", str(synced[0])).stdout
    (url,) = [page["url"] for page in map(json.loads, pages.splitlines()) if "1005-storm-drains" in page["url"]]
    shown = run("diff", url, "--store", str(synced[0])).stdout
    removed = [line for line in shown.splitlines() if line.strip().startswith("-")]
    assert any("two thirds" in line for line in removed)
    assert "three quarters" in shown


def test_diff_of_a_page_with_one_version_says_so(synced: tuple[Path, list[Result]]) -> None:
    result = run("diff", "HB-1005", "--store", str(synced[0]))
    assert result.exit_code == 1
    assert "one version only" in result.stderr


def test_export_writes_csv_that_excel_reads(synced: tuple[Path, list[Result]], tmp_path: Path) -> None:
    out = tmp_path / "products.csv"
    result = run("export", "products", "--excel", "--out", str(out), "--store", str(synced[0]), "--json")
    assert json.loads(result.stdout)["rows"] == 56
    data = out.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf_source,sku,name,price_amount")
    assert "手冲咖啡壶".encode() in data
    assert [path.name for path in tmp_path.iterdir()] == ["products.csv"]


def test_export_to_parquet_keeps_the_types_of_columns(synced: tuple[Path, list[Result]], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    out = tmp_path / "a.parquet"
    assert run("export", "articles", "--format", "parquet", "--out", str(out), "--store", str(synced[0])).exit_code == 0
    schema = {field.name: str(field.type) for field in parquet.read_schema(out)}
    assert schema["published"] == "timestamp[us, tz=UTC]"
    assert schema["_version"] == "int64"
    assert schema["text"] == "string"
    assert run("export", "products", "--format", "parquet", "--out", str(out), "--store", str(synced[0])).exit_code == 0
    prices = parquet.read_table(out).to_pydict()["price_amount"]
    assert 44.99 in prices
    assert None in prices or all(isinstance(price, float) for price in prices)


@pytest.mark.parametrize("table", ["pages", "versions", "events", "dead_letters"])
def test_each_table_of_our_own_is_exported_by_source(synced: tuple[Path, list[Result]], table: str) -> None:
    result = run("export", table, "--format", "jsonl", "--source", "shop", "--store", str(synced[0]))
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows
    assert {row["source"] for row in rows} == {"shop"}


def test_export_of_an_unknown_table_names_those_that_are_there(synced: tuple[Path, list[Result]]) -> None:
    result = run("export", "product", "--store", str(synced[0]))
    assert result.exit_code == 2
    assert "Did you mean 'products'" in result.stderr


def test_an_export_that_fails_leaves_no_file(synced: tuple[Path, list[Result]], tmp_path: Path) -> None:
    assert run("export", "product", "--out", "x.csv", "--store", str(synced[0])).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_host_could_not_be_synced() -> None:
    result = run("sync", "http://no-such-host.invalid/")
    assert result.exit_code == 1
    assert "does not resolve" in result.stdout
    assert "typo" in result.stdout


def test_a_refused_connection_could_not_be_synced() -> None:
    result = run("sync", "http://127.0.0.1:1/", "--json")
    assert result.exit_code == 1
    (source,) = json.loads(result.stdout)["sources"]
    assert source["ending"] == "nothing"
    (trouble,) = source["troubles"]
    assert (trouble["kind"], bool(trouble["next"])) == ("refused", True)


def test_a_site_whose_robots_txt_fails_is_left_alone(serve: Callable[..., str]) -> None:
    asked = []

    def answer(target: str, _: Mapping[str, str]) -> Reply:
        asked.append(target)
        return Reply(500, b"broken")

    result = run("sync", serve(answer))
    assert result.exit_code == 1
    assert "robots.txt answers 500" in result.stdout
    assert set(asked) == {"/robots.txt"}


def test_html_where_a_sitemap_should_be_is_told_with_its_address(serve: Callable[..., str], tmp_path: Path) -> None:
    def answer(target: str, _: Mapping[str, str]) -> Reply:
        if target == "/robots.txt":
            return Reply(404)
        return Reply(200, b"<!DOCTYPE html><html><body>Hello</body></html>", {"Content-Type": "text/html"})

    url = serve(answer)
    (tmp_path / "recrawl.toml").write_text(f'[source.site]\nfind = {{ sitemap = "{url}/sitemap.xml" }}\n')
    result = run("sync", "site")
    assert result.exit_code == 1
    assert f"{url}/sitemap.xml cannot be read" in result.stdout
    assert "no_document" in run("status").stdout


def test_a_misspelt_name_in_a_declaration_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "recrawl.toml").write_text(
        '[source.site]\nfind = { sitemap = "https://a.example/s.xml", mach = "x" }\n'
    )
    result = run("sync")
    assert result.exit_code == 2
    assert "'mach' is not known here" in result.stderr
    assert "source.site.find" in result.stderr
    assert "Did you mean 'match'" in result.stderr
    (tmp_path / "d.py").write_text(
        "from recrawl import Source, Urls\nx = Source('x', find=Urls(['http://a.example']), rad=1)\n"
    )
    result = run("sync", "d.py", "--json")
    assert result.exit_code == 2
    assert "d.py, line 2" in json.loads(result.stderr)["place"]


def test_an_unknown_source_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "recrawl.toml").write_text('[source.books]\nfind = { urls = ["https://a.example/"] }\n')
    result = run("sync", "boks")
    assert result.exit_code == 2
    assert "Did you mean 'books'" in result.stderr


def test_a_host_without_scheme_is_answered_with_the_url_to_write() -> None:
    result = run("sync", "site.example")
    assert result.exit_code == 2
    assert "https://site.example" in result.stderr


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(b"my notes, " * 100)
    for command in (["status"], ["sync", "http://127.0.0.1:1/"], ["db", "upgrade"]):
        result = run(*command, "--store", str(path))
        assert result.exit_code == 1
        assert "not a SQLite database" in result.stderr
    assert path.read_bytes() == b"my notes, " * 100


def test_a_database_that_may_not_be_written_is_told_without_traceback(
    synced: tuple[Path, list[Result]], tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    shutil.copyfile(synced[0], folder / "recrawl.db")
    (folder / "recrawl.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        store = ["--store", str(folder / "recrawl.db")]
        done = as_plain_user("sync", "http://127.0.0.1:1/", *store)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert "writable" in done.stderr
        done = as_plain_user("doctor", *store)
        assert done.returncode == 1
        assert "fail writable" in done.stdout
    finally:
        folder.chmod(0o755)


def test_wrong_usage_exits_with_2_and_is_json_where_json_is_asked_for() -> None:
    assert run("sync", "--concurency", "3").exit_code == 2
    result = run("sync", "--json", "--concurency", "3")
    assert result.exit_code == 2
    assert "--concurrency" in json.loads(result.stderr)["error"]


def test_an_unexpected_error_is_a_sentence_and_a_place_to_report_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("recrawl.operate.doctor.examine", fail)
    result = run("doctor")
    assert result.exit_code == 1
    assert "ZeroDivisionError: by zero" in result.stderr
    assert "recrawl --debug" in result.stderr
    assert isinstance(run("--debug", "doctor").exception, ZeroDivisionError)


def test_init_writes_an_example_that_loads_and_never_overwrites(tmp_path: Path) -> None:
    assert run("init", "new").exit_code == 0
    written = tmp_path / "new" / "recrawl.toml"
    assert [source.name for source in load(written)] == ["example"]
    written.write_text("mine")
    assert run("init", "new").exit_code == 2
    assert written.read_text() == "mine"


def test_all_that_the_example_only_mentions_loads_too(tmp_path: Path) -> None:
    lines = [line[1:] if line.startswith("#") and line[1:2] != " " else line for line in EXAMPLE.splitlines()]
    text = "\n".join(lines)
    assert tomllib.loads(text)["record"]["Product"]["history"] is True
    (tmp_path / "all.toml").write_text(text)
    (source,) = load(tmp_path / "all.toml")
    assert source.page_fields == ("sku",)


def test_doctor_changes_nothing(tmp_path: Path) -> None:
    result = run("doctor", "--json")
    assert result.exit_code == 0
    names = [check["name"] for check in json.loads(result.stdout)["checks"]]
    assert {"python", "sqlite", "clock", "disk", "writable", "store", "extra postgres"} <= set(names)
    assert list(tmp_path.iterdir()) == []


def test_db_upgrade_makes_the_schema_once() -> None:
    assert json.loads(run("db", "upgrade", "--json").stdout)["changed"] is True
    assert json.loads(run("db", "upgrade", "--json").stdout)["changed"] is False
    assert json.loads(run("db", "check", "--json").stdout)["ok"] is True


def test_the_same_commands_work_on_postgresql(postgres_address: str, tmp_path: Path) -> None:
    with DemoSite() as site:
        (tmp_path / "shops.py").write_text(DECLARATION.replace("{base}", site.url))
        assert run("sync", "shops.py", "--store", postgres_address).exit_code == 3
        site.step(2)
        assert run("sync", "shops.py", "--store", postgres_address).exit_code == 3
    told = json.loads(run("status", "shop", "--store", postgres_address, "--json").stdout)["sources"][0]
    assert told["records"] == {"products": {"live": 56, "deleted": 0}}
    assert "+ 44.99" in run("diff", "HB-1001", "--store", postgres_address).stdout
    assert run("show", "HB-1001", "--store", postgres_address).exit_code == 0
    for table in ("products", "articles", "pages", "versions", "events", "dead_letters"):
        for form in ("csv", "jsonl", "parquet"):
            out = ["--format", form, "--out", f"{table}.{form}", "--store", postgres_address]
            assert run("export", table, *out).exit_code == 0
    assert run("doctor", "--store", postgres_address).exit_code == 0
    assert run("db", "check", "--store", postgres_address).exit_code == 0


def test_the_first_interrupt_ends_in_order_and_the_next_run_goes_on(tmp_path: Path) -> None:
    with DemoSite() as site:
        (tmp_path / "shops.py").write_text(DECLARATION.replace("{base}", site.url).partition("news =")[0])
        command = [sys.executable, "-m", "recrawl", "sync", "shops.py", "--delay", "100ms", "--concurrency", "1"]
        environment = {name: value for name, value in os.environ.items() if name != "RECRAWL_CLOCK"}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, **pipes) as process:
            while len(site.served) < 5:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            said, complained = process.communicate(timeout=30)
        assert process.returncode == 130, complained
        assert "goes on where this one stopped" in said
        assert "Traceback" not in complained
        fetched = {one.target for one in site.served if one.target.startswith("/shop/")}
        again = subprocess.run([*command[:5], "--json"], env=environment, capture_output=True, text=True, check=False)
        done = json.loads(again.stdout)["sources"][0]
        assert done["counts"]["looked_at"] == 55 - len(fetched)


def test_the_demo_holds_what_it_found_against_the_truth(tmp_path: Path) -> None:
    result = run("demo", "--json")
    assert result.exit_code == 0, result.stderr
    days = json.loads(result.stdout)["days"]
    for day in days:
        for truth in day["truth"]:
            assert truth["found"] or truth["kind"] == "removed" or "silent" in truth["how"], truth
    assert run("status", "--store", "demo-data/demo.db").exit_code == 0


def test_the_demo_never_writes_into_a_database_of_someone_else() -> None:
    run("db", "upgrade", "--store", "mine.db")
    result = run("demo", "--store", "mine.db")
    assert result.exit_code == 2
    assert "mine.db" in result.stderr


def test_the_demo_says_which_edit_it_missed() -> None:
    result = run("demo")
    assert "a silent edit" in result.stdout
    assert "did not happen: 0" in result.stdout
    assert "- 1299" in result.stdout
    assert "recrawl status --store demo-data/demo.db" in result.stdout


def test_control_characters_of_a_website_never_reach_the_terminal() -> None:
    assert safe("a\x1b[2Jb\x07\u202ec") == "a\\x1b[2Jb\\x07\\u202ec"


def test_the_program_starts_without_loading_what_it_does_not_need() -> None:
    heavy = ("sqlalchemy", "aiohttp", "lxml")
    code = f"import sys, recrawl, recrawl.cli.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import recrawl

    for name in recrawl.__all__:
        assert getattr(recrawl, name) is not None
    with pytest.raises(AttributeError):
        recrawl.nothing_of_the_kind  # noqa: B018
