"""Lists of addresses that come from no server: each is a document too."""

from __future__ import annotations

from hashlib import sha256

import orjson

from recrawl.discover.walk import BATCH, Listed
from recrawl.model.fetched import Validators
from recrawl.model.record import Json
from recrawl.steps.documents import Stream, sight, sightings
from recrawl.store import documents


async def take_list(stream: Stream, name: str, kind: str, urls: list[str]) -> None:
    """Take in a list as the document `name`, unless it is what it was: then its pages stay seen, at no cost."""
    tools, task = stream.tools, stream.task
    known = await tools.db(documents.document, task.source, stream.name, name)
    if known.cycle == stream.cycle:
        return
    hashed = sha256(orjson.dumps(urls)).hexdigest()
    if known.complete and known.hash == hashed and known.spec == tools.source.spec_hash:
        same = Validators()
        await tools.db(documents.still_the_same, task.id, task.token, known, cycle=stream.cycle, validators=same)
        found = await tools.db(documents.members_of, task.source, known)
        stream.count(found=found.listed, unchanged_hint=found.spared)
        return
    reading = await tools.db(documents.begin_reading, task.id, task.token, known)
    for start in range(0, len(urls), BATCH):
        part = [Listed(url, None) for url in urls[start : start + BATCH]]
        point: Json = {"cycle": stream.cycle, "document": name, "entries": start + len(part)}
        await sight(stream, known.id, reading, sightings(stream, part), point)
    await tools.db(
        documents.end_reading,
        task.id,
        task.token,
        known,
        cycle=stream.cycle,
        kind=kind,
        body_hash=hashed,
        validators=Validators(),
        spec=tools.source.spec_hash,
        complete=True,
    )
