"""The search service: HTTP routes, feedback store, and learning from feedback."""
