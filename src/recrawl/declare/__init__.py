"""What a user writes: sources, finders, records, fields and policies. Values only."""
