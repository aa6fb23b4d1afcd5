"""Source code to structure: languages, symbols, signatures, calls, imports. No Django."""
