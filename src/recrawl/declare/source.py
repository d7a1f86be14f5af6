"""A source: where pages are found, how they are read, and how they are to be treated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from inspect import isfunction
from types import FunctionType
from typing import Any, Literal, get_args, get_type_hints
from zoneinfo import ZoneInfo

from recrawl.declare import hashing
from recrawl.declare.api import Api, check_api
from recrawl.declare.article import Article
from recrawl.declare.checks import at_least, checked, conform, hints_of, pattern, share, suggestion, web_host
from recrawl.declare.finders import Auto, Finder
from recrawl.declare.finding import check_finder
from recrawl.declare.planned import refuse_planned
from recrawl.declare.policies import Adaptive, Budget, Deletion, Failing, Identity, Pace, Span, seconds
from recrawl.declare.record import Record
from recrawl.declare.secrets import Basic, Bearer, check_auth
from recrawl.declare.specs import RecordSpec
from recrawl.errors import Misuse

Reader = Callable[[Any], Iterable[Record]]
"""A function from a `Fetched` to records."""

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True)
class Source:
    """A declared origin.

    `read` is a `Record` class, several, or a function from a `Fetched` to records. `page_id` is what identifies a page:
    names of fields, or a regular expression on the URL (its first group, or all that it matches); None: the canonical
    URL. `zone` (IANA) and `currency` (ISO 4217) are those of texts that name none. `order` is how versions are ordered.
    `every` is how often `recrawl run` goes through it (None: as that command says). Without `find` a source waits for
    records that are pushed to it. `window` is how long a pushed record that says the same as before is a duplicate:
    None for ever, "day" within one day of `zone`, else a length of time such as "6h". `contract` says what becomes of
    pushed fields that no record declares. `hosts` are further hosts whose pages may be read; `max_wait` caps what a
    Retry-After can ask for; `max_age` is how long a task may wait before it expires.
    """

    name: str
    _: KW_ONLY
    find: Finder | Sequence[Finder] = ()
    read: type[Record] | Sequence[type[Record]] | Reader = Article
    page_id: str | Sequence[str] | re.Pattern[str] | None = None
    zone: str = "UTC"
    currency: str | None = None
    order: Literal["observed", "updated", "version"] = "observed"
    revisit: Adaptive = field(default_factory=Adaptive)
    identity: Identity = field(default_factory=Identity)
    every: Span | None = None
    pace: Pace = field(default_factory=Pace)
    budget: Budget = field(default_factory=Budget)
    deletion: Deletion = field(default_factory=Deletion)
    failing: Failing = field(default_factory=Failing)
    auth: Bearer | Basic | None = None
    forced_looks: float = 0.01
    full_scan: Span = "7d"
    window: str | None = None
    contract: Literal["evolve", "freeze", "discard"] = "evolve"
    hosts: Sequence[str] = ()
    allow_private: bool = False
    max_attempts: int = 5
    max_wait: Span = "1h"
    max_age: Span = "7d"

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            action = "Write 1 to 64 of letters, digits, '.', '_', '-', ':'."
            raise Misuse(f"{self.name!r} is no name of a source", place=f"source.{self.name}", action=action)
        place = f"source.{self.name}"
        check_auth(self.auth, f"{place}.auth")
        for name, hint in hints_of(type(self)).items():
            if name not in ("name", "find", "read", "page_id"):
                value = conform(getattr(self, name), hint, f"{place}.{name}")
                object.__setattr__(self, name, value)
        for name in ("revisit", "identity", "pace", "budget", "deletion", "failing"):
            object.__setattr__(self, name, checked(getattr(self, name), f"{place}.{name}"))
        object.__setattr__(self, "find", _finders(self.find, self.read, f"{place}.find"))
        for name in ("read", "page_id"):
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "hosts", tuple(_host(host, f"{place}.hosts") for host in self.hosts))
        _check_reading(self, place)
        _check_page_id(self, place)
        _check_policies(self, place)

    @property
    def finders(self) -> tuple[Finder, ...]:
        """The finders, each with a stream name of its own."""
        assert isinstance(self.find, tuple)
        return self.find

    @property
    def reader(self) -> Reader | None:
        """The function that reads pages, where `read` is one."""
        return self.read if isinstance(self.read, FunctionType) else None

    @cached_property
    def records(self) -> tuple[RecordSpec, ...]:
        """The kinds of records that are known beforehand: of a function, those that its return type names."""
        if isinstance(self.read, FunctionType):
            return _returned(self.read)
        classes = self.read if isinstance(self.read, (list, tuple)) else (self.read,)
        return tuple(cls.__spec__ for cls in classes)

    @cached_property
    def page_fields(self) -> tuple[str, ...]:
        """The fields that make a page's id; empty where the URL does."""
        if self.page_id is None or isinstance(self.page_id, re.Pattern):
            return ()
        return (self.page_id,) if isinstance(self.page_id, str) else tuple(self.page_id)

    def page_id_of_url(self, url: str) -> str | None:
        """The page id that a URL tells, or None where `page_id` is no regular expression or does not match."""
        found = self.page_id.search(url) if isinstance(self.page_id, re.Pattern) else None
        if found is None:
            return None
        return next((group for group in found.groups() if group), found[0]) or None

    @cached_property
    def named_hosts(self) -> frozenset[str]:
        """The hosts that the user named, in `hosts` or in a finder's addresses; lower case, ASCII, without ports."""
        found = (web_host(url, f"source.{self.name}.find") for finder in self.finders for url in finder.addresses)
        return frozenset(self.hosts) | frozenset(found)

    @cached_property
    def spec_hash(self) -> str:
        """SHA-256 (hex) of the whole declaration."""
        return hashing.digest(self)

    @cached_property
    def reader_hash(self) -> str:
        """SHA-256 (hex) of what decides how bytes become records; pages read under another one are read again."""
        specs = [] if self.reader else [hashing.reading(spec) for spec in self.records]
        rules = [specs, self.reader, self.page_fields, self.zone, self.currency]
        return hashing.digest([hashing.READER_FORMAT, *rules])


