"""What makes text searchable: analyzer, abstract chunk, postings, vectors and their profiles, embedders."""
