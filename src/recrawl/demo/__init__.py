"""A small site that misbehaves the way real sites do, to try recrawl on without troubling anybody."""
