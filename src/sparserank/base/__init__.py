"""What every ranker shares: parameters, their place in a model file, and plots."""
