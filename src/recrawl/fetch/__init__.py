"""Bytes: http, robots, the address guard."""
