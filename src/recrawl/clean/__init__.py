"""Dicts to records: validation, values, fingerprints."""
