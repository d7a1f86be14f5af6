"""Taking a page back to an older version, until its source changes again.

What the source shows at that time is remembered as overruled. While it shows just that, whatever its bytes and whoever
reads them by whatever rules, it has not changed, and the operator's word stands.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from recrawl.errors import Permanent
from recrawl.model.settlement import NewVersion, OldVersion, PageFacts, TaskEnd, Verdict
from recrawl.model.work import PageState, Stage, TaskState

_WITH_DATA = (PageState.ACTIVE, PageState.FAILING, PageState.SUSPECTED, PageState.REFUSED)


def still_overruled(page: PageFacts, content_hash: str, *, reread: bool) -> bool:
    """Whether what was read is only what an operator set aside. `reread`: the bytes are those that were read before."""
    if page.overruled is None or page.deleted_at is not None:
        return False
    return reread or content_hash == page.overruled


def revert(page: PageFacts, old: OldVersion, now: datetime) -> Verdict | None:
    """The page with the content of an older version, as a new one; None where it has that content already.

    The place in the order of versions stays: this says nothing of what the source will tell next. Raises Permanent for
    a page that has no current content, and for a version without any.
    """
    if page.status not in _WITH_DATA:
        raise Permanent(
            f"the page is {page.status}: it has no current content",
            place=page.url,
            action="Look at its versions with `recrawl show`.",
        )
    if old.kind == "deleted":
        raise Permanent(
            f"version {old.version} says that the page was gone",
            place=page.url,
            action="Name the one before it.",
        )
    if old.content_hash == page.content_hash:
        return None
    shown = page.overruled or page.content_hash
    changed = replace(
        page,
        version=page.version + 1,
        content_hash=old.content_hash,
        overruled=None if shown == old.content_hash else shown,
        last_changed_at=now,
    )
    version = NewVersion(
        version=changed.version,
        kind="reverted",
        content_hash=old.content_hash,
        raw_hash=old.raw_hash,
        reader_hash=old.reader_hash or "",
        final_url=old.final_url,
        content_type=old.content_type,
        source_updated_at=old.source_updated_at,
        fetched_at=now,
        order_key=page.order_key or 0,
        observed=page.observed,
    )
    return Verdict(
        page=changed,
        end=TaskEnd(state=TaskState.DONE, stage=Stage.SETTLE),
        count="reverted",
        version=version,
        rows=old.rows,
        event=("reverted", {"to": old.version, "version": changed.version}),
    )
