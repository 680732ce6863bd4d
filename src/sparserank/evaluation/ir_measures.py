"""Measures that ir-measures computes, on the order of the tie rule: the scores it gets have no ties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, DataError
from .items import Floats, Items
from .measures import Measure


def compute_by_ir_measures(items: Items, measures: Sequence[Measure]) -> dict[Measure, Floats]:
    """One value per query for each measure; NaN if ir-measures has none."""
    import ir_measures

    if np.any(items.grade != np.round(items.grade)):
        raise DataError(f"{measures[0]} is computed by ir-measures, which takes whole grades only")
    parsed = {ir_measures.parse_measure(measure.name): measure for measure in measures}
    values = {measure: np.full(len(items.queries), np.nan) for measure in measures}
    run, qrels = _with_plain_ids(items)
    try:
        for result in ir_measures.iter_calc(list(parsed), qrels, run):
            if result.value is not None:
                values[parsed[result.measure]][int(result.query_id) - 1] = result.value
    except (ValueError, RuntimeError, AssertionError) as error:
        raise ConfigError(f"ir-measures cannot compute this here: {' '.join(str(error).split())}") from None
    return values


def _with_plain_ids(items: Items) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Run and judgments with plain ids: some of its tools split ids at blanks and hyphens."""
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number, rows in enumerate(items.slices(), start=1):
        length = rows.stop - rows.start
        run[str(number)] = {f"d{i}": float(length - i) for i in np.flatnonzero(items.is_retrieved[rows]).tolist()}
        grades = items.grade[rows].astype(int).tolist()
        qrels[str(number)] = {f"d{i}": grades[i] for i in np.flatnonzero(items.is_judged[rows]).tolist()}
        if max(qrels[str(number)].values()) < 0:
            # pytrec_eval overruns its memory if all grades of a query are negative. No run retrieves this document.
            qrels[str(number)]["none"] = 0
    return run, qrels
