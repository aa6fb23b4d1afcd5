"""Lint of the graph: what is looked at, the rules, and the forms in which findings leave."""
