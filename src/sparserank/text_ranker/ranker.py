"""TextRanker: learn to rank texts from documents and judged queries, and search them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import validation
from ..base.ranker import Ranker, State
from ..data.files import PathLike
from ..data.formats.tensors import Tensors
from ..data.formats.triples import Triples
from ..data.frames import as_qrels, as_queries
from ..data.page_queries import as_sources
from ..data.records import Documents, Qrels
from ..deprecated import renamed_parameters
from ..errors import ConfigError
from ..optim.pattern_ridge import PatternRidge
from ..optim.pruning import PairBudget
from ..preferences import Preferences
from ..search import Index
from ..text import Analyzer
from ..text.analyzer import as_analyzer
from .constraints import Constraints
from .dense import Dense, TrainingVectors, tune_dense
from .dense_search import dense_path
from .field_weights import fit_lexical
from .incremental import train_more
from .indexed_model import Docs, OtherIndex
from .lexical import BM25, LEXICAL, Cosine, LexicalModel, as_lexical
from .memory import check_texts, parse_memory
from .model import TextModel
from .pair_editor import PairEditor
from .pair_learner import PairLearner
from .parameters_of_0_1 import flat_parameters, nest_parameters
from .progress import Callback
from .query_log import typed_queries
from .size_path import TextPath, sorted_sizes, text_path
from .synonyms import Synonyms, as_synonyms
from .training import Trainer
from .training_data import TrainingData
from .weak_supervision import WEAK_SOURCES, WeakSupervision

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KINDS = ("text", "bilinear", *LEXICAL)
OLD_FIT_PARAMETERS = {"drop_self": "exclude_self", "tell": "callback"}


def _silent(message: str) -> None:
    """The callback if the caller gives none."""


@flat_parameters
@dataclass(eq=False, repr=False)
class TextRanker(PairEditor, Ranker):
    """Rank documents by a lexical score and by word pairs that are learned from judged queries.

        score = lexical + pair_weight · qᵀ W d

    Hyperparameters are tuned on a held-out quarter of the judged queries. If word pairs do not beat the lexical score
    there, the model keeps the lexical score alone and logs a warning.

    Parameters
    ----------
    ranker : {"text", "bilinear", "bm25", "cosine"}, default="text"
        "text" learns pairs. "bilinear" learns them by the hinge steps of Chen et al. (2010). "bm25" and "cosine" are
        lexical scores without pairs.
    lexical : BM25, Cosine, "bm25" or "cosine", default="bm25"
        The lexical score.
    analyzer : Analyzer, str or None, default="english"
        How texts are split into words. A string is a language, None is `Analyzer()`.
    loss : {"domination", "softmax", "hinge", "squared"}, default="domination"
        The loss. The squared loss finds the pairs. The others continue from there if this helps held-out queries:
        "domination" and "softmax" compare each relevant document with all others, "hinge" uses triples.
    penalty : {"ridge", "l1"}, default="ridge"
        "ridge" prunes the least important pairs. "l1" needs the squared loss.
    max_pairs : int or None, default=None
        The largest number of pairs: 300,000 unless `max_pairs`, `density` or `megabytes` is given.
    density : float or None, default=None
        The number of pairs as a fraction of all possible ones.
    megabytes : float or None, default=None
        The size of the pairs.
    pairs_per_word : int or None, default=None
        The largest number of pairs of one query word.
    nonnegative : bool, default=False
        Whether all weights of pairs are positive; some search engines need this.
    constraints : Constraints or None, default=None
        Pinned weights, forbidden pairs and forbidden words. `pin`, `forbid`, `forbid_word` and `free` change it.
    synonyms : Synonyms or None, default=None
        Synonyms of your own, which queries find beside learned pairs; `use_synonyms` changes them.
    random_state : int, default=0
        Decides which queries are held out.
    n_jobs : int or None, default=None
        The number of threads; None uses all cores. The result does not depend on it.
    memory_limit : int, str or None, default=None
        The memory of texts and training, in bytes or as a string such as "8GB"; None is half of the free memory. With a
        lower limit, fewer words have pairs. A collection that cannot fit raises ConfigError before training starts.

    Attributes
    ----------
    model_ : TextModel
        The fitted model.
    index_ : Index
        The index of the documents.

    Examples
    --------
    >>> ranker = TextRanker().fit({"d1": "red apples are sweet", "d2": "a green pear"})
    >>> [hit.id for hit in ranker.search("sweet red")]
    ['d1']
    """

    ranker: str = "text"
    _: KW_ONLY
    lexical: BM25 | Cosine | str = "bm25"
    analyzer: Analyzer | str | None = "english"
    loss: str = "domination"
    penalty: str = "ridge"
    max_pairs: int | None = None
    density: float | None = None
    megabytes: float | None = None
    pairs_per_word: int | None = None
    nonnegative: bool = False
    constraints: Constraints | None = None
    synonyms: Synonyms | None = None
    random_state: int = 0
    n_jobs: int | None = None
    memory_limit: float | str | None = None

    _file_kind = "text"

    @renamed_parameters(OLD_FIT_PARAMETERS)
    def fit(
        self,
        docs: Docs,
        queries: Mapping[str, str] | None = None,
        qrels: Qrels | Triples | Preferences | None = None,
        *,
        learn_from: str | Sequence[str] = "judgments",
        fields: Sequence[str] | None = None,
        query_weight: Mapping[str, float] | None = None,
        query_group: Mapping[str, str] | None = None,
        exclude_self: bool = False,
        dense: Dense | tuple[Any, Any] | None = None,
        callback: Callback = _silent,
        checkpoint: PathLike | None = None,
        solver: PatternRidge | None = None,
    ) -> Self:
        """Learn from documents and judged queries.

        Parameters
        ----------
        docs : mapping, or table of pandas, polars or Arrow
            {id: text}, {id: {"title": …, "text": …}} with any further fields, or a table with a column `id`.
        queries : mapping of str to str, or table, default=None
            The text of each query id; a table has the columns id and text.
        qrels : mapping, table, Triples or Preferences, default=None
            {query id: {document id: grade}}, or a table with the columns query, document and grade; an unjudged
            document has grade 0. With Triples (`data.read_triples`), the grade of a document is its win rate, and
            "bilinear" uses the triples. With `Preferences.from_labels`, documents are queries for their class.
        learn_from : str or sequence of str, default="judgments"
            "judgments" (or "clicks") learns from queries and qrels. "titles", "openings", "headings", "links" and
            "mentions" learn from queries that the documents have (`data.training_queries`), "log" from the queries
            without judgments, whose best documents count as relevant; a comma separates several. Pairs are kept only if
            they help held-out judged queries, or held-out pages if there are no judgments.
        fields : sequence of str or None, default=None
            The fields of documents that are searched beside title and text; None detects them (`Documents.of`). With
            further fields the lexical score is BM25F (`BM25(field_weights=)`); `lexical_.weight_of_field` has all
            searched fields.
        query_weight : mapping of str to float, default=None
            The weight of each query; 1 by default.
        query_group : mapping of str to str, default=None
            The source of each query, such as a site or a user. Queries of one source are held out together, so that
            pairs are kept only if they help queries of new sources. Near-duplicate queries always stay together.
        exclude_self : bool, default=False
            Whether a query never finds the document with its own id.
        dense : Dense or tuple (Q, D), default=None
            Vectors of queries and documents by any embedding model, as rows or as {id: vector}. Their cosine is a third
            part of the score, at the weight that is best on held-out queries; 0 if it does not help. `Dense` names
            them. `search` then needs the vector of a query (`dense=`).
        callback : callable, default=None
            Called with a message when a step of the training starts.
        checkpoint : path-like or None, default=None
            A file for the completed stages of the training. The same call continues from there after a crash, with the
            same result. The file is removed at the end.
        solver : PatternRidge or None, default=None
            The solver of the squared loss.

        Examples
        --------
        >>> ranker = TextRanker("bm25").fit({"d1": "apple", "d2": "pear"})
        >>> ranker.search("apple")
        [1. d1 (0.3648)]
        """
        documents = Documents.of(docs, fields)
        sources = as_sources(learn_from)
        weak, queries, qrels = [one for one in sources if one in WEAK_SOURCES], as_queries(queries), as_qrels(qrels)
        typed = typed_queries(weak, queries, qrels)
        if len(weak) == len(sources):
            queries = qrels = None
        trainer = replace(self.trainer(callback, solver), checkpoint=checkpoint)
        if isinstance(qrels, Preferences):
            if dense is not None:
                raise ConfigError("dense needs queries and qrels; class labels have none")
            rows = trainer.lexical.fit(documents)
            self.model_ = trainer.train_from_labels(documents, rows, qrels)
            self.__dict__.pop("dense_", None)
            return self._build_index(rows, documents)
        data = TrainingData.validate(
            documents, queries, qrels, exclude_self=exclude_self, query_weight=query_weight, query_group=query_group
        )
        if self.ranker not in LEXICAL:
            data.require_relevant(qrels)
        vectors = None if dense is None else TrainingVectors.validate(data, dense)
        if self.ranker not in LEXICAL and data.qrels:
            characters = sum(map(len, documents.texts)) + sum(map(len, documents.titles))
            check_texts(characters, len(documents), trainer.memory_limit)
        rows = fit_lexical(trainer.lexical, documents, data, self.random_state, callback)
        data = replace(data, lexical_rows=rows)
        if self.ranker not in LEXICAL and data.qrels:
            model = trainer.train(data, by_steps=self.ranker == "bilinear")
        else:
            model = TextModel(trainer.lexical, constraints=trainer.constraints)
        score = None if vectors is None else tune_dense(trainer, model, data, vectors)
        if weak:
            model = WeakSupervision.of(trainer, model, data, weak, typed).train()
        self.model_ = model if score is None else replace(model, dense=score)
        self.__dict__.pop("dense_", None)
        if vectors is not None:
            self.dense_ = vectors.documents
        callback("building the index")
        return self._build_index(rows, documents)

    @renamed_parameters(OLD_FIT_PARAMETERS)
    def partial_fit(
        self,
        docs: Docs | None,
        queries: Mapping[str, str],
        qrels: Qrels,
        *,
        exclude_self: bool = False,
        callback: Callback = _silent,
    ) -> Self:
        """Learn from more judged queries.

        Pairs are learned from the residual of the scores and added to the existing ones, within the same budget. The
        vocabulary of documents and the hyperparameters stay. A ranker without pairs learns its first ones like `fit`.

        Parameters
        ----------
        docs : mapping or None
            More documents, as in `fit`.
        queries, qrels, exclude_self, callback : mapping, mapping, bool and callable
            As in `fit`. A negative grade means that a document is worse than unjudged ones.
        """
        if not hasattr(self, "model_"):
            docs = {} if docs is None else docs
            return self.fit(docs, queries, qrels, exclude_self=exclude_self, callback=callback)
        trainer = replace(self.trainer(callback), lexical=self.lexical_)
        documents = self._require_index().input_documents
        if docs is not None:  # a new document replaces an old one of the same id
            added = self._more_documents(docs)
            documents = documents.updated(added)
            self._without_vectors(added.ids)
        has_pairs, n_terms = self.model_.W is not None, self.model_.n_terms
        data = TrainingData.validate(documents, queries, qrels, exclude_self=exclude_self, negative_grades=has_pairs)
        if self.ranker != "text":
            raise ConfigError(f"a {self.ranker} ranker learns no pairs; use TextRanker('text')")
        data = replace(data, lexical_rows=self.lexical_.documents(documents))
        if has_pairs:
            model = self.model_
            if trainer.constraints != model.constraints:
                model = model.with_constraints(trainer.constraints)
            self.model_ = train_more(model, data, trainer.learner, callback)
        else:
            self.model_ = replace(trainer.train(data), dense=self.model_.dense)
        if docs is None and self.model_.n_terms == n_terms:
            return self
        return self._build_index(data.lexical_rows, documents)

    @renamed_parameters(OLD_FIT_PARAMETERS)
    def path(
        self,
        docs: Docs,
        queries: Mapping[str, str],
        qrels: Qrels,
        sizes: Sequence[int] = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
        *,
        exclude_self: bool = False,
        callback: Callback = _silent,
    ) -> TextPath:
        """Measure accuracy against size on held-out training queries; the ranker does not change.

        Every size uses the squared loss.

        Parameters
        ----------
        docs, queries, qrels, exclude_self, callback : mapping, mapping, mapping, bool and callable
            As in `fit`.
        sizes : sequence of int, default=(3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
            Numbers of pairs.
        """
        trainer = replace(self.trainer(callback), constraints=Constraints())
        numbers, documents = sorted_sizes(sizes), Documents.of(docs)
        data = TrainingData.validate(documents, queries, qrels, exclude_self=exclude_self)
        learner, matrices, _ = trainer.prepare(replace(data, lexical_rows=trainer.lexical.fit(documents)))
        return text_path(learner, matrices, numbers, callback)

    # ---- parameters and files

    def validate(self) -> None:
        """Check all parameters, as `fit` does; raises ConfigError."""
        self.trainer(_silent)

    def trainer(self, callback: Callback = _silent, solver: PatternRidge | None = None) -> Trainer:
        """Return the trainer of the model, with all parameters checked; raises ConfigError.

        Parameters
        ----------
        callback, solver : callable, and PatternRidge or None
            As in `fit`.
        """
        validation.choice("ranker", self.ranker, KINDS)
        validation.count("random_state", self.random_state, low=0)
        validation.threads(self.n_jobs)
        budget = PairBudget(self.max_pairs, self.density, self.megabytes, self.pairs_per_word, self.nonnegative)
        settings: dict[str, Any] = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        learner = PairLearner(budget, self.loss, self.penalty, solver=solver or PatternRidge(), **settings)
        return Trainer(self.lexical_model(), learner, self._constraints(), callback, parse_memory(self.memory_limit))

    def lexical_model(self) -> LexicalModel:
        """Return the lexical part before it is fitted."""
        scoring = as_lexical(self.lexical)
        if self.ranker in LEXICAL and LexicalModel(scoring).kind != self.ranker:
            scoring = as_lexical(self.ranker)
        return LexicalModel(scoring, as_analyzer(self.analyzer), as_synonyms(self.synonyms))

    def _build_index(self, lexical_rows: csr_array | None, documents: Documents) -> Self:
        rows = self.model_.index_rows(lexical_rows)
        self.index_ = Index.build(rows, documents, made_for=self.fingerprint())
        return self

    def save(self, path: PathLike) -> None:
        """Write the model, the index as `PATH.index` and vectors as `PATH.dense`; each file completely or not at all.

        Parameters
        ----------
        path : str or path
            The model file.
        """
        super().save(path)
        if hasattr(self, "index_"):
            self.index_.save(index_path(path))
        self._save_vectors(dense_path(path))

    def _state(self) -> State:
        return self.fitted_model().state()

    def _restore(self, file: Tensors) -> None:
        self.model_ = TextModel.from_file(file)

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        if "params" in file.settings:
            params = super()._file_params(file)
            return nest_parameters(params, params.get("ranker"))
        # early files of 0.1 hold the parameters of the lexical part only; the others get their defaults
        model = TextModel.from_file(file)
        lexical, ranker = model.lexical, model.lexical.kind if model.W is None else "text"
        params = {"ranker": ranker, "lexical": lexical.scoring, "analyzer": lexical.analyzer}
        return params | {"constraints": model.constraints or None}

    def _load_index(self, path: PathLike, index: PathLike | None) -> None:
        where = index_path(path) if index is None else Path(index)
        if index is not None or where.exists():
            loaded = Index.load(where)
            if loaded.made_for != self.fingerprint() or loaded.n_terms != self.model_.n_terms:
                raise OtherIndex(f"{where}: built for another model than {path}; build it again: `sparserank index`")
            self.index_ = loaded
        self._load_vectors(dense_path(path))


def index_path(model: PathLike) -> Path:
    """Return the path of the index of a model file.

    Parameters
    ----------
    model : str or path
        The model file.

    Examples
    --------
    >>> index_path("model.safetensors").name
    'model.safetensors.index'
    """
    return Path(f"{model}.index")
