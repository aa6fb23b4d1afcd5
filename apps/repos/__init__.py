"""Repositories: git mirrors, sync, their documents and code."""
