"""File formats: one module reads and writes each."""
