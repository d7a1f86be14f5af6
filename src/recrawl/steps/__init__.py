"""Read, ask `decide`, act: one module a step, in the order of the way of the data.

begin -> discover -> plan -> claim -> visit (fetch, judge bytes, read, judge content) -> settle -> advance -> close
"""
