"""Three kills on a real Slurm; `make torture SYSTEM=slurm` is the long form, ten kills are between."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.slurm, pytest.mark.torture]


def test_three_kills() -> None:
    """Of headway as it decides, of both as headway starts, of a node's daemon."""
    torture("slurm", seed=226, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["slurm", "slurm24"])
def test_ten_kills(system: str) -> None:
    torture(system, seed=113)
