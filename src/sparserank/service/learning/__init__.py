"""Learning from feedback: grades, training rounds, and the gate that a new version must pass."""
