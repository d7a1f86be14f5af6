"""`recrawl dead`: what could not become data, by kind; each with what came, why, and a way on."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli import advice
from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, known_store, out, safe
from recrawl.errors import Misuse, Permanent

if TYPE_CHECKING:
    from recrawl.operate.drift import Diagnosis
    from recrawl.store.dead import Group, Letter, Selection

app = typer.Typer(help="See, replay or drop what could not become data.", no_args_is_help=True)

_WIDTH = 80
_SHOWN = 2_000

Numbers = Annotated[list[int] | None, typer.Argument(metavar="[ID]...", help="These letters.")]
SignatureOption = Annotated[str | None, typer.Option("--signature", help="All of this kind, as `dead list` names it.")]


@app.command("list")
def list_letters(source: SourceOption = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show unresolved dead letters by source and kind, the most numerous first."""
    from recrawl.store import dead

    with known_store(store) as opened:
        found = dead.groups(opened, source)
    if json:
        emit([asdict(group) | {"next": advice.for_signature(group.signature)} for group in found])
        return
    if not found:
        out().print("no dead letters")
    for group in found:
        _show_group(group)


def _show_group(group: Group) -> None:
    console = out()
    console.print(f"{safe(group.source)}: {group.count:,} x {safe(group.signature)}", style="bold", soft_wrap=True)
    since = f"{group.first_at:%Y-%m-%d %H:%M} UTC"
    until = "" if group.first_at == group.last_at else f" to {group.last_at:%Y-%m-%d %H:%M} UTC"
    console.print(f"  {since}{until}; the newest is {group.newest}")
    for line in wrap(safe(group.reason), _WIDTH - 2, max_lines=3, placeholder=" ..."):
        console.print(f"  {line}")
    if group.url and group.url not in group.reason:
        console.print(f"  {safe(group.url)}", soft_wrap=True)
    console.print(f"  -> {advice.for_signature(group.signature)}")


@app.command()
def show(
    number: Annotated[int, typer.Argument(metavar="ID", help="The letter, as `dead list` numbers it.")],
    raw: Annotated[bool, typer.Option("--raw", help="Write what came to standard output, byte for byte.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show one dead letter: why it is one, each error, and the beginning of what came."""
    from recrawl.store import dead

    with known_store(store) as opened:
        found = dead.letter(opened, number)
        place = opened.place
    if found is None:
        raise Permanent(f"there is no dead letter {number}", place=place, action="See `recrawl dead list`.")
    if raw:
        if found.raw is None:
            raise Permanent(f"of letter {number} nothing was kept", place=place, action="See its reason: `dead show`.")
        sys.stdout.buffer.write(found.raw)
    elif json:
        emit(asdict(found) | {"raw": None if found.raw is None else found.raw.decode("utf-8", "replace")})
    else:
        _show_letter(found)


def _show_letter(found: Letter) -> None:
    console = out()
    console.print(f"{found.id}  {safe(found.signature)}", style="bold", soft_wrap=True)
    for name, value in (
        ("source", found.source),
        ("page", found.url),
        ("since", f"{found.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("resolved", f"{found.resolved_at:%Y-%m-%d %H:%M:%S} UTC: {found.resolution}" if found.resolved_at else None),
        ("reason", found.reason),
    ):
        if value:
            console.print(f"  {name:9} {safe(value)}", soft_wrap=True)
    for error in found.errors:
        value = f" ({safe(error['value'])!r})" if error.get("value") else ""
        console.print(f"  {safe(error['field']):9} {safe(error['message'])}{value}", soft_wrap=True)
    if found.raw is not None:
        text = found.raw[:_SHOWN].decode("utf-8", "replace")
        more = f"\n... {len(found.raw):,} bytes in all: `recrawl dead show {found.id} --raw`"
        console.print()
        console.print(safe(text) + (more if len(found.raw) > _SHOWN else ""), soft_wrap=True)


@app.command()
def diagnose(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE|FILE", help="Names in recrawl.toml, or files that declare."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Say which raw field looks like one that began to fail, where records come as JSON."""
    from recrawl.operate.drift import diagnose as explain
    from recrawl.operate.sync import named

    declared = named(what or [])
    with known_store(store) as opened:
        found = [one for declaration in declared for one in explain(opened, declaration.source)]
    if json:
        emit([asdict(one) for one in found])
        return
    if not found:
        out().print("no raw field looks like one that fails")
    for one in found:
        _show_diagnosis(one)


def _show_diagnosis(one: Diagnosis) -> None:
    console, best = out(), one.found[0]
    since = f"since {one.since:%Y-%m-%d %H:%M} UTC"
    console.print(f"{safe(one.source)}: `{safe(one.field)}` fails in {one.total:,} records {since}", style="bold")
    for each in one.found[:3]:
        new = " is new and" if each.is_new else ""
        console.print(f"  `{safe(each.raw)}`{new} can be read as it in {each.parses:.0%} of {one.looked_at:,}")
    console.print(
        f"  -> recrawl dead replay --source {safe(one.source)} --signature '{safe(one.signature)}' "
        f"--map {safe(best.raw)}={safe(one.field)}",
        soft_wrap=True,
    )


@app.command()
def drop(
    numbers: Numbers = None,
    source: SourceOption = None,
    signature: SignatureOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Put dead letters aside for good: some by their ids, or all of a source, or all of a kind."""
    from recrawl.store import dead

    chosen = chosen_letters(numbers, source, signature)
    with known_store(store) as opened:
        count = dead.drop(opened, chosen, datetime.now(UTC))
    if json:
        emit({"dropped": count})
    else:
        out().print(f"{count:,} dropped; what came stays readable with `recrawl dead show ID` until it is pruned")


@app.command()
def replay(
    numbers: Numbers = None,
    source: SourceOption = None,
    signature: SignatureOption = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="Read a raw field under another name; give it again for more."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Begin dead letters anew, from what came: pushed records and pages. What is newer by now is not overwritten.

    The next `recrawl sync` of the source performs it, or a running `recrawl serve`.
    """
    from recrawl.operate import replay as operate

    chosen = chosen_letters(numbers, source, signature)
    names = operate.pairs(renamed or [])
    with known_store(store) as opened:
        found = operate.replay(opened, chosen, renamed=names, now=datetime.now(UTC))
    if json:
        emit(asdict(found))
        return
    if not (found.pushed or found.pages or found.busy or found.rest):
        action = "`recrawl dead list` shows what there is."
        raise Misuse("there are no such dead letters", place="command line", action=action)
    out().print(f"{found.pushed:,} pushed records and {found.pages:,} pages will be read again by the next sync")
    if found.busy:
        out().print(f"{found.busy:,} are under way already, or a newer letter of their page is")
    if found.rest:
        out().print(f"{found.rest:,} kept nothing to read: fetch them anew with `recrawl retry`")


def chosen_letters(numbers: list[int] | None, source: str | None, signature: str | None) -> Selection:
    """Which letters are meant. Raises Misuse if none are named: all at once must be asked for."""
    from recrawl.store.dead import Selection

    if not numbers and source is None and signature is None:
        action = "Name letters by id, or a kind with --signature, or all of a source with --source."
        raise Misuse("which dead letters?", place="command line", action=action)
    return Selection(source, signature, tuple(numbers or ()))
