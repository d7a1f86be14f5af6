"""Taking a page back to an older version."""

from __future__ import annotations

from datetime import datetime

from recrawl.store.database import Store
from recrawl.store.queries import PageRow
from recrawl.store.settle.revert import revert


def revert_page(store: Store, page: PageRow, version: int, now: datetime) -> int | None:
    """Make the content of an older version current until the source itself changes; the number of the new version.

    None where the page has that content already. Raises Permanent for a version or page without content.
    """
    return revert(store, page.id, version, now)