def from_url(url: str) -> Source:
    """The source that a bare address stands for: its host names it, and its pages are found by themselves."""
    import can_ada

    web_host(url, "")
    host = str(can_ada.parse(url).host).replace("[", "").replace("]", "")
    if len(host) > 64:
        host = f"{host[:55]}-{hashing.digest(host)[:8]}"
    return Source(re.sub(r"[^A-Za-z0-9._:-]", "-", host), find=Auto(url))


def _finders(find: Any, read: Any, place: str) -> tuple[Finder, ...]:
    if find in ((), []) and read is not Article:
        return ()  # its records are pushed
    single = isinstance(find, Finder)
    given = (find,) if single else find
    if not isinstance(given, (list, tuple)) or not given or not all(isinstance(item, Finder) for item in given):
        action = (
            "Write a finder or a list of them: Sitemap(...), Feed(...), Urls([...]), Auto(...); "
            "or only read=..., for a source whose records are pushed."
        )
        raise Misuse(f"{find!r} finds no pages", place=place, action=action)
    found = tuple(_finder(finder, place if single else f"{place}[{number}]") for number, finder in enumerate(given))
    streams = [name for finder in found for name in finder.streams]
    for name in streams:
        if streams.count(name) > 1:
            action = "Give each a name of its own: name=..."
            raise Misuse(f"two finders have the name {name!r}", place=place, action=action)
    return found


def _finder(finder: Finder, place: str) -> Finder:
    refuse_planned(type(finder), place)
    finder = checked(finder, place)
    for name in ("match", "skip"):
        expression = getattr(finder, name)
        if expression is not None:
            object.__setattr__(finder, name, pattern(expression, f"{place}.{name}"))
    for url in finder.addresses:
        web_host(url, place)
    if isinstance(finder, Api):
        finder = check_api(finder, place)
    check_finder(finder, place)
    return finder


def _host(host: str, place: str) -> str:
    with suppress(Misuse):
        if not any(mark in host for mark in "/@*?#\\ "):
            return web_host(f"http://{host}", place)
    raise Misuse(f"{host!r} is no host", place=place, action="Write a name such as 'cdn.example', without scheme.")


def _check_reading(source: Source, place: str) -> None:
    where = f"{place}.read"
    if isfunction(source.read):
        return
    classes = source.read if isinstance(source.read, (list, tuple)) else [source.read]
    if not classes:
        raise Misuse("read names no record", place=where, action="Leave it out, and the article of a page is read.")
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, Record) and cls is not Record):
            action = "Write a Record class, a list of them, or a function from a Fetched to records."
            raise Misuse(f"{cls!r} reads no records", place=where, action=action)
    tables = [spec.table.lower() for spec in source.records]
    for table in tables:
        if tables.count(table) > 1:
            action = "Give each kind of record a table of its own."
            raise Misuse(f"two records of this source have the table {table!r}", place=where, action=action)


