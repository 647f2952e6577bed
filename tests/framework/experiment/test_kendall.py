"""What is computed without SciPy is what SciPy says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headway.experiment.statistics import interval
from headway.experiment.steady import rise


@pytest.mark.parametrize("levels", [1000, 8, 3])
@pytest.mark.parametrize("seed", range(20))
def test_a_rise_is_that_of_scipy(levels: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, levels, 10).astype(float)
    found = stats.kendalltau(np.arange(10), values, alternative="greater")
    ours = rise(values)
    assert (ours.tau, ours.p) == pytest.approx((found.statistic, found.pvalue), rel=1e-12)


def test_the_quantile_of_batches_is_that_of_scipy() -> None:
    values = np.random.default_rng(1).normal(size=30)
    half = float(stats.t.ppf(0.975, 29)) * float(values.std(ddof=1)) / 30**0.5
    assert interval(values.tolist()).half == half
