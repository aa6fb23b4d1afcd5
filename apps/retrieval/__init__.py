"""One search over every store, inside what the reader may see, and why."""
