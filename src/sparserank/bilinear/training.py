"""One pass over the triples, with the learning curve, checkpoints and a progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.formats.tensors import Tensors
from ..errors import ConfigError
from ..optim.solver import Solution, TrainingState
from ..optim.sparse_sgd import AnyTraining
from ..preferences import Triples
from .checkpoint import Checkpoint
from .progress import Callback, combine, training_bar

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .ranker import BilinearRanker

PHASES = {"learn": "learning", "refit": "refitting"}


@dataclass(frozen=True)
class Run:
    """The triples of one call of `fit` or `partial_fit`; `held_out` are those of the learning curve's objective."""

    triples: Triples
    held_out: Triples | None
    points: int
    checkpoint: Checkpoint | None = None
    resume_from: Tensors | None = None
    verbose: bool = False
    callback: Callback | None = None

    def __len__(self) -> int:
        return len(self.triples.query)

    def resumes_in(self, phase: str) -> bool:
        """Whether a checkpoint of this phase was found."""
        return self.resume_from is not None and self.resume_from.settings["phase"] == phase

    def take(self, training: AnyTraining, phase: str = "learn", more: Mapping[str, Any] | None = None) -> None:
        """Take the triples that the training has not taken yet; `more` is written with its checkpoints."""
        if self.resume_from is not None and self.resumes_in(phase):
            training.resume(self.resume_from.setting("told", dict), self.resume_from.arrays)
        n = len(self)
        every = max(1, n // self.points) if self.points and n else None
        done = training.steps if self.checkpoint is not None else 0
        first = training.steps - done
        with training_bar(self.verbose, PHASES[phase], first + n, first) as bar:
            on_settle = combine(bar, self.callback)
            while done < n:
                count = n - done if self.checkpoint is None else min(self.checkpoint.every, n - done)
                part = Triples(*(column[done : done + count] for column in self.triples))
                training.advance(part, held_out=self.held_out, every=every, on_settle=on_settle)
                done += count
                if self.checkpoint is not None and done < n:
                    training.settle()
                    self.checkpoint.write(phase, training, more or {})
            if on_settle is not None and n:
                on_settle(training)


def store_solution(ranker: BilinearRanker, W: csr_array, state: TrainingState, empty: tuple[int, int]) -> None:
    """Set the fitted attributes of a ranker; `empty` counts the empty rows of Q and D."""
    if not np.isfinite(W.data).all():
        raise ConfigError(f"W has grown beyond what float32 holds; eta0={ranker.eta0} is too large for these rows")
    curve = tuple(state.curve.points)
    values = [point.objective for point in curve if point.objective is not None]
    settled = len(values) >= 4 and abs(values[-1] - values[-4]) <= 0.01 * max(abs(values[-4]), 1e-12)
    message = "the held-out objective stopped changing" if settled else "the held-out objective was still changing"
    numbers = {name: getattr(state, name) for name in ("steps", "alpha", "peak_bytes", "peak_nonzeros")}
    counts = {"empty_queries": empty[0], "empty_documents": empty[1]}
    ranker.W_ = W
    ranker.solution_ = Solution(W, curve, {"converged": settled, "message": message} | numbers | counts)
