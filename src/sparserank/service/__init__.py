"""The HTTP service and its page: search, explanations, feedback, and a learner that improves the model with use."""
