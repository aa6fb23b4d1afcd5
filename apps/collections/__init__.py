"""Collections of uploaded markdown."""
