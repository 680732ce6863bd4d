"""How the tables came to be, step by step; `database.migrate` takes a database from any step to the last."""
