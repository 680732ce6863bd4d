"""One migration per file; a released migration never changes."""
