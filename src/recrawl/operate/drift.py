"""Why dead letters of a field came up: which raw field looks like the one that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recrawl.clean.drift import Candidate, candidates
from recrawl.clean.values import CleanContext
from recrawl.decide.envelope import envelope, read_line
from recrawl.declare import Source
from recrawl.declare.specs import RecordSpec
from recrawl.model.work import Stage
from recrawl.store import contents, dead, inbox
from recrawl.store.database import Store

_MOST = 200


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Letters of one kind that a field of a record brought up, and the raw fields that may hold its values now.

    `total` counts all letters of the kind; `looked_at` those whose raw records were compared.
    """

    source: str
    signature: str
    record: str
    field: str
    total: int
    looked_at: int
    since: datetime
    found: tuple[Candidate, ...]


def diagnose(store: Store, source: Source) -> list[Diagnosis]:
    """What can be said of the unresolved letters of a source whose raw form is JSON, kind by kind."""
    good: list[dict[str, Any]] | None = None
    told = []
    for group in dead.groups(store, source.name):
        if group.stage != Stage.CLEAN:
            continue
        letters = list(dead.letters(store, dead.Selection(source.name, group.signature), most=_MOST))
        failing = [part for letter in letters for part in _parts(letter.raw or b"")]
        fields = {str(error["field"]) for letter in letters for error in letter.errors}
        if not failing or not fields:
            continue
        if good is None:
            texts = [*contents.recent_json(store, source.name, _MOST), *inbox.sample(store, source.name)]
            good = [part for one in texts for part in _parts(one)]
        context = CleanContext(group.last_at, source.zone, source.currency, "")
        for spec, field in _known(source, fields):
            found = tuple(candidates(spec, field, failing, good, context))
            if found:
                place = (group.count, len(letters), group.first_at)
                told.append(Diagnosis(source.name, group.signature, spec.name, field, *place, found))
    return told


def _known(source: Source, fields: set[str]) -> Iterator[tuple[RecordSpec, str]]:
    for spec in source.records:
        yield from ((spec, field.name) for field in spec.fields if field.name in fields)


def _parts(raw: bytes) -> list[dict[str, Any]]:
    """The raw records in a JSON text; none in anything else."""
    try:
        data = envelope(read_line(raw)).data
    except ValueError:
        return []
    return [part for part in (data if isinstance(data, list) else [data]) if isinstance(part, dict)]
