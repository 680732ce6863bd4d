"""The service under load and faults, on this machine alone: `make soak` and `make fuzz`."""
