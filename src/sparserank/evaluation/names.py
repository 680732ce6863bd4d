"""Names of measures: what is written is what is printed, and what is printed can be parsed again."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from ..errors import ConfigError
from .definitions import KINDS

Measures: TypeAlias = Union[str, "Measure", Iterable[Union[str, "Measure"]]]
"""One text with blanks or commas between the names, or a sequence."""

ALIASES = {"NDCG": "nDCG", "MAP": "AP", "Precision": "P", "Recall": "R", "MRR": "RR"}


@dataclass(frozen=True)
class Measure:
    """One measure, as `parse` makes it; it prints as its name.

    One that ir-measures computes carries its whole spelling in `name`.

    >>> str(Measure("P", cutoff=10, rel=2))
    'P(rel=2)@10'
    """

    name: str
    cutoff: int | None = None
    rel: int = 1

    def __post_init__(self) -> None:
        kind = KINDS.get(self.name)
        if kind is None:
            return
        if self.cutoff is None and kind.cutoff == "must":
            raise ConfigError(f"measure {self.name} needs a cutoff, such as {self.name}@10")
        if self.cutoff is not None and kind.cutoff == "never":
            raise ConfigError(f"measure {self.name} takes no cutoff; got {self}")
        if self.cutoff is not None and self.cutoff < 1:
            raise ConfigError(f"measure {self}: the cutoff must be a whole number above 0")
        if self.rel < 1:
            raise ConfigError(f"measure {self}: 'rel', the least relevant grade, must be a whole number above 0")

    def __str__(self) -> str:
        rel = f"(rel={self.rel})" if self.rel != 1 else ""
        return self.name + rel + (f"@{self.cutoff}" if self.cutoff is not None else "")

    @property
    def lower_is_better(self) -> bool:
        """Whether this is an error rather than a merit."""
        return self.name in KINDS and KINDS[self.name].error

    @property
    def power(self) -> int:
        """2 for RMSE, whose mean over queries is one of squares, weighted by rows; else 1."""
        return 2 if self.name == "RMSE" else 1


def parse(name: str | Measure) -> Measure:
    """The measure of this name; an unknown one is a ConfigError that names its neighbours.

    >>> parse("nDCG@10")
    Measure(name='nDCG', cutoff=10, rel=1)
    >>> str(parse("MAP(rel=2)"))
    'AP(rel=2)'
    """
    if isinstance(name, Measure):
        return name
    parts = re.fullmatch(r"([^\W\d][\w-]*)(?:\((.*)\))?(?:@(.*))?", str(name).strip())
    if parts is None:
        raise ConfigError(f"a measure is a name such as 'nDCG@10'; got {name!r}")
    base, arguments = ALIASES.get(parts[1], parts[1]), parts[2]
    kind = KINDS.get(base)
    rel = re.fullmatch(r"\s*rel\s*=\s*(-?\d+)\s*", arguments or "rel=1")
    ours = kind is not None and (not arguments or (kind.rel and rel is not None))
    if kind is None or rel is None or not ours:
        if kind is not None and not kind.foreign:
            raise ConfigError(f"measure {name!r}: {base} takes no parameters")
        return _known_to_ir_measures(str(name).strip())
    cutoff = parts[3]
    if cutoff is not None and not re.fullmatch(r"-?[0-9]{1,18}", cutoff):
        raise ConfigError(f"measure {name!r}: the cutoff must be a whole number above 0; got {cutoff!r}")
    return Measure(base, None if cutoff is None else int(cutoff), int(rel[1]))


def parse_all(names: Measures) -> tuple[Measure, ...]:
    """Several measures, each once, in the order given.

    >>> [str(measure) for measure in parse_all("nDCG@10 AP(rel=2), R@100 AP(rel=2)")]
    ['nDCG@10', 'AP(rel=2)', 'R@100']
    """
    if isinstance(names, str):
        # A blank or a comma in brackets belongs to a measure's parameters.
        names = re.findall(r"(?:[^\s,(]|\([^)]*\)?)+", names)
    found = [names] if isinstance(names, Measure) else [parse(name) for name in names]
    if not found:
        raise ConfigError("at least one measure is needed, such as 'nDCG@10'")
    return tuple(dict.fromkeys(found))


def _known_to_ir_measures(name: str) -> Measure:
    import ir_measures

    base = re.split(r"[@(]", name)[0]
    if base not in ir_measures.measures.registry:
        raise _unknown(name, base, ir_measures.measures.registry)
    try:
        measure: Any = ir_measures.parse_measure(name)
        measure.validate_params()
    except (ValueError, AssertionError, AttributeError, TypeError) as error:
        reason = re.sub(r"=<.*>", " (it must be given)", str(error))
        raise ConfigError(f"measure {name!r}: ir-measures does not take it: {reason}") from None
    if not isinstance(measure.aggregator(), ir_measures.MeanAgg):
        raise ConfigError(f"measure {name!r} is a count, not a mean over queries")
    return Measure(str(measure))


def _unknown(name: str, base: str, foreign: Iterable[str]) -> ConfigError:
    folded = {known.casefold(): known for known in [*foreign, *ALIASES, *KINDS]}
    matches = difflib.get_close_matches(base.casefold(), folded, n=3, cutoff=0.7)
    near = [folded[match] for match in (matches[:1] if base.casefold() in folded else matches)]
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    return ConfigError(f"unknown measure {name!r}{hint} Known: {', '.join(KINDS)}, and the names of ir-measures")
