"""Measures that ir-measures computes, on our order: the scores it is given fall strictly, so no tie is left to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, DataError
from .items import Floats, Items
from .names import Measure


def by_ir_measures(items: Items, wanted: Sequence[Measure]) -> dict[Measure, Floats]:
    """One value a query for each measure; NaN where ir-measures has none."""
    import ir_measures

    if np.any(items.grade != np.round(items.grade)):
        raise DataError(f"{wanted[0]} is computed by ir-measures, which takes whole grades only")
    theirs = {ir_measures.parse_measure(measure.name): measure for measure in wanted}
    values = {measure: np.full(len(items.queries), np.nan) for measure in wanted}
    run, qrels = _plain(items)
    try:
        for result in ir_measures.iter_calc(list(theirs), qrels, run):
            if result.value is not None:
                values[theirs[result.measure]][int(result.query_id) - 1] = result.value
    except (ValueError, RuntimeError, AssertionError) as error:
        raise ConfigError(f"ir-measures cannot compute this here: {' '.join(str(error).split())}") from None
    return values


def _plain(items: Items) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Run and judgments under plain ids, since some of its tools split ids at blanks and hyphens."""
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number, rows in enumerate(items.slices(), start=1):
        length = rows.stop - rows.start
        run[str(number)] = {f"d{i}": float(length - i) for i in np.flatnonzero(items.found[rows]).tolist()}
        grades = items.grade[rows].astype(int).tolist()
        qrels[str(number)] = {f"d{i}": grades[i] for i in np.flatnonzero(items.judged[rows]).tolist()}
        if max(qrels[str(number)].values()) < 0:
            # pytrec_eval overruns its memory where all grades of a query are negative. Nobody retrieves this document.
            qrels[str(number)]["none"] = 0
    return run, qrels
