"""Declaring sources and records in Python."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.declare import (
    Adaptive,
    Api,
    Article,
    Auto,
    Basic,
    Bearer,
    Count,
    Deletion,
    Derived,
    Feed,
    Identity,
    Keywords,
    Links,
    Listing,
    Moment,
    NextToken,
    Offset,
    Pace,
    Price,
    Record,
    Since,
    Sitemap,
    Source,
    Stock,
    Text,
    Url,
    Urls,
    Volatile,
    css,
    env,
    from_url,
    jmes,
    jsonld,
    meta,
    names,
    xpath,
)
from recrawl.declare.load import load
from recrawl.declare.planned import NOT_YET
from recrawl.declare.specs import FieldSpec, Kind, Selector
from recrawl.errors import Misuse
from tests import typing_examples

HERE = Path(__file__).parent
SITE = "https://site.example/sitemap.xml"


class Book(Record, table="books", key="upc"):
    upc: str = css("td::text")
    title: str | None = css("h1::text")
    tags: list[str] = css(".tag::text", default=[])


def source(**options: Any) -> Source:
    return Source("books", **{"find": Sitemap(SITE), **options})


def declare(folder: Path, text: str, name: str = "shop.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> Misuse:
    with pytest.raises(Misuse) as caught:
        load(declare(folder, text))
    return caught.value


# --- what a file can get wrong: one clear error, with its place ---


def test_a_misspelt_keyword_is_told_with_line_and_the_right_one(tmp_path: Path) -> None:
    text = "from recrawl.declare import *\n\ns = Source('a', find=Urls(['https://a.example/']), pag_id='x')\n"
    error = refusal(tmp_path, text)
    assert "'pag_id'" in error.problem
    assert error.place == f"{tmp_path / 'shop.py'}, line 3"
    assert "Did you mean 'page_id'?" in error.action


@pytest.mark.parametrize(
    ("line", "wrong", "right"),
    [
        ("Sitemap('https://a.example/s.xml', mach='x')", "mach", "match"),
        ("Pace(concurency=1)", "concurency", "concurrency"),
        ("css('p', defualt=1)", "defualt", "default"),
        ("type('X', (Record,), {}, tabel='x')", "tabel", "table"),
    ],
)
def test_a_misspelt_keyword_of_any_name_is_told(tmp_path: Path, line: str, wrong: str, right: str) -> None:
    error = refusal(tmp_path, f"from recrawl.declare import *\n{line}\n")
    assert wrong in error.problem
    assert f"Did you mean {right!r}?" in error.action


def test_an_error_of_the_users_code_is_told_as_file_line_and_message(tmp_path: Path) -> None:
    error = refusal(tmp_path, "def f():\n    return 1 / 0\n\nf()\n")
    assert error.problem == "ZeroDivisionError: division by zero"
    assert error.place.endswith("shop.py, line 2")
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    error = refusal(tmp_path, "x = 1\ny = (\n")
    assert error.problem.startswith("SyntaxError")
    assert error.place.endswith("shop.py, line 2")


def test_a_file_that_exits_ends_nothing(tmp_path: Path) -> None:
    assert "SystemExit" in refusal(tmp_path, "raise SystemExit(3)\n").problem


def test_a_mistake_in_a_record_is_told_with_line_and_field(tmp_path: Path) -> None:
    text = "from recrawl.declare import *\nclass Book(Record, table='b', key='id'):\n    id: str = css('h1[')\n"
    error = refusal(tmp_path, text)
    assert error.place.endswith("shop.py, line 2: record.Book.fields.id")
    assert "'h1['" in error.problem


def test_two_sources_of_one_name_are_refused(tmp_path: Path) -> None:
    text = "from recrawl.declare import *\na = Source('x', find=Auto('https://a.example/'))\n"
    assert "'x'" in refusal(tmp_path, text + "b = Source('x', find=Auto('https://b.example/'))\n").problem
    assert len(load(declare(tmp_path, text + "b = a\n"))) == 1


def test_a_file_without_sources_a_missing_one_and_another_kind_are_refused(tmp_path: Path) -> None:
    assert "no source" in refusal(tmp_path, "x = 1\n").problem
    for path in (tmp_path / "none.py", declare(tmp_path, "", "a.yaml")):
        with pytest.raises(Misuse) as caught:
            load(path)
        assert str(path) in caught.value.place


def test_a_loaded_file_is_no_program_and_can_import_what_stands_beside_it(tmp_path: Path) -> None:
    declare(tmp_path, "URL = 'https://a.example/'\n", "beside_the_shop.py")
    text = (
        "from __future__ import annotations\nfrom beside_the_shop import URL\nfrom recrawl.declare import *\n"
        "class A(Record, table='a', key='id'):\n    id: Volatile[int] | str | None\n"
    )
    good = text.replace("Volatile[int] | str | None", "int") + (
        "s = Source('s', find=Auto(URL), read=A)\nif __name__ == '__main__':\n    raise ValueError\n"
    )
    assert load(declare(tmp_path, good))[0].records[0].fields == (FieldSpec("id", Kind.INT),)
    assert "no type of a field" in refusal(tmp_path, text).problem


def test_the_examples_load() -> None:
    found = {item.name: item for item in load(HERE / "typing_examples.py")}
    assert list(found) == ["books", "news", "items", "shelves"]
    assert found["books"].spec_hash == typing_examples.books.spec_hash
    assert found["shelves"].reader_hash == typing_examples.shelves.reader_hash
    assert [spec.name for spec in found["shelves"].records] == ["Book"]


def test_a_type_checker_accepts_the_examples_and_refuses_misspelt_keywords(tmp_path: Path) -> None:
    examples = (HERE / "typing_examples.py").read_text()
    wrong = examples.replace('page_id="upc"', 'pageid="upc"').replace('table="books", key', 'table="books", kee')
    wrong = wrong.replace("Pace(concurrency=2", "Pace(concurency=2").replace("title=title", "titel=title")
    (tmp_path / "right.py").write_text(examples)
    (tmp_path / "wrong.py").write_text(wrong)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent"]
    config = ["--config-file", str(HERE.parent / "pyproject.toml"), "--cache-dir", str(HERE.parent / ".mypy_cache")]
    files = [str(tmp_path / "right.py"), str(tmp_path / "wrong.py")]
    done = subprocess.run([*command, *config, *files], cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert "right.py" not in done.stdout
    for name in ("pageid", "kee", "concurency", "titel"):
        assert re.search(rf'wrong\.py.*"{name}"', done.stdout), done.stdout + done.stderr


# --- records ---


def bad_records() -> dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]]:
    """Annotations, values and class keywords, and the place that the error must name."""
    good = {"table": "t", "key": "id"}
    one = {"id": int}
    return {
        "no table": (one, {}, {"key": "id"}, "record.X.table"),
        "no key": (one, {}, {"table": "t"}, "record.X.key"),
        "key of no field": (one, {}, {"table": "t", "key": "ID"}, "record.X.key"),
        "optional key": ({"id": int | None}, {}, good, "record.X.key"),
        "volatile key": ({"id": Volatile[int]}, {}, good, "record.X.key"),
        "key of a list": ({"id": list[int]}, {}, good, "record.X.key"),
        "wrong type of an option": (one, {}, {**good, "history": "yes"}, "record.X.history"),
        "updated of no field": (one, {}, {**good, "updated": "at"}, "record.X.updated"),
        "table with a space": (one, {}, {"table": "my table", "key": "id"}, "record.X.table"),
        "table of recrawl": (one, {}, {"table": "Pages", "key": "id"}, "record.X.table"),
        "table like a view": (one, {}, {"table": "a_history", "key": "id"}, "record.X.table"),
        "own column": ({**one, "_source": str}, {}, good, "record.X.fields._source"),
        "unknown type": ({**one, "x": dict}, {}, good, "record.X.fields.x"),
        "two types": ({**one, "x": int | str}, {}, good, "record.X.fields.x"),
        "list of lists": ({**one, "x": list[list[int]]}, {}, good, "record.X.fields.x"),
        "unknown name": ({**one, "x": "Prise"}, {}, good, "record.X.fields.x"),
        "no type": (one, {"x": css("p")}, good, "record.X.fields.x"),
        "shared column": ({**one, "p": Price, "P_amount": int}, {}, good, "record.X.fields.P_amount"),
        "css": ({**one, "x": str}, {"x": css("p >")}, good, "record.X.fields.x"),
        "css pseudo": ({**one, "x": str}, {"x": css("p::first")}, good, "record.X.fields.x"),
        "xpath": ({**one, "x": str}, {"x": xpath("//p[")}, good, "record.X.fields.x"),
        "xpath function": ({**one, "x": str}, {"x": xpath("nothing(//p)")}, good, "record.X.fields.x"),
        "jmes": ({**one, "x": str}, {"x": jmes("a..b")}, good, "record.X.fields.x"),
        "jsonld": ({**one, "x": str}, {"x": jsonld("a..b")}, good, "record.X.fields.x"),
        "no names": ({**one, "x": str}, {"x": names()}, good, "record.X.fields.x"),
        "empty meta": ({**one, "x": str}, {"x": meta(" ")}, good, "record.X.fields.x"),
        "default of another type": ({**one, "x": int}, {"x": css("p", default="1")}, good, "record.X.fields.x"),
        "default true": ({**one, "x": int}, {"x": True}, good, "record.X.fields.x"),
        "default none": ({**one, "x": int}, {"x": None}, good, "record.X.fields.x"),
        "default no list": ({**one, "x": list[int]}, {"x": 1}, good, "record.X.fields.x"),
        "each, css": ({**one, "x": str}, {"x": css("p")}, {**good, "each": "li["}, "record.X.each"),
        "each, jmes": (one, {}, {**good, "each": "li["}, "record.X.each"),
    }


@pytest.mark.parametrize("case", bad_records())
def test_a_record_that_cannot_be_is_refused_with_its_place(case: str) -> None:
    annotations, values, options, place = bad_records()[case]
    with pytest.raises(Misuse) as caught:
        type("X", (Record,), {"__annotations__": annotations, **values}, **options)
    assert caught.value.place == place
    assert caught.value.action


def test_annotations_are_read_whatever_form_they_have() -> None:
    class All(Record, table="all_things", key=("a", "b"), each="li", history=True, updated="e", version="b"):
        a: str = css("p")
        b: int
        c: Price | None
        d: Volatile[Count | None]
        e: Moment
        f: list[str] | None
        g: list[Url]
        h: Text = ""
        i: Stock = css("p", default=Stock.OUT)
        j: Decimal = css("p", default="1.50")
        k: Volatile[float] = 0.5

    spec = All.__spec__
    assert (spec.table, spec.key, spec.each, spec.history) == ("all_things", ("a", "b"), "li", True)
    assert (spec.updated, spec.version, spec.name) == ("e", "b", "All")
    assert spec.fields == (
        FieldSpec("a", Kind.STR, selector=Selector("css", ("p",))),
        FieldSpec("b", Kind.INT),
        FieldSpec("c", Kind.PRICE, optional=True),
        FieldSpec("d", Kind.COUNT, optional=True, volatile=True),
        FieldSpec("e", Kind.MOMENT),
        FieldSpec("f", Kind.STR, optional=True, many=True),
        FieldSpec("g", Kind.URL, many=True),
        FieldSpec("h", Kind.TEXT, has_default=True, default=""),
        FieldSpec("i", Kind.STOCK, selector=Selector("css", ("p",)), has_default=True, default=Stock.OUT),
        FieldSpec("j", Kind.DECIMAL, selector=Selector("css", ("p",)), has_default=True, default=Decimal("1.50")),
        FieldSpec("k", Kind.FLOAT, volatile=True, has_default=True, default=0.5),
    )


def test_a_record_inherits_fields() -> None:
    class Novel(Book, table="novels", key="upc"):
        pages: int

    assert [item.name for item in Novel.__spec__.fields] == ["upc", "title", "tags", "pages"]
    assert Book.__spec__.table == "books"


def test_a_record_made_by_keyword_holds_its_values() -> None:
    book = Book(upc="1")  # type: ignore[call-arg]
    assert (book.upc, book.title, book.tags) == ("1", None, [])
    book.tags.append("x")
    assert Book(upc="1", title=None).tags == []
    assert Book(upc="1", title="A") == Book(upc="1", title="A") != Book(upc="2", title="A")
    assert repr(book) == "Book(upc='1', title=None, tags=['x'])"


def test_a_record_refuses_what_it_has_no_field_for_and_what_is_missing() -> None:
    with pytest.raises(TypeError, match="Did you mean 'title'"):
        Book(upc="1", titel="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="needs a value for 'upc'"):
        Book()  # type: ignore[call-arg]


# --- sources ---


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "x" * 65, "a\n"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(Misuse, match="no name of a source"):
        Source(name, find=Auto("https://a.example/"))


def each_book() -> type[Record]:
    class Many(Record, table="many", key="id", each="li"):
        id: str = css("b")

    return Many


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"find": []}, "find"),
    ({"find": "https://a.example/"}, "find"),
    ({"find": Sitemap("a.example/sitemap.xml")}, "find"),
    ({"find": Sitemap("ftp://a.example/")}, "find"),
    ({"find": Sitemap(SITE, match="(")}, "find.match"),
    ({"find": [Feed("https://a.example/f"), Sitemap(SITE, skip="[")]}, "find[1].skip"),
    ({"find": Sitemap(SITE, exhaustive=1)}, "find.exhaustive"),  # type: ignore[arg-type]
    ({"find": Feed(SITE, exhaustive=True)}, "find.exhaustive"),
    ({"find": Urls([])}, "find.urls"),
    ({"find": [Sitemap(SITE), Sitemap(SITE)]}, "find"),
    ({"read": int}, "read"),
    ({"read": Record}, "read"),
    ({"read": []}, "read"),
    ({"read": [Book, type("Twin", (Book,), {}, table="BOOKS", key="upc")]}, "read"),
    ({"read": Book, "page_id": "ucp"}, "page_id"),
    ({"read": Book, "page_id": ("upc", "nothing")}, "page_id"),
    ({"read": Book, "page_id": "tags"}, "page_id"),
    ({"read": each_book(), "page_id": "id"}, "page_id"),
    ({"page_id": 7}, "page_id"),
    ({"page_id": re.compile(rb"\d")}, "page_id"),
    ({"zone": "Mars/Olympus"}, "zone"),
    ({"zone": "../etc/passwd"}, "zone"),
    ({"currency": "gbp"}, "currency"),
    ({"currency": "pounds"}, "currency"),
    ({"order": "newest"}, "order"),
    ({"order": "updated"}, "order"),
    ({"contract": "evolv"}, "contract"),
    ({"revisit": "6h"}, "revisit"),
    ({"revisit": Adaptive(min="x")}, "revisit.min"),
    ({"revisit": Adaptive(min="2d", max="1d")}, "revisit"),
    ({"pace": Pace(concurrency=0)}, "pace.concurrency"),
    ({"pace": Pace(delay=-1)}, "pace.delay"),
    ({"pace": Pace(delay=timedelta(seconds=-1))}, "pace.delay"),
    ({"deletion": Deletion(confirm_after=0)}, "deletion.confirm_after"),
    ({"deletion": Deletion(max_vanish=20)}, "deletion.max_vanish"),
    ({"deletion": Deletion(suspect_after=True)}, "deletion.suspect_after"),
    ({"identity": Identity(drop=(1,))}, "identity.drop"),  # type: ignore[arg-type]
    ({"identity": Identity(www="yes")}, "identity.www"),  # type: ignore[arg-type]
    ({"forced_looks": 2}, "forced_looks"),
    ({"full_scan": None}, "full_scan"),
    ({"hosts": ["https://cdn.example/"]}, "hosts"),
    ({"hosts": ["a b"]}, "hosts"),
    ({"allow_private": "no"}, "allow_private"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"max_wait": "an hour"}, "max_wait"),
    ({"max_age": float("nan")}, "max_age"),
    ({"find": Listing(SITE)}, "find"),
    ({"find": [Sitemap(SITE), Links(SITE)]}, "find[1]"),
    ({"find": Api(SITE)}, "find.id"),
    ({"find": Api(SITE, id="id", json={})}, "find.method"),
    ({"find": Api(SITE, id="id", params={"a": {}})}, "find.params.a"),
    ({"find": Api(SITE, id="id", headers={"Authorization": "x"})}, "find.headers.Authorization"),
    ({"find": Api(SITE, id="id[", pages=Offset())}, "find.id"),
    ({"find": Api(SITE, id="id", pages=Offset(size=0))}, "find.pages.size"),
    ({"find": Api(SITE, id="id", pages=NextToken("a b"))}, "find.pages.token"),
    ({"find": Api(SITE, link="url", since=Since("since"))}, "find.since"),
    ({"find": Api(SITE, id="id", since=Since("since", overlap="soon"))}, "find.since.overlap"),
    ({"find": Api(SITE, id="id", since=Since("since", missing="ignore"))}, "find.since.missing"),  # type: ignore[arg-type]
    ({"find": Api(SITE, id="id", since=Since("json:a..b"), method="POST")}, "find"),
    ({"auth": "sesame"}, "auth"),
    ({"find": Keywords(["a"])}, "find"),
    ({"find": Derived("a")}, "find"),
]


@pytest.mark.parametrize(("options", "place"), BAD_OPTIONS, ids=lambda value: str(value)[:60])
def test_an_option_that_cannot_be_is_refused_with_its_place(options: dict[str, Any], place: str) -> None:
    with pytest.raises(Misuse) as caught:
        source(**options)
    assert caught.value.place == f"source.books.{place}"
    assert caught.value.action


def test_what_is_not_there_yet_says_so_and_what_to_use_instead() -> None:
    assert {kind.__name__ for kind in NOT_YET} == {"Listing", "Links", "Keywords", "Derived"}
    with pytest.raises(Misuse, match="Keywords is not there yet in this release") as caught:
        source(find=Keywords(SITE))
    assert "Urls(" in caught.value.action


@pytest.mark.parametrize(
    "write",
    [
        lambda: Bearer("sesame"),  # type: ignore[arg-type]
        lambda: Basic("me", "sesame"),  # type: ignore[arg-type]
        lambda: env("sesame=open"),
        lambda: source(auth="sesame"),
        lambda: source(find=Api(SITE, id="id", headers={"X-Api-Key": "sesame"})),
    ],
)
def test_a_secret_in_a_declaration_is_refused_and_not_repeated(write: Callable[[], object]) -> None:
    with pytest.raises(Misuse) as caught:
        write()
    assert "sesame" not in str(caught.value)
    assert caught.value.action


def test_the_secret_itself_is_no_part_of_a_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = [source(auth=Bearer(env("TOKEN")), find=Api(SITE, id="id", params={"key": env("KEY")}))]
    before = declared[0].spec_hash
    monkeypatch.setenv("TOKEN", "sesame")
    again = source(auth=Bearer(env("TOKEN")), find=Api(SITE, id="id", params={"key": env("KEY")}))
    assert again.spec_hash == before
    assert "sesame" not in repr(again)
    assert source(auth=Bearer(env("OTHER"))).spec_hash != source(auth=Bearer(env("TOKEN"))).spec_hash


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(Misuse) as caught:
        source(find=Sitemap("https://me:sesame@a.example/s.xml"))
    assert "sesame" not in str(caught.value)


def test_a_source_has_the_documented_defaults() -> None:
    found = source()
    assert found.records == (Article.__spec__,)
    assert (found.order, found.contract, found.zone, found.currency) == ("observed", "evolve", "UTC", None)
    assert (found.forced_looks, found.full_scan, found.max_attempts, found.max_wait) == (0.01, "7d", 5, "1h")
    assert (found.pace, found.deletion) == (Pace(), Deletion())
    assert (found.finders[0].exhaustive, Feed(SITE).exhaustive, Urls([SITE]).exhaustive) == (True, False, True)
    with pytest.raises(FrozenInstanceError):
        found.zone = "UTC"  # type: ignore[misc]


def test_finders_say_what_is_a_page_and_what_their_stream_is() -> None:
    finder = Sitemap(SITE, match=r"/book/", skip=re.compile(r"\?"))
    assert [finder.wants(f"https://site.example{path}") for path in ("/book/1", "/about", "/book/1?x")] == [
        True,
        False,
        False,
    ]
    assert source(find=finder).finders[0].stream == f"sitemap:{SITE}"
    assert Urls([SITE], name="mine").stream == "mine"


def test_page_ids_come_from_fields_or_from_the_url() -> None:
    assert source(read=Book, page_id="upc").page_fields == ("upc",)
    assert source(read=Book, page_id=["upc", "title"]).page_fields == ("upc", "title")
    by_url = source(page_id=re.compile(r"/a-(\d+)|/b-\w+"))
    urls = ("https://a.example/a-12.html", "https://a.example/b-x", "https://a.example/c")
    assert [by_url.page_id_of_url(url) for url in urls] == ["12", "/b-x", None]
    assert source().page_id_of_url(urls[0]) is None


def test_hosts_of_finders_are_named_by_the_user() -> None:
    found = source(find=[Sitemap("http://127.0.0.1:8000/s.xml"), Feed("https://BÜCHER.example/f")], hosts="CDN.example")
    assert found.named_hosts == {"127.0.0.1", "xn--bcher-kva.example", "cdn.example"}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://Site.example", "site.example"),
        ("http://site.example:80/x?y", "site.example"),
        ("http://localhost:8000/", "localhost:8000"),
        ("http://[::1]:9/", "::1:9"),
    ],
)
def test_a_bare_address_names_its_source(url: str, name: str) -> None:
    found = from_url(url)
    assert found.name == name
    assert found.find == (Auto(url),)


def test_a_long_host_still_names_its_source() -> None:
    one, two = (from_url(f"https://{'a' * 60}.{tail}.example") for tail in ("one", "two"))
    assert len(one.name) <= 64
    assert one.name != two.name


@pytest.mark.parametrize("url", ["site.example", "ftp://site.example", "", "https://", "https://u:p@site.example"])
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(Misuse):
        from_url(url)


# --- hashes ---


def read_one(page: object) -> Iterable[Book]:
    return [Book(upc="1", title=None)]


def read_two(page: object) -> Iterable[Book]:
    return [Book(upc="2", title=None)]


def test_the_reader_hash_follows_what_changes_reading_and_nothing_else() -> None:
    base = source(read=Book, page_id="upc")
    kept = type("Book", (Book,), {}, table="books", key="upc", history=True)
    for same in ({"revisit": Adaptive(min="1d")}, {"find": Auto(SITE)}, {"hosts": ["b.example"]}, {"read": kept}):
        assert source(**{"read": Book, "page_id": "upc", **same}).reader_hash == base.reader_hash
        assert source(**{"read": Book, "page_id": "upc", **same}).spec_hash != base.spec_hash
    others: list[dict[str, Any]] = [{"zone": "Asia/Tokyo"}, {"currency": "EUR"}, {"page_id": None}, {"read": Article}]
    for other in others:
        options: dict[str, Any] = {"read": Book, "page_id": None if other.get("read") else "upc", **other}
        assert source(**options).reader_hash != base.reader_hash
    assert source(read=read_one).reader_hash != source(read=read_two).reader_hash


def test_one_span_written_in_two_ways_is_one_declaration() -> None:
    written = [source(max_wait=span).spec_hash for span in ("1h", "60m", 3600, timedelta(hours=1))]
    assert len(set(written)) == 1
    assert source(page_id="url").spec_hash != source(page_id=re.compile("url")).spec_hash


def test_hashes_are_the_same_in_another_process() -> None:
    code = (
        "from tests.typing_examples import books, news, shelves\n"
        "for item in (books, news, shelves): print(item.spec_hash, item.reader_hash)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE.parent, capture_output=True, text=True, check=True)
    here = [typing_examples.books, typing_examples.news, typing_examples.shelves]
    assert done.stdout.split() == [each for item in here for each in (item.spec_hash, item.reader_hash)]


@given(st.text(max_size=40))
def test_any_text_as_selector_is_taken_or_refused_and_never_breaks(text: str) -> None:
    for kind in (css, xpath, jmes, meta, jsonld, names):
        try:
            made: Any = type("X", (Record,), {"__annotations__": {"a": str}, "a": kind(text)}, table="t", key="a")
        except Misuse:
            continue
        assert made.__spec__.fields[0].selector == Selector(kind.__name__, (text,))
