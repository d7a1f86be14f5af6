"""Who drives the steps: the embedded engine. `wire` alone turns settings into objects."""
