"""What a user holds: rankers with scikit-learn's manners."""
