"""The verb `mark`: stored bodies are to be read again, although no rule that the program can see has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, text

from recrawl.store.database import Store
from recrawl.store.tables import pages

_SPAN = 5000

# A reader hash is hexadecimal: neither mark is one, so that all who look at a page know that it wants to be read.
_MARK = text(
    """
    UPDATE pages SET reader_hash = CASE
      WHEN EXISTS (SELECT 1 FROM bodies b WHERE b.hash = pages.raw_hash) THEN ''
      WHEN status = 'failing' AND EXISTS (
        SELECT 1 FROM dead_letters d WHERE d.page = pages.id AND d.resolved_at IS NULL AND d.raw IS NOT NULL
        AND d.stage IN ('extract', 'clean')) THEN ''
      ELSE '~' END
    WHERE id > :after AND id <= :last AND source = :source AND reader_hash IS NOT NULL
      AND status IN ('active', 'failing', 'suspected')
    RETURNING reader_hash
    """
)


@dataclass(frozen=True, slots=True)
class Marked:
    """Pages that will be read again from what is stored, and those of which nothing is: they will be fetched."""

    kept: int = 0
    fetched: int = 0


def mark(store: Store, source: str) -> Iterator[Marked]:
    """Mark all pages of a source that were ever read, some thousand at a time; what each part came to.

    A page with a stored body is read again by `plan_marked` or, failing that, by the next run; one without is fetched
    by the next run, without validators.
    """
    with store.read() as connection:
        last = connection.execute(select(func.max(pages.c.id))).scalar() or 0
    for after in range(0, last, _SPAN):
        values = {"source": source, "after": after, "last": min(after + _SPAN, last)}

        def work(connection: Connection, values: dict[str, object] = values) -> Marked:
            marks = list(connection.execute(_MARK, values).scalars())
            return Marked(marks.count(""), marks.count("~"))

        yield store.write(work)
