"""How the tables came to be, step by step; `Database` takes a database from any step to the last."""
