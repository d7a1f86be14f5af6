"""From a body to clean records: extract, then clean. Pure of I/O, so that it can run in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recrawl.clean.records import CleanContext, clean_records
from recrawl.decide.urls import canonical_url
from recrawl.declare import Source
from recrawl.declare.specs import RecordSpec
from recrawl.errors import RecrawlError
from recrawl.extract.document import Document
from recrawl.extract.page import extract_from
from recrawl.extract.signals import signals_of
from recrawl.model.fetched import Page
from recrawl.model.record import FieldError, RecordRow
from recrawl.model.signals import Signals
from recrawl.model.work import Stage


@dataclass(frozen=True, slots=True)
class Reading:
    """What a body came to: rows, or what is wrong with it."""

    rows: tuple[RecordRow, ...] = ()
    specs: tuple[RecordSpec, ...] = ()
    structure_hash: str | None = None
    canonical: str | None = None
    page_id: str | None = None
    source_version: str | None = None
    source_updated_at: datetime | None = None
    stage: Stage = Stage.SETTLE
    reason: str | None = None
    errors: tuple[FieldError, ...] = ()
    signals: Signals | None = None  # None of a body that nothing can be told of


def read(page: Page, source: Source) -> Reading:
    """Read a page by its source's rules. Whatever is wrong with the page is a value; only our own faults raise."""
    document = Document(page)
    try:
        found = extract_from(document, source)
    except RecrawlError as error:
        return Reading(stage=Stage.EXTRACT, reason=str(error), signals=_signals(document))
    signals = _signals(document, found.structure_hash)
    if not found.rows:
        return Reading(stage=Stage.EXTRACT, reason="no record was found on the page", signals=signals)
    context = CleanContext(page.fetched_at, source.zone, source.currency, found.base)
    rows, errors = clean_records([(raw.spec, raw.values) for raw in found.rows], context)
    if errors:
        told = "; ".join(f"{error.field}: {error.message}" for error in errors[:3])
        reason = f"not valid data: {told}"
        return Reading(stage=Stage.CLEAN, reason=reason, errors=tuple(errors), signals=signals)
    specs = {raw.spec.table: raw.spec for raw in found.rows}
    first = specs[rows[0].table]
    return Reading(
        rows=tuple(rows),
        specs=tuple(specs.values()),
        structure_hash=found.structure_hash,
        canonical=_canonical(found.canonical, page, source),
        page_id=page_id_in(rows, specs, source),
        source_version=text_in(rows[0], first.version),
        source_updated_at=instant_in(rows[0], first.updated),
        signals=signals,
    )


def signals_in(page: Page) -> Signals | None:
    """What a stored body looks like."""
    return _signals(Document(page))


def _signals(document: Document, structure: str | None = None) -> Signals | None:
    try:
        return signals_of(document, structure)
    except RecrawlError:
        return None


def _canonical(url: str | None, page: Page, source: Source) -> str | None:
    """The canonical address that a page names of itself, if it may be one: the home page of every page is none."""
    if url is None:
        return None
    try:
        named = canonical_url(url, page.final_url, source.identity)
    except ValueError:
        return None
    here = page.url.split("/", 3)
    there = named.split("/", 3)
    if there[:3] != here[:3] or (not there[3:] or not there[3]):
        return None
    return named


def page_id_in(rows: list[RecordRow], specs: dict[str, RecordSpec], source: Source) -> str | None:
    """The business id of the page, where fields tell it: that of the first record that has them all."""
    names = source.page_fields
    if not names:
        return None
    for row in rows:
        if specs[row.table].each is None and all(row.data.get(name) is not None for name in names):
            return "|".join(str(row.data[name]).replace("|", "%7C") for name in names)
    return None


def text_in(row: RecordRow, field: str | None) -> str | None:
    """The value of a field as text; None of no field."""
    value = row.data.get(field) if field else None
    return None if value is None else str(value)


def instant_in(row: RecordRow, field: str | None) -> datetime | None:
    """The time that a field holds; None of no field."""
    value = row.data.get(field) if field else None
    return datetime.fromisoformat(value) if isinstance(value, str) else None
