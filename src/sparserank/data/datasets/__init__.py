"""The named data sets: their catalog, their download, and one loader each."""
