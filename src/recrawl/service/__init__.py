"""Over HTTP: records in, changes and dead letters out."""
