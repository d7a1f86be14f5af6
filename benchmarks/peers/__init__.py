"""Crawlers that recrawl is measured against. Each runs in a process and an environment of its own."""
