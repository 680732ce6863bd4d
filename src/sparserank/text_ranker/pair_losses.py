"""The losses that word pairs can be learned by, once the squared loss has found them:  score = lexical + gain · qᵀ W d.

Each takes W from where the squared loss has left it, at the gain that is best for it, and goes on on W's pairs alone. A
loss has one strength, which is chosen on held-out queries: how far W is pulled back to where it was (domination,
softmax), or how far one triple moves it (hinge).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..errors import ConfigError
from ..optim.closed_form import LARGEST_GRAM
from ..optim.losses import Domination, Hinge, Softmax
from ..optim.pattern_hinge import PatternHinge
from ..optim.pattern_lbfgs import Negatives, PatternLBFGS
from ..optim.penalties import L2, NoPenalty
from ..optim.problems import ListProblem, Matrix, RerankingProblem

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PENALTIES = ("ridge", "l1")
LOSSES: dict[str, Domination | Softmax | Hinge] = {"softmax": Softmax(), "domination": Domination(), "hinge": Hinge()}
STRENGTHS: dict[str, tuple[float, ...]] = {
    "squared": (),
    "softmax": (0.1, 0.01),
    "domination": (0.1, 0.01, 0.001),
    "hinge": (1.0, 3.0, 10.0),
}
"""What is tried of each loss."""
STEPS = 10
"""Steps of L-BFGS."""
TRIPLES = 200
"""Triples that are drawn for a query, on the average."""
BATCH = 256
"""Queries that bring their documents together, where all documents are too many."""


def checked(loss: str, penalty: str) -> None:
    """Refuse what cannot be solved."""
    validation.choice("loss", loss, tuple(STRENGTHS))
    validation.choice("penalty", penalty, PENALTIES)
    if penalty == "l1" and loss != "squared":
        raise ConfigError(
            f"penalty='l1' is solved for loss='squared' alone, not for loss={loss!r}; use loss='squared', or "
            "penalty='ridge', which cuts W to the pairs that are wanted"
        )


@dataclass(frozen=True)
class Relearning:
    """W on the pairs it has, by another loss than the squared one."""

    loss: str
    nonnegative: bool = False
    seed: int = 0
    n_jobs: int | None = None

    def __call__(
        self, W: csr_array, lists: ListProblem, lexical: Matrix, excluded: Any, gain: float, strength: float,
        fixed: Any = None,
    ) -> csr_array:  # fmt: skip
        """W for the same gain; `lexical` are the lexical scores, `fixed` entries stay.

        The loss sees scores in units of the lexical scores' standard deviation.
        """
        unit = float(np.std(lexical, dtype=np.float64)) or 1.0
        scaled, scale = W.copy(), np.float32(gain / unit)
        scaled.data = scaled.data * scale
        problem = RerankingProblem(lists, lexical / np.float32(unit), excluded, LOSSES[self.loss])
        if self.loss == "hinge":
            sgd = PatternHinge(TRIPLES * max(1, lists.Q.shape[0]), strength, seed=self.seed)
            out = sgd.solve(problem, NoPenalty(), scaled, fixed, self.nonnegative).weights
        else:
            batch = BATCH if lists.D.shape[0] > LARGEST_GRAM else 0
            lbfgs = PatternLBFGS(STEPS, Negatives(batch, seed=self.seed), self.n_jobs)
            out = lbfgs.solve(problem, L2(0.5 * strength), scaled, fixed, self.nonnegative).weights
        out.data = np.where(np.zeros(out.nnz, np.bool_) if fixed is None else fixed, W.data, out.data / scale)
        out.eliminate_zeros()
        return out
