"""Proposers: functions from the pages of one source to edges that somebody may want to write."""
