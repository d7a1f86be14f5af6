"""The schema: one definition for both databases.

Names of tables and columns are public contracts. `migrations/` creates them; a test holds the two together.
Counts of attempts, tokens and leases belong to workers; everything else is a statement about the source.
"""

from recrawl.store.tables.columns import metadata
from recrawl.store.tables.content import WATCHED, aliases, bodies, documents, members, pages, sources, versions, yields
from recrawl.store.tables.upkeep import budgets, counters, events, hosts, profiles, tokens, trust
from recrawl.store.tables.work import batch_tasks, batches, charges, cursors, cycles, dead_letters, pushes, runs, tasks

__all__ = [
    "WATCHED",
    "aliases",
    "batch_tasks",
    "batches",
    "bodies",
    "budgets",
    "charges",
    "counters",
    "cursors",
    "cycles",
    "dead_letters",
    "documents",
    "events",
    "hosts",
    "members",
    "metadata",
    "pages",
    "profiles",
    "pushes",
    "runs",
    "sources",
    "tasks",
    "tokens",
    "trust",
    "versions",
    "yields",
]
