"""BilinearRanker: s(q, d) = qᵀ W d with a sparse W (Chen et al., 2010, Algorithm 1)."""
