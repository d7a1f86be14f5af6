"""The step of pushed records: from the lines of a chunk to records, or to what is wrong with each line.

Pure of I/O. What is pulled takes the same way from here on: the same declarations, the same cleaning, the same door.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from recrawl.clean.fingerprint import content_hash, settle_moments
from recrawl.clean.plain import storable
from recrawl.clean.records import CleanContext, clean_records
from recrawl.decide.envelope import Envelope, envelope, read_line
from recrawl.decide.pushes import PushRules
from recrawl.decide.urls import canonical_url, host_of, wire_url
from recrawl.declare import Source
from recrawl.declare.policies import seconds
from recrawl.declare.selectors import each_is_css
from recrawl.declare.specs import Kind, RecordSpec
from recrawl.errors import RecrawlError
from recrawl.extract.page import Raw, extract
from recrawl.extract.select import search_jmes
from recrawl.model.fetched import Page
from recrawl.model.push import Chunk, Cleaned, Pushed, Unusable
from recrawl.model.record import FieldError, RecordRow
from recrawl.steps.read import instant_in, page_id_in, text_in
from recrawl.store.settle.pushed import PushedTo, Stored

_LONGEST_ID = 2_000


def pushed_to(source: Source) -> PushedTo:
    """How the pushes of a source are settled."""
    window = source.window if source.window in (None, "day") else seconds(str(source.window))
    rules = PushRules(order=source.order, window=window, zone=source.zone, reader_hash=source.reader_hash)
    timed = {spec.table: spec for spec in source.records if any(field.kind is Kind.MOMENT for field in spec.fields)}

    def refine(found: Pushed, stored: Stored) -> Pushed:
        """Relative times that agree with what is stored stay as they are stored."""
        rows = tuple(
            settle_moments(row, stored.get((row.table, row.key)), timed[row.table]) if row.table in timed else row
            for row in found.rows
        )
        return found if rows == found.rows else replace(found, rows=rows, content_hash=content_hash(rows))

    return PushedTo(rules, pulled=bool(source.finders), refine=refine if timed or source.reader else None)


def clean_chunk(chunk: Chunk, source: Source) -> tuple[Cleaned, tuple[RecordSpec, ...]]:
    """What the lines of a chunk come to, and the kinds of records among them. Never raises for what a line holds."""
    found: list[Pushed | Unusable] = []
    specs: dict[str, RecordSpec] = {}
    for place, line in enumerate(chunk.lines):
        observed = chunk.task.observed + place
        try:
            found.append(_clean(line, observed, chunk.accepted_at, source, specs))
        except (_Unfit, RecursionError) as error:
            why = error if isinstance(error, _Unfit) else _Unfit("too_deep", "its values are nested too deep")
            found.append(
                Unusable(
                    raw=line,
                    observed=observed,
                    fetched_at=chunk.accepted_at,
                    kind=why.kind,
                    reason=why.reason,
                    errors=why.errors,
                )
            )
    return Cleaned(chunk.task, tuple(found)), tuple(specs.values())


class _Unfit(Exception):
    """Why a line cannot become data."""

    def __init__(self, kind: str, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.errors = kind, storable(reason), errors


def _clean(line: bytes, observed: int, accepted_at: datetime, source: Source, specs: dict[str, RecordSpec]) -> Pushed:
    try:
        brought = envelope(read_line(line))
    except ValueError as error:
        raise _Unfit("no_record", str(error)) from None
    url, fetch_url, host = _address(brought, source)
    at = brought.fetched_at or accepted_at
    raws = _raws(brought, source, url or f"push:{source.name}", at)
    specs.update({raw.spec.table: raw.spec for raw in raws})
    context = CleanContext(at, source.zone, source.currency, url or "")
    rows, errors = clean_records([(raw.spec, raw.values) for raw in raws], context)
    if errors:
        kinds = ",".join(sorted({f"{error.field}:{error.kind}" for error in errors}))
        told = "; ".join(f"{error.field}: {error.message}" for error in errors[:3])
        raise _Unfit(kinds, f"not valid data: {told}", tuple(errors))
    page_id = _page_id(brought, url, rows, raws, source)
    spec = raws[0].spec
    return Pushed(
        raw=line,
        observed=observed,
        page_id=page_id,
        url=url or page_id,
        fetch_url=fetch_url or page_id,
        host=host,
        rows=tuple(rows),
        content_hash=content_hash(rows),
        fetched_at=at,
        source_version=brought.source_version or text_in(rows[0], spec.version),
        source_updated_at=brought.source_updated_at or instant_in(rows[0], spec.updated),
    )


def _address(brought: Envelope, source: Source) -> tuple[str, str, str]:
    """The canonical URL, the URL as it was pushed, and its host; nothing where none was pushed."""
    if brought.url is None:
        return "", "", ""
    try:
        url = canonical_url(brought.url, None, source.identity)
        wire = wire_url(brought.url)
    except ValueError as error:
        raise _Unfit("url:url", f"not a URL: {error}") from None
    return url, wire, host_of(wire)


def _raws(brought: Envelope, source: Source, url: str, at: datetime) -> list[Raw]:
    """The raw records of one line; a function of the user's reads it as the JSON of a page."""
    if source.reader is None:
        found = [raw for spec in source.records for raw in _by_spec(spec, brought.data)]
    else:
        try:
            body = orjson.dumps(brought.data)
            found = list(extract(Page(url, url, body, "application/json", at), source).rows)
        except (RecrawlError, TypeError) as error:
            raise _Unfit("unreadable", str(error)) from None
    if not found:
        raise _Unfit("no_record", "no record was found in it")
    return found


def _by_spec(spec: RecordSpec, data: dict[str, Any] | list[Any]) -> Iterator[Raw]:
    parts = None
    if spec.each is not None and not each_is_css(spec):
        parts = search_jmes(spec.each, data)
    if parts is None:
        parts = data
    for part in parts if isinstance(parts, list) else [parts]:
        if not isinstance(part, dict):
            raise _Unfit("no_record", f"a record is a JSON object, not {part!r:.60}")
        yield Raw(spec, _values(spec, part))


def _values(spec: RecordSpec, part: dict[str, Any]) -> dict[str, Any]:
    """The fields as they were pushed: those that jmes= finds, else those of the field's own name. Selectors of HTML say
    nothing here: a spider has applied its own."""
    searched = {
        field.name: value
        for field in spec.fields
        if field.selector is not None
        and field.selector.kind == "jmes"
        and (value := search_jmes(field.selector.exprs[0], part)) is not None
    }
    return {**part, **searched} if searched else part


def _page_id(brought: Envelope, url: str, rows: list[RecordRow], raws: list[Raw], source: Source) -> str:
    """What the record is known by: the pushed id, else as its source knows pages, else by its key."""
    found = brought.id or _own_id(url, rows, raws, source)
    if storable(found) != found or len(found) > _LONGEST_ID:
        raise _Unfit("id:unusable", f"an id that cannot be kept: {found[:60]!r}")
    return found


def _own_id(url: str, rows: list[RecordRow], raws: list[Raw], source: Source) -> str:
    if (named := page_id_in(rows, {raw.spec.table: raw.spec for raw in raws}, source)) is not None:
        return named
    if url and (told := source.page_id_of_url(url)):
        return told
    if url and source.finders:
        return url
    return rows[0].key
