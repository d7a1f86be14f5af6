"""recrawl beside other frameworks."""
