"""TextRanker: text in, search out. It stands on a model of words and word pairs, an index and the measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import validation
from ..base.ranker import Ranker, State
from ..data.files import PathLike
from ..data.formats.logs import Triples
from ..data.formats.tensors import Tensors
from ..data.records import Documents, Qrels
from ..errors import ConfigError, ModelError
from ..optim.pruning import PairBudget
from ..preferences import Preferences
from ..search import Index
from ..text import Analyzer
from .constraints import Change, Constraints, changes
from .editing import Constrained
from .from_labels import learned_from_classes
from .from_triples import learned_by_steps
from .incremental import more_learned
from .learning import How, Lesson, joined, learned, prepared
from .lexical import LexicalRanker, LexicalSettings
from .model import TextModel
from .pair_losses import checked
from .searching import Docs, Searching
from .size_path import TextPath, sizes_in_order, text_path

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KINDS = ("text", "bilinear", "bm25", "cosine")
LEXICAL = ("bm25", "cosine")

Tell = Callable[[str], None]


class OtherIndex(ModelError):
    """An index that was made for another model."""


class TextRanker(Constrained, Searching, Ranker):
    """Search over documents by words, and by word pairs learned from judged queries.

    ranker : 'text', a lexical score and learned pairs; 'bilinear', the same with pairs learned by the hinge steps of
        Chen et al.; or one of the lexical scores alone, 'bm25' (with k1 and b) or 'cosine' (sublinear tf-idf, unit
        length). lexical : which of the two the first ones stand on.
    max_pairs, density, megabytes : the most pairs that are kept, in one of these ways; 300,000 unless given.
    loss : 'squared' over all lists; or 'domination' or 'softmax' (each relevant document against all others, hard ones
        and those of a batch where they are too many) or 'hinge' on triples, each of which goes on from the squared one
        where that helps held-out queries. penalty : 'ridge', pairs cut by what they are worth; or 'l1'.
    pairs_per_word : the most pairs of one query word. nonnegative : no pair below 0, for engines that take none.
    title_weight, text_weight : how much a word counts in each field; 1 and 1 is "joined".
    stem, stop_words, ngrams : see `sparserank.text.Analyzer`; for texts that are not English say stem=None,
        stop_words=None, or name a Snowball language.
    constraints : weights of pairs that you fix, and pairs and words that you forbid; see `sr.Constraints`. Every fit
        keeps to them. `pin`, `forbid`, `forbid_word` and `free` update this parameter and the learned pairs at once.
    random_state : decides which queries are held out to choose on. n_jobs : threads; any number gives the same bits.

    How far pairs are held back, and how much they count beside the words, is chosen on a quarter of the judged queries.
    Where they do not help there, the lexical score is kept alone and a line is logged that says so.

    >>> ranker = TextRanker().fit({"d1": "red apples are sweet", "d2": "a green pear"})
    >>> [hit.id for hit in ranker.search("sweet red")]
    ['d1']
    >>> [pair.query for pair in ranker.explain("red and sweet", "d1").pairs]
    ['red', 'sweet']
    """

    _file_kind = "text"

    def __init__(
        self,
        ranker: str = "text",
        *,
        lexical: str = "bm25",
        loss: str = "domination",
        penalty: str = "ridge",
        max_pairs: int | None = None,
        density: float | None = None,
        megabytes: float | None = None,
        pairs_per_word: int | None = None,
        nonnegative: bool = False,
        k1: float = 0.9,
        b: float = 0.4,
        title_weight: float = 1.0,
        text_weight: float = 1.0,
        stem: str | None = "english",
        stop_words: str | Sequence[str] | None = "english",
        ngrams: int = 1,
        constraints: Constraints | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.ranker = ranker
        self.lexical = lexical
        self.loss = loss
        self.penalty = penalty
        self.max_pairs = max_pairs
        self.density = density
        self.megabytes = megabytes
        self.pairs_per_word = pairs_per_word
        self.nonnegative = nonnegative
        self.k1 = k1
        self.b = b
        self.title_weight = title_weight
        self.text_weight = text_weight
        self.stem = stem
        self.stop_words = stop_words
        self.ngrams = ngrams
        self.constraints = constraints
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        docs: Docs,
        queries: Mapping[str, str] | None = None,
        qrels: Qrels | Triples | Preferences | None = None,
        *,
        query_weight: Mapping[str, float] | None = None,
        drop_self: bool = False,
        tell: Tell = lambda message: None,
    ) -> Self:
        """Learn from documents and judged queries; a lexical ranker only checks the latter.

        docs : {id: text} or {id: {"title": …, "text": …}}; queries : {id: text}; qrels : {query id: {doc id: grade}},
        where a document that is not judged counts as grade 0.
        query_weight : how many queries each counts as, 1 unless it is named (how often it was asked, say).
        drop_self : a query never finds the document of its own id. tell : called with what is being done.

        Triples (`data.read_triples`) in place of qrels: a document's grade is the share it won of what it took part in;
        'bilinear' takes its steps on those very triples. With Preferences.from_labels every document is a query for
        those of its class.
        """
        size = self._judged()
        documents = Documents.of(docs)
        lexical = LexicalRanker(self._lexical_settings())
        edits = self._constrained()
        if isinstance(qrels, Preferences):
            weighted = lexical.fit(documents)
            self.model_ = learned_from_classes(
                lexical, documents, weighted, qrels, size, edits, self.random_state, self.n_jobs, tell
            )
            return self._indexed(weighted, documents)
        lesson = Lesson.of(documents, None, queries, qrels, drop_self, query_weight)  # refused before any work
        weighted = lexical.fit(documents)
        lesson = replace(lesson, weighted=weighted)
        if self.ranker not in LEXICAL and lesson.qrels:
            learn = learned if self.ranker == "text" else learned_by_steps
            self.model_ = learn(lexical, lesson, self._how(size), edits, tell)
        else:
            self.model_ = TextModel(lexical, edits=edits)
        return self._indexed(weighted, documents)

    def partial_fit(
        self,
        docs: Docs | None,
        queries: Mapping[str, str],
        qrels: Qrels,
        *,
        drop_self: bool = False,
        tell: Tell = lambda message: None,
    ) -> Self:
        """Learn from more judged queries, over the documents of the index and those given here (None: no new ones).

        Pairs are learned from what the scores still miss of these queries and added to those there are, within the
        same size; words and settings stay as they were fitted. A grade below 0 says that a document is worse than those
        nobody judged, and pushes it down. A ranker that was not fitted yet is fitted; one that has no pairs yet learns
        its first from these queries alone, and from grades above 0 only, as `fit` does.
        """
        if not hasattr(self, "model_"):
            return self.fit({} if docs is None else docs, queries, qrels, drop_self=drop_self, tell=tell)
        size = self._judged()
        there = self._searched().documents
        documents = there if docs is None else joined(there, Documents.of(docs))
        weighted = self.lexical_.documents(documents)
        lesson = Lesson.of(documents, weighted, queries, qrels, drop_self, below=self.model_.W is not None)
        if self.ranker != "text":
            raise ConfigError(f"a {self.ranker} ranker learns no pairs; TextRanker('text') does")
        width, edits = self.model_.n_terms, self._constrained()
        if self.model_.W is None:
            self.model_ = learned(self.lexical_, lesson, self._how(size), edits, tell)
        else:
            model = self.model_ if edits == self.model_.edits else self.model_.edited(edits)
            self.model_ = more_learned(model, lesson, self._how(size), tell)
        return self._indexed(weighted, documents) if docs is not None or self.model_.n_terms != width else self

    def path(
        self,
        docs: Docs,
        queries: Mapping[str, str],
        qrels: Qrels,
        sizes: Sequence[int] = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
        *,
        drop_self: bool = False,
        tell: Tell = lambda message: None,
    ) -> TextPath:
        """Accuracy against size, on the judged queries that `fit` would hold out; nothing of this ranker changes.

        Every size is learned by the squared loss, which is where the others go on from.
        """
        size, wanted = self._judged(), sizes_in_order(sizes)
        documents, lexical = Documents.of(docs), LexicalRanker(self._lexical_settings())
        lesson = Lesson.of(documents, lexical.fit(documents), queries, qrels, drop_self)
        learner, judged, _ = prepared(lexical, lesson, self._how(size), Constraints())
        return text_path(learner, judged, wanted, tell)

    def _indexed(self, weighted: csr_array, documents: Documents) -> Self:
        self.index_ = Index.build(self.model_.beside(weighted), documents, made_for=self.fingerprint())
        return self

    def _how(self, budget: PairBudget) -> How:
        return How(budget, self.loss, self.penalty, self.random_state, self.n_jobs)

    def _judged(self) -> PairBudget:
        validation.choice("ranker", self.ranker, KINDS)
        validation.choice("lexical", self.lexical, LEXICAL)
        checked(self.loss, self.penalty)
        validation.count("random_state", self.random_state, low=0)
        validation.threads(self.n_jobs)
        self._constrained()
        return PairBudget(self.max_pairs, self.density, self.megabytes, self.pairs_per_word, self.nonnegative)

    def _lexical_settings(self) -> LexicalSettings:
        stop_words = self.stop_words if isinstance(self.stop_words, str | None) else tuple(self.stop_words)
        return LexicalSettings(
            self.ranker if self.ranker in LEXICAL else self.lexical,
            self.k1, self.b, self.title_weight, self.text_weight,
            Analyzer(stem=self.stem, stop_words=stop_words, ngrams=self.ngrams),
        )  # fmt: skip

    def save(self, path: PathLike) -> None:
        """Write the model, and the index beside it as `PATH.index`; each file appears whole or not at all."""
        super().save(path)
        if hasattr(self, "index_"):
            self.index_.save(index_path(path))

    def _state(self) -> State:
        return self._fitted().state()

    def _restore(self, file: Tensors) -> None:
        self.model_ = TextModel.from_file(file)

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        if "params" in file.settings:
            return super()._file_params(file)
        # files of 0.1 hold no parameters but those of the lexical part; the others get their defaults
        model = TextModel.from_file(file)
        lexical = model.lexical.settings
        params = {name: getattr(lexical, name) for name in ("k1", "b", "title_weight", "text_weight")}
        params |= {name: getattr(lexical.analyzer, name) for name in ("stem", "stop_words", "ngrams")}
        kind = lexical.kind if model.W is None else "text"
        return params | {"ranker": kind, "lexical": lexical.kind, "constraints": model.edits or None}

    def _load_index(self, path: PathLike, index: PathLike | None) -> None:
        where = index_path(path) if index is None else Path(index)
        if index is not None or where.exists():
            found = Index.load(where)
            if found.made_for != self.fingerprint() or found.n_terms != self.model_.n_terms:
                raise OtherIndex(f"{where}: made for another model than {path}; make it again with `sparserank index`")
            self.index_ = found


def index_path(model: PathLike) -> Path:
    """Where the index of a model file lies."""
    return Path(f"{model}.index")


def diff(before: TextRanker, after: TextRanker, k: int | None = None) -> list[Change]:
    """The word pairs whose weights differ between two models, the largest difference first; gains are included."""
    return changes(before._fitted().named_pairs(), after._fitted().named_pairs(), k)
