"""LETOR rankers of feature vectors with grades and query ids: fit(X, y, qid), predict(X)."""