def _check_page_id(source: Source, place: str) -> None:
    where = f"{place}.page_id"
    given = source.page_id
    if given is None or isinstance(given, re.Pattern):
        if given is not None and not isinstance(given.pattern, str):
            raise Misuse("page_id is a regular expression over bytes", place=where, action="Write one over text.")
        return
    names: object = given
    several = isinstance(names, tuple) and bool(names) and all(isinstance(name, str) for name in names)
    if not (several or (isinstance(names, str) and names)):
        action = "Write the name of a field, several, or re.compile(...) for the URL."
        raise Misuse(f"{given!r} is no page_id", place=where, action=action)
    candidates = [spec for spec in source.records if spec.each is None]
    if source.records and not any(_names_one(spec, source.page_fields) for spec in candidates):
        known = [item.name for spec in candidates for item in spec.fields if not item.many]
        wrong = next((name for name in source.page_fields if name not in known), ", ".join(source.page_fields))
        if not known:
            action = "Write re.compile(...) for the URL, or leave it out: a page with each= holds many records."
            raise Misuse("a page of many records has no field that names it", place=where, action=action)
        raise Misuse(f"{wrong!r} names no field", place=where, action=suggestion(wrong, known))


def _names_one(spec: RecordSpec, names: Sequence[str]) -> bool:
    single = [item.name for item in spec.fields if not item.many]
    return all(name in single for name in names)


def _check_policies(source: Source, place: str) -> None:
    try:
        ZoneInfo(source.zone)
    except (KeyError, OSError, ValueError):
        action = "Write a name of the IANA list, for instance 'Europe/Berlin'."
        raise Misuse(f"{source.zone!r} is no time zone", place=f"{place}.zone", action=action) from None
    if source.currency is not None and not _CURRENCY.fullmatch(source.currency):
        action = "Write an ISO 4217 code, three capital letters: 'GBP'."
        raise Misuse(f"{source.currency!r} is no currency", place=f"{place}.currency", action=action)
    if (
        source.order != "observed"
        and source.records
        and not any(getattr(spec, source.order) for spec in source.records)
        and not any(isinstance(finder, Api) and getattr(finder, source.order) for finder in source.finders)
    ):
        action = (
            f"Say which field holds it: class ...(Record, ..., {source.order}=...), or Api(..., {source.order}=...)."
        )
        raise Misuse(f"no record tells its {source.order!r}", place=f"{place}.order", action=action)
    if source.window not in (None, "day"):
        seconds(str(source.window), place=f"{place}.window")
    share(source.forced_looks, f"{place}.forced_looks")
    share(source.deletion.max_vanish, f"{place}.deletion.max_vanish")
    share(source.failing.over, f"{place}.failing.over")
    at_least(seconds(source.max_age, place=f"{place}.max_age"), 1, f"{place}.max_age")
    at_least(source.max_attempts, 1, f"{place}.max_attempts")
    at_least(source.pace.concurrency, 1, f"{place}.pace.concurrency")
    for name, most in asdict(source.budget).items():
        if most is not None:
            at_least(most, 1, f"{place}.budget.{name}")
    if source.every is not None:
        at_least(seconds(source.every), 1, f"{place}.every")
    for name in ("suspect_after", "confirm_after", "delete_after"):
        at_least(getattr(source.deletion, name), 1, f"{place}.deletion.{name}")
    if seconds(source.revisit.min) > seconds(source.revisit.max):
        action = "Make max at least as long as min."
        raise Misuse("revisit.min is longer than revisit.max", place=f"{place}.revisit", action=action)


def _returned(function: FunctionType) -> tuple[RecordSpec, ...]:
    try:
        returned = get_type_hints(function).get("return")
    except Exception:  # an annotation of the user's that only a type checker can resolve
        return ()
    found: dict[str, RecordSpec] = {}
    pending = [returned]
    while pending:
        hint = pending.pop()
        if isinstance(hint, type) and issubclass(hint, Record) and hint is not Record:
            found[hint.__name__] = hint.__spec__
        else:
            pending.extend(get_args(hint))
    return tuple(found[name] for name in sorted(found))
