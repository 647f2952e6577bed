"""How good predictions were, of jobs that have ended, by how much there was to go by when they were made.

The accuracy of a prediction is the smaller of it and the runtime over the larger: 1 if it was met, and
too much and too little do not cancel each other out in a mean. A mean of relative errors stands beside it, in
which short jobs that were predicted to be long count for much. The estimates of the same jobs are judged
alike, so that the advantage of predictions shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Record(msgspec.Struct):
    """Jobs that ran and ended; sums are over the predicted jobs."""

    jobs: int = 0
    #: The predicted jobs; of them the jobs whose runtime was inside the interval of a run.
    answered: int = 0
    inside: int = 0
    #: Sum of |prediction / runtime - 1|.
    error: float = 0.0
    #: Sums of the accuracies: of the predictions, and of the users' estimates.
    accuracy: float = 0.0
    estimate_accuracy: float = 0.0

    def figures(self, intervals: bool) -> dict[str, float | None]:
        """What ``metrics.json`` has of it; None where nothing was predicted."""
        answered = self.answered
        found: dict[str, float | None] = {
            "jobs": self.jobs,
            "answered": answered / self.jobs if self.jobs else None,
            "mean_error_percent": 100 * self.error / answered if answered else None,
            "accuracy": self.accuracy / answered if answered else None,
            "estimate_accuracy": self.estimate_accuracy / answered if answered else None,
        }
        if intervals:
            found["inside_interval"] = self.inside / answered if answered else None
        return found


class Measures:
    """Counts how good a predictor's answers were."""

    def __init__(self, sizes: Sequence[int], *, intervals: bool = False) -> None:
        """``sizes`` are the runs to go by from which on it is told apart, ascending from 0; with
        ``intervals`` a prediction has one."""
        self._sizes = tuple(sizes)
        self._records = [Record() for _ in self._sizes]
        self._intervals = intervals

    def count(
        self, runs: int, seconds: float, predicted: float | None, estimate: float, inside: bool = False
    ) -> None:
        """A job ran for ``seconds`` (> 0) that was predicted from so many runs, or was not (None)."""
        one = self._records[bisect_right(self._sizes, runs) - 1]
        one.jobs += 1
        if predicted is None:
            return
        one.answered += 1
        if inside:
            one.inside += 1
        ratio = predicted / seconds
        if ratio > 1.0:
            one.error += ratio - 1.0
            one.accuracy += 1.0 / ratio
        else:
            one.error += 1.0 - ratio
            one.accuracy += ratio
        one.estimate_accuracy += estimate / seconds if estimate < seconds else seconds / estimate

    def figures(self) -> dict[str, Any]:
        """Over all, and by the runs to go by."""
        columns = zip(*map(msgspec.structs.astuple, self._records), strict=True)
        whole = Record(*(sum(column) for column in columns))
        by_size = [
            {"runs_from": least, **one.figures(self._intervals)}
            for least, one in zip(self._sizes, self._records, strict=True)
            if one.jobs
        ]
        return {**whole.figures(self._intervals), "by_history": by_size}

    def saved(self) -> dict[str, Any]:
        """What was counted, as JSON values."""
        return {
            str(least): msgspec.structs.asdict(one)
            for least, one in zip(self._sizes, self._records, strict=True)
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on with what was :meth:`saved`."""
        for at, least in enumerate(self._sizes):
            if (one := saved.get(str(least))) is not None:
                self._records[at] = Record(**one)
