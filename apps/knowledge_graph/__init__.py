"""Typed nodes, edges and evidence: a projection of canonical markdown."""
