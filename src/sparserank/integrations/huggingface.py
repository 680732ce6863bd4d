"""Text rankers on the Hugging Face Hub, with a generated model card."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from .. import __version__
from ..base.registry import load
from ..data.files import PathLike
from ..errors import DataError, ModelError
from ..evaluation import Evaluation
from ..text_ranker import TextRanker, index_path
from ..text_ranker.dense_search import dense_path
from .requirement import require

__all__ = ["from_pretrained", "model_card", "push_to_hub", "save_pretrained"]
MODEL_FILE = "model.safetensors"
CARD_FILE = "README.md"
MAX_CARD_PAIRS = 20
_LOADING = """\
```python
from sparserank.integrations.huggingface import from_pretrained

ranker = from_pretrained({name!r})
ranker.search("your words", k=10{vector})
```"""
_NEEDS_VECTORS = """\
This model ranks with embeddings of {dense}, which are no part of it: `vector` is the vector of the query, by the \
model that made those of the documents. `ranker.words_only()` ranks without."""


def model_card(
    ranker: TextRanker,
    *,
    name: str = "A text ranker",
    data: str | None = None,
    evaluation: Evaluation | None = None,
    baseline: Evaluation | None = None,
    license: str | None = None,
) -> str:
    """Return the model card of a ranker as Markdown, with the YAML header that the Hub reads.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker.
    name : str, default="A text ranker"
        The title of the card: the repository.
    data : str or None, default=None
        What the ranker was trained and evaluated on, in Markdown.
    evaluation, baseline : Evaluation or None, default=None
        What `evaluation.evaluate_run` returned for the ranker, and for the lexical score; shown with 95 % intervals.
    license : str or None, default=None
        The licence of the model as the Hub spells it, such as "cc-by-4.0". It may follow from the data.

    Examples
    --------
    >>> card = model_card(TextRanker("bm25").fit({"d1": "red apples"}), name="me/apples", license="mit")
    >>> [line for line in card.splitlines() if line.startswith(("license", "library_name", "# "))]
    ['library_name: sparserank', 'license: mit', '# me/apples']
    """
    require("huggingface-hub", "0.30")
    from huggingface_hub import ModelCardData

    header = ModelCardData(license=license, library_name="sparserank", tags=["text-ranking", "search", "sparse"])
    model = ranker.fitted_model()
    size = f"{model.lexical.kind} over {len(model.lexical.words):,} words and {model.n_pairs:,} learned word pairs"
    about = f"A text ranker of [SparseRank](https://pypi.org/project/sparserank/) {__version__}: {size}."
    dense = model.dense if model.dense is not None and model.dense.weight else None
    parts = [
        f"---\n{header.to_yaml()}\n---",
        f"# {name}",
        f"{about} Loading the files can run no code.",
        _LOADING.format(name=name, vector="" if dense is None else ", dense=vector"),
        *([] if dense is None else ["## Requirement", _NEEDS_VECTORS.format(dense=dense)]),
        "## Data",
        data or "The author did not say what the model was trained on.",
    ]
    if evaluation is not None:
        parts += ["## Figures", _figures(evaluation, baseline)]
    if model.n_pairs:
        rows = [
            f"| {pair.query} | {pair.document} | {pair.contribution:+.3f} |"
            for pair in ranker.top_pairs(MAX_CARD_PAIRS)
        ]
        parts += [
            "## Largest word pairs",
            "\n".join(["| query word | document word | weight |", "|---|---|---|", *rows]),
        ]
    parts += ["## Licence", license or "The author did not name a licence."]
    return "\n\n".join(parts) + "\n"


def _figures(evaluation: Evaluation, baseline: Evaluation | None) -> str:
    columns = {"model": evaluation} | ({"lexical score alone": baseline} if baseline is not None else {})
    lines = [f"| {len(evaluation.queries):,} queries | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for measure in map(str, evaluation.measures):
        found = (one[measure] for one in columns.values())
        lines.append(
            f"| {measure} | {' | '.join(f'{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]' for one in found)} |"
        )
    return "\n".join(lines) + "\n\nIn brackets: 95 % intervals over queries."


def save_pretrained(ranker: TextRanker, folder: PathLike, *, card: str | None = None, index: bool = True) -> None:
    """Write a folder as it lies on the Hub: model.safetensors, its index, vectors of documents and README.md.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker.
    folder : path-like
        The folder; it is made if it does not exist.
    card : str or None, default=None
        The model card; None is `model_card(ranker)`.
    index : bool, default=True
        Whether to write the index, which holds the texts of the documents, and vectors of documents. Without them, the
        model ranks other documents with `TextRanker.over`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_pretrained(TextRanker("bm25").fit({"d1": "red apples"}), folder)
    ...     [hit.id for hit in from_pretrained(folder).search("apple")]
    ['d1']
    """
    text = model_card(ranker) if card is None else card
    Path(folder).mkdir(parents=True, exist_ok=True)
    ranker.save(Path(folder, MODEL_FILE))
    if not index:
        for path_of in (index_path, dense_path):
            path_of(Path(folder, MODEL_FILE)).unlink(missing_ok=True)
    Path(folder, CARD_FILE).write_text(text, encoding="utf-8")


def push_to_hub(
    ranker: TextRanker,
    repo_id: str,
    *,
    card: str | None = None,
    index: bool = True,
    private: bool | None = None,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Upload a ranker to a model repository of the Hub, which is made if it does not exist.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker.
    repo_id : str
        The repository, "owner/name".
    card : str or None, default=None
        The model card; None is `model_card(ranker, name=repo_id)`.
    index : bool, default=True
        Whether to upload the index, which holds the texts of the documents, and vectors of documents.
    private : bool or None, default=None
        Whether a new repository is private; None is the default of the owner.
    revision : str or None, default=None
        The branch; None is main.
    token : str or None, default=None
        The access token; None is that of `hf auth login`.
    endpoint : str or None, default=None
        The address of the Hub; None is the public one, or $HF_ENDPOINT.

    Returns
    -------
    str
        The address of the commit.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": "red apples"})
    >>> push_to_hub(ranker, "me/apples", private=True)  # doctest: +SKIP
    'https://huggingface.co/me/apples/commit/…'
    """
    require("huggingface-hub", "0.30")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    hub = HfApi(endpoint=endpoint, token=token)
    text = model_card(ranker, name=repo_id) if card is None else card
    with TemporaryDirectory() as folder:
        save_pretrained(ranker, folder, card=text, index=index)
        message = f"Text ranker of SparseRank {__version__}"
        try:
            hub.create_repo(repo_id, private=private, exist_ok=True)
            commit = hub.upload_folder(repo_id=repo_id, folder_path=folder, revision=revision, commit_message=message)
        except (*HfHubHTTPError.__bases__, OSError, ValueError) as error:  # with those of the HTTP library
            raise DataError(f"{repo_id}: the Hub does not take the upload: {_one_line(error)}") from None
    return str(commit.commit_url)


