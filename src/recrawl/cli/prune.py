"""`recrawl prune`: let go of old versions, bodies and events."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.counting import counting
from recrawl.cli.surface import JsonOption, StoreOption, emit, known_store, out
from recrawl.errors import Misuse

if TYPE_CHECKING:
    from recrawl.operate.prune import Let, Retention
    from recrawl.store.prune import Pruned


def prune(
    bodies: Annotated[str | None, typer.Option(metavar="AGE", help="Bodies of versions older than this: 90d.")] = None,
    versions: Annotated[
        str | None, typer.Option(metavar="AGE|N", help="Versions older than this, or all but the last N.")
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Events, resolved dead letters, receipts of pushes older than this."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Let go of old versions, bodies and events, and give the space back. Try it with --dry-run first.

    Never the current version of a page, nor the body that it was last read from.
    """
    from recrawl.operate.prune import let_go
    from recrawl.run.wire import the_clock

    retention = _retention(bodies, versions, events)
    with known_store(store) as opened, counting(silent=json) as tell:

        def told(kind: str, so_far: Pruned) -> None:
            tell(f"{kind}: {so_far.rows:,}")

        let = let_go(opened, retention, the_clock().now(), dry_run=dry_run, told=told)
    if json:
        emit({"dry_run": dry_run, **asdict(let)})
    else:
        _show(let, dry_run)


def _retention(bodies: str | None, versions: str | None, events: str | None) -> Retention:
    from recrawl.operate.prune import Retention

    if bodies is versions is events is None:
        action = "For instance: recrawl prune --bodies 90d --versions 20 --events 1w --dry-run"
        raise Misuse("nothing is named to let go of", place="command line", action=action)
    keep = int(versions) if versions is not None and versions.isdecimal() else None
    if keep == 0:
        raise Misuse("the current version is always kept", place="--versions", action="Write 1 or more.")
    return Retention(
        versions=_age(versions, "--versions") if keep is None else None,
        keep=keep,
        bodies=_age(bodies, "--bodies"),
        events=_age(events, "--events"),
    )


def _age(text: str | None, place: str) -> timedelta | None:
    from recrawl.declare.policies import seconds

    return None if text is None else timedelta(seconds=seconds(text, place=place))


def _show(let: Let, dry_run: bool) -> None:
    console = out()
    for kind, gone in let.pruned.items():
        verb = "would go" if dry_run else "went"
        console.print(f"{kind:9} {gone.rows:,} {verb}, {_size(gone.bytes)}")
    if let.space is not None:
        console.print(f"file      {_size(let.space.returned)} given back to the disk")
        if let.space.free > 1_000_000:
            told = f"{_size(let.space.free)} free inside, to be used again; SQL `VACUUM` gives them back, too"
            console.print(f"          {told}")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
