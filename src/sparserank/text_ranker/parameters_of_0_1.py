"""The parameters of release 0.1: those of BM25 and the analyzer in the constructor of a text ranker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from .. import deprecated
from ..errors import ConfigError
from ..text.analyzer import as_analyzer
from .lexical import LEXICAL, as_lexical

OF_LEXICAL = ("k1", "b", "title_weight", "text_weight")
OF_ANALYZER = ("stem", "stop_words", "ngrams")
C = TypeVar("C", bound=type)


def flat_parameters(cls: C) -> C:
    """Decorator: accept the parameters of BM25 and the analyzer in the constructor of a ranker, as release 0.1 did."""
    init = cls.__init__  # type: ignore[misc]

    @wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        old = [name for name in (*OF_LEXICAL, *OF_ANALYZER) if name in kwargs]
        if old:
            kwargs = nest_parameters(kwargs, next(iter(args), kwargs.get("ranker")))
            new = ", ".join(f"{name}=sr.{kwargs[name]!r}" for name in ("lexical", "analyzer") if name in kwargs)
            deprecated.warn(f"Passing {', '.join(old)} to TextRanker", new)
        init(self, *args, **kwargs)

    cls.__init__ = wrapper  # type: ignore[misc]
    return cls


def nest_parameters(params: Mapping[str, Any], ranker: Any) -> dict[str, Any]:
    """Return the parameters of release 0.1 with `lexical` and `analyzer` instead of their flat parameters."""
    out = dict(params)
    lexical = {name: out.pop(name) for name in OF_LEXICAL if name in out}
    analyzer = {name: out.pop(name) for name in OF_ANALYZER if name in out}
    for name, given in (("lexical", lexical), ("analyzer", analyzer)):
        if given and not isinstance(out.get(name, ""), str):
            raise ConfigError(f"TextRanker got {', '.join(given)} and {name}={out[name]!r}; give {name} only")
    if lexical:
        scoring = as_lexical(ranker if ranker in LEXICAL else out.get("lexical", "bm25"))
        known = {name: value for name, value in lexical.items() if hasattr(scoring, name)}  # Cosine has no k1 and no b
        out["lexical"] = replace(scoring, **known)
    if analyzer:
        out["analyzer"] = replace(as_analyzer(out.get("analyzer", "english")), **analyzer)
    return out
