"""Training data of a text ranker: documents, queries and judgments as given, and as matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.triples import Triples
from ..data.records import Documents, Qrels
from ..errors import DataError, count_of
from ..optim.candidate_lists import CandidateLists
from ..optim.problems import ListProblem
from ..preferences import Preferences, win_rates
from .document_names import DocumentNames
from .lexical import LexicalModel
from .query_groups import query_groups
from .query_vocabulary import QueryVocabulary, document_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class TrainingData:
    """Documents, queries, and the judgments that training can use.

    lexical_rows : the documents' rows of the lexical model; None until it is fitted.
    triples : the preferences that `qrels` was computed from, if the user gave triples.
    """

    documents: Documents
    queries: Mapping[str, str]
    qrels: Qrels
    exclude_self: bool = False
    query_weight: Mapping[str, float] | None = None
    query_group: Mapping[str, str] | None = None
    triples: Triples | None = None
    lexical_rows: csr_array | None = None

    @classmethod
    def validate(
        cls,
        documents: Documents,
        queries: Mapping[str, str] | None,
        qrels: Qrels | Triples | None,
        *,
        exclude_self: bool = False,
        query_weight: Mapping[str, float] | None = None,
        query_group: Mapping[str, str] | None = None,
        negative_grades: bool = False,
    ) -> TrainingData:
        """Check the data and drop judgments without effect.

        Raises DataError for a judged query without a text and for a judged document that is not in the collection.
        A negative grade means that a document is worse than unjudged ones; `negative_grades=False` drops these.
        """
        queries, triples = queries or {}, None
        if isinstance(qrels, Triples):
            triples, qrels = qrels, win_rates(qrels.query, qrels.better, qrels.worse, qrels.weight)
        _check_judgments(documents, queries, qrels := {} if qrels is None else qrels)
        for query, weight in (query_weight or {}).items():
            if validation.number(f"query_weight[{query!r}]", weight) <= 0.0:
                raise DataError(f"The weight of query {query!r} must be above 0. Got {weight} instead.")

        def teaches(query: str, document: str, grade: float) -> bool:
            return (grade > 0 or (negative_grades and grade < 0)) and not (exclude_self and document == query)

        used = {q: {d: grade for d, grade in grades.items() if teaches(q, d, grade)} for q, grades in qrels.items()}
        used = {query: grades for query, grades in used.items() if grades}
        return cls(documents, queries, used, exclude_self, query_weight, query_group, triples)

    def require_relevant(self, qrels: Qrels | Triples | None) -> None:
        """Raise DataError if judgments were given and none of them says that a document is relevant."""
        if qrels is None or self.qrels:
            return
        n = len(qrels) if isinstance(qrels, Triples) else sum(map(len, qrels.values()))
        raise DataError(
            f"{'qrels has no judgments' if n == 0 else f'none of the {n:,} judgments has a grade above 0'}; give at "
            "least one relevant document, or no qrels for the lexical score alone"
        )

    @property
    def texts(self) -> list[str]:
        """The texts of the judged queries, in the order of `qrels`."""
        return [self.queries[query] for query in self.qrels]

    def encode(self, lexical: LexicalModel, vocabulary: QueryVocabulary) -> TrainingMatrices:
        """Return the data as matrices."""
        position = {document: i for i, document in enumerate(self.documents.ids)}
        D = document_rows(lexical.features, self.lexical_rows)
        return self.to_matrices(lexical, vocabulary, position, self.lexical_rows, D)

    def to_matrices(
        self, lexical: LexicalModel, vocabulary: QueryVocabulary, position: dict[str, int], lexical_rows: Any, D: Any
    ) -> TrainingMatrices:
        """Return the data as matrices, given the rows of documents and the row of each judged document."""
        ids, weights = list(self.qrels), self.query_weight
        excluded = np.array([position.get(q, -1) if self.exclude_self else -1 for q in ids], np.int64)
        weight = None if not weights else np.array([float(weights.get(q, 1.0)) for q in ids])
        grades = grade_matrix(self.qrels, ids, position, int(D.shape[0]))
        lists = ListProblem(vocabulary.encode(self.texts), D, grades, weight)
        return TrainingMatrices(lists, LexicalRows(lexical.queries(self.texts), lexical_rows), excluded)

    def document_names(self, lexical: LexicalModel) -> DocumentNames:
        """Return the names of the documents."""
        return DocumentNames.of(lexical.features, self.documents.titles, self.documents.texts)

    @property
    def declared_groups(self) -> NDArray[np.int64] | None:
        """A number for the group that the user gave each judged query, -1 for none; None without groups."""
        return group_numbers(self.qrels, self.query_group)

    def preferences(self, queries: list[str]) -> Preferences:
        """Return the preferences of some queries: the given triples, or those that the grades imply."""
        documents = list(self.documents.ids)
        if self.triples is None:
            qrels = {q: self.qrels[q] for q in queries}
            return Preferences.from_qrels(qrels, queries, documents, exclude_self=self.exclude_self)
        return next(Preferences.stream([self.triples.with_text_ids()], queries, documents, missing="drop"))


def _check_judgments(documents: Documents, queries: Mapping[str, str], qrels: Qrels) -> None:
    _require_mapping("queries must be {id: text}", queries)
    _require_mapping("qrels must be {query id: {document id: grade}}", qrels)
    for query, grades in qrels.items():
        _require_mapping(f"qrels[{query!r}] must be {{document id: grade}}", grades)
    if unknown := [query for query in qrels if query not in queries]:
        raise DataError(f"no text for {count_of(len(unknown), 'judged query')}, the first is {unknown[0]!r}")
    known = set(documents.ids)
    if absent := list(dict.fromkeys(d for grades in qrels.values() for d in grades if d not in known)):
        raise DataError(
            f"{count_of(len(absent), 'judged document')} not among the documents, the first is {absent[0]!r}"
        )
    for query, grades in qrels.items():
        for document, grade in grades.items():
            if not isinstance(grade, Real) or not np.isfinite(float(grade)):
                raise DataError(
                    f"the grade of document {document!r} for query {query!r} must be a finite number; got {grade!r}"
                )


def _require_mapping(sentence: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise DataError(f"{sentence}; got {type(given).__name__}")


class LexicalRows(NamedTuple):
    """The lexical score of query i and document j is the product of their rows."""

    queries: csr_array
    documents: csr_array


@dataclass(frozen=True)
class TrainingMatrices:
    """Judged queries as matrices.

    lists : rows of queries and documents for pairs, and grades.
    lexical : rows of queries and documents for the lexical score.
    excluded : the document that each query must not find, or -1.
    groups : queries with the same number are held out together; None: each query is a group of its own.
    named : the share of a title that each query is; None: no query is the name of a document.
    """

    lists: ListProblem
    lexical: LexicalRows
    excluded: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None
    named: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return int(self.lists.Q.shape[0])

    def __getitem__(self, queries: NDArray[np.intp]) -> TrainingMatrices:
        lexical = LexicalRows(self.lexical.queries[queries], self.lexical.documents)
        groups = None if self.groups is None else self.groups[queries]
        named = None if self.named is None else self.named[queries]
        return TrainingMatrices(self.lists.select_queries(queries), lexical, self.excluded[queries], groups, named)

    @property
    def group_numbers(self) -> NDArray[np.int64]:
        """The group of each query."""
        return np.arange(len(self)) if self.groups is None else self.groups

    def with_lexical_scores(self, candidates: CandidateLists, n_jobs: int | None = None) -> CandidateLists:
        """Return the candidate lists with their lexical scores as base."""
        from scipy.sparse import eye_array

        queries, documents = self.lexical
        identity = eye_array(documents.shape[1], dtype=np.float32, format="csr")
        return replace(candidates, base=candidates.score(queries, identity, documents, validation.threads(n_jobs)))

    def grouped(self, vocabulary: QueryVocabulary, declared: NDArray[np.int64] | None = None) -> TrainingMatrices:
        """Return the same data with groups of near-duplicates, joined with the declared groups.

        An excluded document counts as relevant here.
        """
        from scipy.sparse import csr_array

        lists, has_own = self.lists, np.flatnonzero(self.excluded >= 0)
        own = (np.ones(len(has_own), np.float32), (has_own, self.excluded[has_own]))
        relevant = (lists.relevant + csr_array(own, shape=lists.grades.shape)).tocsr()
        return replace(self, groups=query_groups(lists.Q[:, ~vocabulary.is_neighbors], relevant, declared))


def group_numbers(queries: Iterable[str], query_group: Mapping[str, str] | None) -> NDArray[np.int64] | None:
    """Return a number for the given group of each query, -1 for none; None without groups.

    >>> group_numbers(["a", "b", "c"], {"a": "x", "c": "x"}).tolist()
    [0, -1, 0]
    """
    if not query_group:
        return None
    groups = [query_group.get(query) for query in queries]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(groups))} | {None: -1}
    return np.array([numbers[name] for name in groups], np.int64)


def grade_matrix(
    qrels: Qrels, query_ids: list[str], position: dict[str, int], n_documents: int | None = None
) -> csr_array:
    """Return the grades as a matrix of queries × documents; grade 0 equals unjudged."""
    from scipy.sparse import csr_array

    entries = [(i, position[d], grade) for i, q in enumerate(query_ids) for d, grade in qrels[q].items() if grade]
    shape = (len(query_ids), len(position) if n_documents is None else n_documents)
    if not entries:
        return csr_array(shape, dtype=np.float32)
    row, column, grade = (np.array(part) for part in zip(*entries, strict=True))
    return csr_array((grade.astype(np.float32), (row, column)), shape=shape)
