"""The stored graph: reading it back, applying differences, one document or the whole source at a time."""
