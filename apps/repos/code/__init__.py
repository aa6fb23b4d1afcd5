"""Code of repositories: nodes, edges, chunks, mentions in documents, drift."""
