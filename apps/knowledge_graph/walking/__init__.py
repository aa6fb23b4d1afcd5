"""Steps over a reader's graph: the statements, and the order in which what they reach is ranked."""
