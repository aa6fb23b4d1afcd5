"""Durable jobs over django-q2: queue, lease, progress, per-file report, retry, sweep."""
