"""One way through the triples: points on the curve, checkpoints in between, a bar on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data.formats.tensors import Tensors
from ..optim.pattern_sgd import PatternTraining
from ..optim.sparse_sgd import Training
from ..preferences import Triples
from .checkpoint import Checkpoint
from .progress import Follow, all_of, training_bar

PHASES = {"learn": "learning", "refit": "refitting"}


@dataclass(frozen=True)
class Run:
    """The triples of one call of `fit` or `partial_fit`, and what goes on beside them.

    held_out : triples the objective is measured on, `points` times. found : the checkpoint to go on from.
    """

    triples: Triples
    held_out: Triples | None
    points: int
    keeper: Checkpoint | None = None
    found: Tensors | None = None
    verbose: bool = False
    follow: Follow | None = None

    def __len__(self) -> int:
        return len(self.triples.query)

    def found_in(self, phase: str) -> bool:
        """Whether the checkpoint to go on from was taken in this phase."""
        return self.found is not None and self.found.settings["phase"] == phase

    def take(
        self, training: Training | PatternTraining, phase: str = "learn", more: Mapping[str, Any] | None = None
    ) -> None:
        """Take the triples that the training has not taken yet; `more` is written with its checkpoints."""
        if self.found is not None and self.found_in(phase):
            training.resume(self.found.setting("told", dict), self.found.arrays)
        n = len(self)
        every = max(1, n // self.points) if self.points and n else None
        done = training.steps if self.keeper is not None else 0
        first = training.steps - done
        with training_bar(self.verbose, PHASES[phase], first + n, first) as bar:
            on_settle = all_of(bar, self.follow)
            while done < n:
                count = n - done if self.keeper is None else min(self.keeper.every, n - done)
                part = Triples(*(column[done : done + count] for column in self.triples))
                training.advance(part, held_out=self.held_out, every=every, on_settle=on_settle)
                done += count
                if self.keeper is not None and done < n:
                    training.settle()
                    self.keeper.write(phase, training, more or {})
            if on_settle is not None and n:
                on_settle(training)