def from_pretrained(
    name: PathLike,
    *,
    revision: str | None = None,
    token: str | None = None,
    cache_dir: PathLike | None = None,
    local_files_only: bool = False,
    endpoint: str | None = None,
) -> TextRanker:
    """Load a ranker from a folder, or from a repository of the Hub, which is downloaded once.

    Like `sr.load`, it returns a ranker that needs the vector of a query if the model has a dense score; the card names
    the embeddings.

    Parameters
    ----------
    name : str or path
        A folder that `save_pretrained` wrote, or a repository "owner/name".
    revision : str or None, default=None
        A branch, tag or commit; None is main.
    token : str or None, default=None
        The access token; None is that of `hf auth login`.
    cache_dir : path-like or None, default=None
        Where downloads are kept; None is the cache of the Hub's library.
    local_files_only : bool, default=False
        Whether to use what is in the cache, without the network.
    endpoint : str or None, default=None
        The address of the Hub; None is the public one, or $HF_ENDPOINT.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_pretrained(TextRanker("bm25").fit({"d1": "red apples"}), folder)
    ...     from_pretrained(folder).search("apple")[0].id
    'd1'
    """
    folder = Path(name)
    if not folder.is_dir():
        require("huggingface-hub", "0.30")
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

        files = [MODEL_FILE, index_path(MODEL_FILE).name, dense_path(MODEL_FILE).name, CARD_FILE]
        options = {"revision": revision, "token": token, "cache_dir": cache_dir, "endpoint": endpoint}
        try:
            found = snapshot_download(str(name), allow_patterns=files, local_files_only=local_files_only, **options)
        except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
            raise DataError(f"{name}: no folder, and no model that the Hub gives: {_one_line(error)}") from None
        folder = Path(found)
    if not Path(folder, MODEL_FILE).exists():
        raise DataError(f"{name}: contains no {MODEL_FILE}, which `push_to_hub` and `save_pretrained` write")
    ranker = load(Path(folder, MODEL_FILE))
    if not isinstance(ranker, TextRanker):
        raise ModelError(f"{name}: expected a text ranker, found {type(ranker).__name__}")
    return ranker


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
