"""Embedders: what they are asked and what they answer, and which one is set."""
