"""`recrawl status`: what is stored, how the last run ended, and what needs a person."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli import advice
from recrawl.cli.lookup import source_named
from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, known_store, out, safe

if TYPE_CHECKING:
    from recrawl.operate.health import Unhealthy
    from recrawl.store.passes import Schedule
    from recrawl.store.queries import SourceStatus
    from recrawl.store.trust import Trust

_WIDTH = 80
_MOST = 5
_TASK_WORDS = {"pending": "to do", "running": "under way", "failed": "to be tried again"}


def status(
    source: Annotated[str | None, typer.Argument(help="Only this source.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say only what is unhealthy, and exit with 1 if anything is.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show each source: pages, records, the last run, open tasks, dead letters and what to do about them.

    With --check: is every source that `recrawl run` looks after gone through when it is due?
    """
    from recrawl.operate.health import unhealthy
    from recrawl.run.wire import the_clock
    from recrawl.store import queries
    from recrawl.store.passes import schedule

    now = the_clock().now()
    with known_store(store) as opened:
        names = [source_named(opened, source)] if source is not None else queries.source_names(opened)
        if check:
            raise typer.Exit(_checked([one for one in unhealthy(opened, now) if one.source in names], json))
        found = [(queries.status(opened, name), schedule(opened, name, now)) for name in names]
        place = opened.place
    if json:
        emit({"store": place, "sources": [_facts(*one) for one in found]})
    else:
        for one in found:
            _show(*one)


def _checked(found: list[Unhealthy], json: bool) -> Exit:
    if json:
        emit({"healthy": not found, "unhealthy": found})
    elif not found:
        out().print("All is well.")
    else:
        for one in found:
            out().print(f"{safe(one.source)}: {one.kind}: {one.problem}", style="red", soft_wrap=True)
            out().print(f"  {one.action}")
    return Exit.COULD_NOT if found else Exit.GOOD


def _needs_attention(one: SourceStatus) -> bool:
    ended_well = one.run is not None and one.run.state in ("finished", "running")
    return bool(one.dead_letters or one.paused or one.held or one.tasks.get("failed") or not ended_well)


def _facts(one: SourceStatus, schedule: Schedule) -> dict[str, object]:
    letters = [asdict(group) | {"next": advice.for_signature(group.signature)} for group in one.dead_letters]
    records = {name: {"live": live, "deleted": deleted} for name, (live, deleted) in one.records.items()}
    more = {"dead_letters": letters, "records": records, "needs_attention": _needs_attention(one)}
    return asdict(one) | more | {"schedule": schedule}


def _show(one: SourceStatus, schedule: Schedule) -> None:
    console = out()
    console.print(safe(one.source) + (" (paused)" if one.paused else ""), style="bold")
    lines = [("pages", _pages(one)), ("records", _records(one)), ("last run", _run(one)), ("open tasks", _tasks(one))]
    if one.next_due:
        lines.append(("next look", _due(one.next_due)))
    lines += _scheduled(schedule)
    if one.events:
        counts = ", ".join(f"{event.count:,} {event.kind}" for event in one.events)
        lines.append(("events", f"{counts}; last {_time(max(event.last for event in one.events))}"))
    lines += [("trust", _trust(trust)) for trust in one.trust]
    for name, told in lines:
        if told:
            console.print(f"  {name:11} {told}")
    if one.failing_since:
        console.print(f"  failing     too much becomes dead letters since {_time(one.failing_since)}", style="red")
    if one.held:
        console.print(
            f"  held back   {one.held:,} pages vanished at once: recrawl approve {safe(one.source)}", style="yellow"
        )
    if one.dead_letters:
        _letters(one)
    console.print()


def _scheduled(schedule: Schedule) -> list[tuple[str, str]]:
    lines = [("next pass", _due(schedule.next_pass))] if schedule.next_pass else []
    for budget in schedule.budgets:
        span = "hour" if budget.span < 86_400 else "day"
        whose = "" if budget.scope.startswith("source ") else f" to {safe(budget.scope.removeprefix('host '))}"
        lines.append(("budget", f"{budget.used:,} of {budget.most:,} requests{whose} used in this {span}"))
    for held in schedule.held[:_MOST]:
        why = f", in trouble (x {held.troubles})" if held.troubles else ""
        lines.append(("host waits", f"{safe(held.host)} until {_time(held.until)}{why}: {held.tasks:,} tasks"))
    return lines


def _pages(one: SourceStatus) -> str:
    total = sum(one.pages.values())
    by_state = ", ".join(f"{count:,} {state}" for state, count in sorted(one.pages.items(), key=lambda item: -item[1]))
    return f"{total:,}: {by_state}" if total else "none yet"


def _records(one: SourceStatus) -> str:
    return ", ".join(
        f"{live:,} {safe(name)}" + (f" (+ {deleted:,} deleted)" if deleted else "")
        for name, (live, deleted) in one.records.items()
    )


def _run(one: SourceStatus) -> str:
    run = one.run
    if run is None:
        return "never"
    counts = run.counts
    shown = ("looked_at", "new", "changed", "dead")
    told = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in shown if counts.get(name))
    return f"{_time(run.started_at)} {run.state}" + (f": {told}" if told else "")


def _tasks(one: SourceStatus) -> str:
    return ", ".join(f"{count:,} {_TASK_WORDS[state]}" for state, count in one.tasks.items())


def _trust(trust: Trust) -> str:
    of = f"{safe(trust.kind)} of {safe(trust.name)}"
    told = f"{of}: {trust.checks - trust.wrong} of the last {trust.checks} checks true"
    return told if trust.believed else f"{told}; not believed, so pages are looked at by schedule, in full"


def _letters(one: SourceStatus) -> None:
    console = out()
    count = sum(group.count for group in one.dead_letters)
    console.print(f"  dead letters {count:,} (what came is kept with them)", style="yellow")
    for group in one.dead_letters[:_MOST]:
        console.print(f"    {group.count:,} x {_short(group.signature, 66)}")
        for line in wrap(safe(group.reason), _WIDTH - 6, max_lines=3, placeholder=" ..."):
            console.print(f"      {line}")
        if group.url and group.url not in group.reason:
            console.print(f"      {safe(group.url)}", soft_wrap=True)
        console.print(f"      -> {advice.for_signature(group.signature)}")
    if len(one.dead_letters) > _MOST:
        console.print(f"    and {len(one.dead_letters) - _MOST:,} more kinds")


def _short(text: str, width: int) -> str:
    line = safe(" ".join(text.split()))
    return line if len(line) <= width else f"{line[: width - 3]}..."


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _due(at: datetime) -> str:
    return "due now" if at <= datetime.now(UTC) else _time(at)
