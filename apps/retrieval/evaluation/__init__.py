"""Measuring search on judged questions (``retrieval.md`` 15)."""
