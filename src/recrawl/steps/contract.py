"""What becomes of pushed fields that no record declares: `contract = evolve | freeze | discard`.

`evolve` leaves them out and tells of each once, since one may be a field under a new name; `freeze` refuses the record;
`discard` leaves them out without a word. A newly declared field adds a column under evolve and discard, and is refused
under freeze. (dlt's modes of the same names; its `discard_value` is our discard, and bytes are kept in all of them.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recrawl.declare.specs import RecordSpec

_WORD = re.compile(r"\w+")


def known_names(specs: Iterable[RecordSpec]) -> frozenset[str]:
    """The raw names that these records read: names and aliases of fields, and the words of their JMESPaths."""
    known: set[str] = set()
    for spec in specs:
        known.update(_WORD.findall(spec.each or ""))
        for field in spec.fields:
            known.add(field.name)
            if field.selector is not None and field.selector.kind == "names":
                known.update(field.selector.exprs)
            elif field.selector is not None and field.selector.kind == "jmes":
                known.update(_WORD.findall(field.selector.exprs[0]))
    return frozenset(known)
