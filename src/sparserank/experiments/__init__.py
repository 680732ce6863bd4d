"""The papers' tables and figures, as code: each is one module with a `reproduce` that returns plain numbers."""
