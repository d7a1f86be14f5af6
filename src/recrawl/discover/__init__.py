"""Finders at work: given `fetch`, they turn documents into sightings."""
