"""What every ranker shares: parameters, the model file, the registry, tables for notebooks, and plots."""
