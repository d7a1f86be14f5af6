"""What is known of the look of each source's good pages, and the event that says that it was built anew."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, text, update

from recrawl.decide.profile import Profile
from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import events, profiles
from recrawl.store.types import instant


def profile(store: Store, source: str) -> tuple[Profile, bool]:
    """What is known of a source's good pages, and whether they are being built anew."""
    with store.read() as connection:
        row = connection.execute(select(profiles).where(profiles.c.source == source)).one_or_none()
        return (Profile.from_json(row.data), row.rebuilding) if row else (Profile(), False)


def add(
    store: Store,
    source: str,
    learned: Profile,
    now: datetime,
    *,
    returned: Collection[int] = (),
    rebuilt: bool | None = None,
    told: dict[str, Json] | None = None,
) -> None:
    """Add what one worker has learned. `returned` are pages that no longer lead elsewhere; `rebuilt` begins or ends the
    time in which the source's pages are built anew, and its beginning is one event for all workers, with `told`."""

    def work(connection: Connection) -> None:
        connection.execute(
            store.insert(profiles)
            .values(source=source, data=Profile().as_json(), rebuilding=False)
            .on_conflict_do_nothing()
        )
        row = connection.execute(select(profiles).where(profiles.c.source == source).with_for_update()).one()
        known = Profile.from_json(row.data)
        known.add(learned)
        for page in returned:
            known.returned(page)
        if rebuilt and not row.rebuilding:
            connection.execute(insert(events).values(source=source, kind="template", data=told or {}, at=now))
        connection.execute(
            update(profiles)
            .where(profiles.c.source == source)
            .values(data=known.as_json(), rebuilding=row.rebuilding if rebuilt is None else rebuilt)
        )

    store.write(work)


def look_again(store: Store, pages: Collection[int], now: datetime) -> None:
    """Make pages due at once that have no open task, and that were believed at their last look."""
    statement = text(
        f"UPDATE pages SET due_at = :now WHERE due_at IS NOT NULL AND due_at > :now AND failures = 0 "
        f"AND id IN (SELECT page FROM {rowset(store, {'page': 'int'})})"
    ).bindparams(instant("now", now), bindparam("rows", packed({"page": page} for page in sorted(pages))))
    store.write(lambda connection: connection.execute(statement))
