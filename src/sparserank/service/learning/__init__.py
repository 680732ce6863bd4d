"""Learning from feedback: grades, candidates, the gate that a new version must pass, rounds, and the learner."""
