"""The documentation says what is true: links, commands, examples, SQL and generated parts."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from docs.generate import commands, renewed, root
from sqlalchemy import text

import recrawl.declare
from recrawl.declare.load import load
from recrawl.declare.planned import NOT_YET
from recrawl.model.work import PageState
from recrawl.store import recordtables
from recrawl.store.database import Store
from recrawl.store.tables import metadata

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`(recrawl [^`\n]+)`")
_LINE = re.compile(r"(?:^|&& )(?:\.venv/bin/)?(recrawl .*)", re.MULTILINE)
_FILE = re.compile(r"# (\w+\.(?:py|toml))\n")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


class Block(NamedTuple):
    page: Path
    language: str
    text: str


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _blocks(page: Path) -> list[Block]:
    return [Block(page, *found) for found in _FENCE.findall(_text(page))]


def _examples() -> list[Block]:
    """Declarations; the programs of `analyse.md` are run by another test."""
    pages = [page for page in PAGES if page.name != "analyse.md"]
    return [block for page in pages for block in _blocks(page) if block.language in ("python", "toml")]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _headings(page: Path) -> list[tuple[int, str]]:
    plain = _FENCE.sub("", _text(page))
    return [(len(marks), words) for marks, words in re.findall(r"^(#+) (.+)$", plain, re.MULTILINE)]


@every_page
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", _text(page))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        place = (page.parent / name) if name else page
        assert place.exists(), target
        if anchor:
            assert anchor in {_anchor(words) for _, words in _headings(place)}, target


@cache
def _known_commands() -> dict[str, Any]:
    known = {}
    whole = root()
    for names in commands(whole):
        command = whole
        for name in names:
            command = command.commands[name]
        known[" ".join(names)] = command
    return known


def _shown_commands(page: Path) -> list[str]:
    """What a reader may type: in the text, and in blocks that are not the help of the commands themselves."""
    typed = [block.text for block in _blocks(page) if block.language in ("sh", "text") and "Usage: " not in block.text]
    return _SPAN.findall(_FENCE.sub("", _text(page))) + _LINE.findall("\n".join(typed))


@every_page
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    known = _known_commands()
    for line in _shown_commands(page):
        words = [word for word in shlex.split(line.partition(" >> ")[0])[1:] if word not in ("--debug", "...")]
        name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known), None)
        assert name is not None or not words, line
        options = {option for param in known[name].params for option in param.opts} if name else set()
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("block", _examples(), ids=lambda block: f"{block.page.name}-{block.text.splitlines()[0]}")
def test_every_declaration_that_is_shown_loads(block: Block, tmp_path: Path) -> None:
    if block.language == "toml":
        tomllib.loads(block.text)
    named = _FILE.match(block.text)
    assert named, "the first line names the file"
    path = tmp_path / named[1]
    path.write_text(block.text, encoding="utf-8")
    assert load(path)


def test_every_sql_statement_that_is_shown_runs(store: Store, tmp_path: Path) -> None:
    for block in _blocks(ROOT / "docs" / "declare.md"):
        if (named := _FILE.match(block.text)) and named[1].endswith(".py"):
            path = tmp_path / named[1]
            path.write_text(block.text, encoding="utf-8")
            for source in load(path):
                recordtables.ensure(store, source.records)
    statements = [block.text for block in _blocks(ROOT / "docs" / "store.md") if block.language == "sql"]
    assert statements
    with store.read() as connection:
        for statement in statements:
            connection.execute(text(statement)).all()


@every_page
def test_generated_parts_are_up_to_date(page: Path) -> None:
    assert renewed(_text(page)) == _text(page), "run: python docs/generate.py"


def test_every_command_is_described() -> None:
    reference = _text(ROOT / "docs" / "cli.md")
    for name, command in _known_commands().items():
        assert f"### `recrawl {name}`" in reference
        assert command.help, name
        first = f"`recrawl {name.split()[0]}"
        assert all(first in _text(ROOT / readme) for readme in ("README.md", "README.zh.md")), name


def test_every_name_of_a_declaration_is_described() -> None:
    described = _text(ROOT / "docs" / "declare.md")
    for name in recrawl.declare.__all__:
        if name not in ("Finder", "Precision", "from_url"):  # for those who write programs with recrawl
            assert re.search(rf"\b{name}\b", described), name


def test_what_is_not_there_yet_is_said_to_be_so() -> None:
    section = _text(ROOT / "docs" / "declare.md").partition("## Not in this release")[2]
    for kind in NOT_YET:
        assert f"`{kind.__name__}`" in section


def test_every_table_and_every_state_of_a_page_is_described() -> None:
    described = _text(ROOT / "docs" / "store.md")
    for name in [*metadata.tables, *PageState]:
        assert f"`{name}`" in described, name


def test_both_readmes_have_the_same_parts_and_the_same_code() -> None:
    english, chinese = ROOT / "README.md", ROOT / "README.zh.md"
    assert [level for level, _ in _headings(english)] == [level for level, _ in _headings(chinese)]
    assert [block[1:] for block in _blocks(english)] == [block[1:] for block in _blocks(chinese)]
    for pattern in (r"`[^`\n]+`", r"^\| ", r"^- "):
        found = [sorted(re.findall(pattern, _FENCE.sub("", _text(page)), re.MULTILINE)) for page in (english, chinese)]
        assert found[0] == found[1]


def test_every_make_target_that_is_shown_exists() -> None:
    targets = set(re.findall(r"^(\w+):", _text(ROOT / "Makefile"), re.MULTILINE))
    for page in PAGES:
        for name in re.findall(r"(?:^|`)make (\w+)", _text(page), re.MULTILINE):
            assert name in targets, f"{page.name}: make {name}"
