"""The analyzer in a model file: the settings that give the same words wherever the model is loaded.

Stop words from a package are stored as words, since another version of the package may have other ones. A segmenter is
stored with its version.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors, pack_strings
from ..errors import ModelError
from ..text import Analyzer
from ..text.compounds import Compounds
from ..text.spellings import Spellings

PLAIN = ("lowercase", "shortest", "ngrams")
"""The settings of every file, beside stems and stop words; the other ones are in a file only if they are needed."""


def analyzer_settings(analyzer: Analyzer, version: str | None) -> dict[str, Any]:
    """Return the settings for a model file; `version` is that of the segmenter."""
    out = {name: getattr(analyzer, name) for name in PLAIN}
    chosen = analyzer.language if analyzer.stop_words == "auto" else analyzer.stop_words
    if isinstance(chosen, str) and chosen != "english":
        chosen = tuple(sorted(analyzer.stop_word_set)) or None
    if analyzer.is_plain:  # as every release wrote it, so that an index keeps its fingerprint
        return out | {"stop_words": chosen, "stem": analyzer.stemmer}
    out |= {"language": analyzer.language, "stop_words": chosen, "stem": analyzer.stem}
    out |= {"segmenter": analyzer.splits_scripts, "normalize": analyzer.normalizes}
    out["accents"] = "fold" if analyzer.folds_accents else "keep"
    if analyzer.compounds:
        out["compounds"] = True
    return out if version is None else out | {"segmenter_version": version}


def pack_compounds(compounds: bool | Compounds) -> dict[str, NDArray[Any]]:
    """Return the words that compounds are split by, for a model file."""
    if not isinstance(compounds, Compounds):
        return {}
    words = sorted(compounds.documents)
    frequencies = np.array([compounds.documents[word] for word in words], np.int64)
    return pack_strings("compound_words", words) | {"compound_df": frequencies}


def pack_spellings(spellings: Spellings) -> dict[str, NDArray[Any]]:
    """Return how stems are spelled, for a model file; an index does not depend on it."""
    known, others = spellings.most_frequent(), spellings.others()
    stems = sorted(known)
    out = pack_strings("other_spellings", others) if others else {}
    if stems:
        out |= pack_strings("stems", stems) | pack_strings("spellings", [known[stem] for stem in stems])
    return out


def stored_spellings(file: Tensors) -> Spellings:
    """Return how stems are spelled; nothing for a file of an earlier release."""

    def strings(name: str) -> tuple[str, ...]:
        return file.strings(name) if f"{name}.ends" in file.arrays else ()

    stems, words = strings("stems"), strings("spellings")
    if len(stems) != len(words):
        raise ModelError(f"{file.path}: {len(stems)} stems have {len(words)} spellings")
    return Spellings(dict(zip(stems, words, strict=True)), strings("other_spellings"))


def stored_analyzer(file: Tensors) -> tuple[Analyzer, str | None]:
    """Return the analyzer of a model file, and the version of its segmenter."""
    fields = {"stem": None, "stop_words": None} | file.setting("analyzer", dict)
    version = fields.pop("segmenter_version", None)
    if fields.get("compounds"):
        words = file.strings("compound_words")
        df = file.array("compound_df", "int64", len(words))
        fields["compounds"] = Compounds(dict(zip(words, df.tolist(), strict=True)))
    return Analyzer(**fields), version


def warn_other_segmenter(path: Any, segmenter: str | None, expected: str | None, found: str | None) -> None:
    """Warn that a model was fitted with another version of its segmenter."""
    warnings.warn(
        f"{path}: the model was fitted with {segmenter} {expected}, and {found} is installed; words may end elsewhere. "
        "Fit the model again, or install the version that it was fitted with.",
        stacklevel=4,
    )
