"""A PyTerrier transformer that retrieves and re-ranks; no Java starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import validation
from ..search.filters import FilterLike
from ..text_ranker import TextRanker
from .requirement import require
from .results import FromModel, find

require("pyterrier", "1.0")

import pandas as pd  # noqa: E402
import pyterrier as pt  # noqa: E402

__all__ = ["SparseRankTransformer"]


class SparseRankTransformer(FromModel, pt.Transformer):
    """A text ranker as a stage of PyTerrier pipelines.

    For a frame with the columns `qid` and `query`, k documents are found for each query. If the frame has the column
    `docno` too, these documents are scored again and ranked, and all of them stay. Other columns of the frame stay.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index. `from_model` loads it from a file.
    k : int, default=10
        The largest number of documents of a search.
    filter : str, mapping or None, default=None
        Only documents with this metadata are found, as in `TextRanker.search`. Re-ranking ignores it.
    explain : int or None, default=0
        If not 0, a search adds the column `explanation` with so many word pairs; None is all of them.
    text : bool, default=False
        Whether a search adds the columns `title` and `text`.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": "red apples", "d2": "a green apple", "d3": "a pear"})
    >>> found = SparseRankTransformer(ranker).search("red apple")
    >>> found[["qid", "docno", "rank"]].values.tolist()
    [['1', 'd1', 0], ['1', 'd2', 1]]
    """

    def __init__(
        self,
        ranker: TextRanker,
        k: int = 10,
        filter: FilterLike | None = None,
        explain: int | None = 0,
        text: bool = False,
    ) -> None:
        self.ranker, self.k, self.filter, self.explain, self.text = ranker, k, filter, explain, text
        validation.count("k", k, low=1)

    def __repr__(self) -> str:
        return f"SparseRankTransformer(k={self.k})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for queries, or re-rank documents.

        Parameters
        ----------
        inp : DataFrame
            The queries (`qid`, `query`), or the results (`qid`, `query`, `docno`).

        Returns
        -------
        DataFrame
            The results, with `docno`, `score` and `rank`; the first rank is 0.
        """
        with pt.validate.any(inp, context=self) as checked:
            checked.query_frame(["query"], mode="retrieve")
            checked.result_frame(["query"], mode="rerank")
        return self._rerank(inp) if checked.mode == "rerank" else self._retrieve(inp)

    def _retrieve(self, queries: pd.DataFrame) -> pd.DataFrame:
        columns = ["docno", "score", "rank"]
        columns += ["title", "text"] * self.text + ["explanation"] * (self.explain != 0)
        rows: list[tuple[Any, ...]] = []
        for number, query in enumerate(queries["query"]):
            if not self.text and self.explain == 0:
                hits = enumerate(self.ranker.search(query, self.k, filter=self.filter))
                rows += [(number, hit.id, hit.score, rank) for rank, hit in hits]
                continue
            for rank, one in enumerate(find(self.ranker, query, self.k, self.filter, self.explain)):
                more = {
                    "title": one.metadata["title"],
                    "text": one.text,
                    "explanation": one.metadata.get("explanation"),
                }
                rows.append((number, one.id, one.score, rank, *(more[name] for name in columns[3:])))
        found = pd.DataFrame(rows, columns=["row", *columns]).astype({"row": int, "score": float, "rank": int})
        queries = queries.drop(columns=columns, errors="ignore")
        repeated = queries.iloc[found.pop("row").to_numpy()].reset_index(drop=True)
        return pd.concat([repeated, found], axis=1)

    def _rerank(self, results: pd.DataFrame) -> pd.DataFrame:
        scores, ranks = np.zeros(len(results)), np.zeros(len(results), dtype=int)
        for (_, query), rows in results.groupby(["qid", "query"], sort=False).indices.items():
            docs = results["docno"].to_numpy()[rows]
            scores[rows] = self.ranker.scores([query], docs.tolist())[0]
            best_first = sorted(range(len(rows)), key=lambda i: (scores[rows[i]], docs[i]), reverse=True)
            ranks[rows[best_first]] = np.arange(len(rows))
        out = results.assign(score=scores, rank=ranks)
        return out.sort_values(["qid", "rank"], kind="stable").reset_index(drop=True)
