"""When a source rebuilds its pages: one event, and not a change of each page."""

from __future__ import annotations

from collections.abc import Collection

WINDOW = 100
ENOUGH = 20
ENOUGH_AT_END = 5
_MOST, _CALM = 0.5, 0.25


def rebuilt(moved: Collection[bool], *, looks: int, usual: int, at_end: bool = False) -> bool | None:
    """Whether pages are being built anew. `moved` tells of the last looks at known pages whether each found another
    structure than the page had; `looks` and `usual` count earlier looks, and those of them that did.

    True: most did, and that is not how the source always is. False: few did. None: neither can be said.
    """
    if len(moved) < (ENOUGH_AT_END if at_end else ENOUGH):
        return None
    share = sum(moved) / len(moved)
    if share > _MOST and usual <= _CALM * looks:
        return True
    return False if share < _CALM else None
