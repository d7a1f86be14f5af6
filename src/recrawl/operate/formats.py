"""The forms in which rows are exported."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    WARC = "warc"
