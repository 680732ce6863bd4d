"""Alembic migrations; `Database` runs them."""
