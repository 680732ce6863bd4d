"""How many words a synonym rule adds and the least weight of a pair, chosen on held-out NFCorpus training queries.

    python -m benchmarks.synonym_defaults

The model trains on three quarters of the training queries; nDCG@10 is that of the last quarter, for BM25 of Lucene with
the rules of every setting. It prints a Markdown table: one row per number of words, one column per least weight.
"""

from __future__ import annotations

import numpy as np

import sparserank as sr
from sparserank.export import synonyms, vectors_of

from .export_loss import MEASURE, Answers, synonym_answers
from .markdown import table
from .training_queries import quarters, training_data

MOST = (1, 5, 10, 20, 40, 80)
AT_LEAST = (1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3)


def main() -> None:
    collection = sr.data.load("nfcorpus")
    lexical, data = training_data(collection)
    ((held, rest),) = quarters(lexical, data)
    ids = np.array(list(data.qrels))
    training, held_out = ({q: data.qrels[q] for q in ids[part].tolist()} for part in (rest, held))
    ranker = sr.TextRanker().fit(collection.documents, collection.queries, training)
    vectors, texts = vectors_of(ranker), {q: collection.queries[q] for q in held_out}

    def ndcg(answers: Answers) -> str:
        run = {q: {d: float(-rank) for rank, (d, _) in enumerate(found)} for q, found in answers.items()}
        return f"{sr.evaluation.evaluate_run(run, held_out, MEASURE)[MEASURE].value:.4f}"

    rows = [{"name": "no synonyms", f"{AT_LEAST[0]:.3f}": ndcg(synonym_answers(vectors, texts, []))}]
    for most in MOST:
        found = {
            f"{least:.3f}": ndcg(synonym_answers(vectors, texts, synonyms.rules(vectors, most, least)))
            for least in AT_LEAST
        }
        rows.append({"name": f"at most {most}"} | found)
    print(table(rows))


if __name__ == "__main__":
    main()
