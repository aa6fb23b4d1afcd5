"""Bytes to structure: encodings, front matter, one syntax tree, anchors, links, the two chunkers, safe HTML. No Django."""
