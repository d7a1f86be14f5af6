"""Bytes to dicts: HTML, JSON, articles; character encodings."""
