"""The option --learn-from: what `train` learns from, and what it prints about sources without judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..data.records import Collection
    from ..text_ranker.model import TextModel

RELEVANCE = ("judgments", "clicks")
"""Sources that name relevant documents."""
CLICK_TABLES = ("clicks", "ubi")
"""Options that give clicks."""


@dataclass(frozen=True)
class LearnFrom:
    """The names of the option."""

    names: tuple[str, ...]

    @classmethod
    def parse(cls, option: Sequence[str] | None) -> LearnFrom:
        """Parse names that are separated by commas, or several options; None is judgments.

        >>> LearnFrom.parse(["titles,links", "judgments"]).names
        ('titles', 'links', 'judgments')
        """
        from ..data.page_queries import as_sources

        try:
            return cls(tuple(as_sources(option or ["judgments"])))
        except ConfigError as error:
            raise ConfigError(str(error).replace("learn_from", "--learn-from")) from None

    @property
    def weak(self) -> tuple[str, ...]:
        """The sources without judgments."""
        return tuple(name for name in self.names if name not in RELEVANCE)

    @property
    def uses_judgments(self) -> bool:
        """Whether judgments, clicks or triples are used."""
        return len(self.weak) < len(self.names)

    def validate(self, ranker: str, engine: str, tables: Mapping[str, str | None]) -> None:
        """Raise ConfigError for a ranker, an engine or tables that do not go with the sources."""
        if self.weak and engine != "local":
            raise ConfigError(
                f"--engine {engine} learns from judgments, clicks and triples; "
                f"--learn-from {','.join(self.weak)} needs --engine local"
            )
        if self.weak and ranker != "text":
            raise ConfigError(f"--learn-from {','.join(self.weak)} is for --ranker text; got --ranker {ranker}")
        given = [name for name, path in tables.items() if path is not None]
        if given and not self.uses_judgments:
            wanted = ",".join((*self.names, "clicks" if given[0] in CLICK_TABLES else "judgments"))
            raise ConfigError(f"--{given[0]} is not used; give --learn-from {wanted}, or remove it")
        if "clicks" in self.names and "judgments" not in self.names and not set(CLICK_TABLES) & set(given):
            raise ConfigError("--learn-from clicks needs a click log; give it with --clicks or --ubi")

    def without_other_splits(self, collection: Collection, split: str) -> Collection:
        """Return a collection whose log, if it is a source, has no queries of other splits."""
        if "log" not in self.names:
            return collection
        other = {query for name, qrels in collection.qrels.items() if name != split for query in qrels}
        other -= set(collection.qrels.get(split, ()))
        return replace(collection, queries={name: one for name, one in collection.queries.items() if name not in other})

    def counts(self, model: TextModel, n_judged: int) -> dict[str, int]:
        """Return the number of queries of each source."""
        counts = {name: n_judged for name in self.names if name in RELEVANCE}
        return counts | {name: one["queries"] for name, one in model.info.get("learned_from", {}).items()}

    def describe(self, model: TextModel) -> list[str]:
        """Return a line for each source without judgments."""
        lines = []
        for name, one in model.info.get("learned_from", {}).items():
            if "p_value" not in one:
                lines.append(f"{name}: {one['queries']:,} queries, too few to learn from")
                continue
            test = f"nDCG@10 on held-out queries {one['ndcg_before']:.3f} → {one['ndcg']:.3f}, p = {one['p_value']:.2g}"
            kept = "kept" if one["weight"] else "left out, because they did not beat the score without them"
            lines.append(f"{name}: {one['queries']:,} queries; their word pairs are {kept} ({test})")
        if self.weak and model.W is None:
            lines.append("the model keeps the lexical score alone")
        return lines
