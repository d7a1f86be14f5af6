"""What a token of the HTTP service allows."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    PUSH = "push"  # send records
    READ = "read"  # sources, pages, changes, tasks, dead letters
    OPERATE = "operate"  # replay and drop dead letters
