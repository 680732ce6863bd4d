"""Every version of a served model, and rollback."""
