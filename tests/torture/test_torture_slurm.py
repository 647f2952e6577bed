"""Ten kills on a real Slurm; `make torture SYSTEM=slurm` is the long form."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.slurm, pytest.mark.torture]


def test_ten_kills() -> None:
    torture("slurm", seed=113)
