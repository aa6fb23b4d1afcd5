"""Bytes to structure: encodings, front matter, one tree, anchors, links, both chunkers, safe HTML. No Django."""
