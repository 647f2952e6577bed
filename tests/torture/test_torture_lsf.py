"""Three kills on a real LSF; `make torture SYSTEM=lsf` is the long form, ten kills are between."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.lsf, pytest.mark.torture]


def test_three_kills() -> None:
    """Of headway as it decides, of the server, of both."""
    torture("lsf", seed=591, kills=3)


@pytest.mark.slow
def test_ten_kills() -> None:
    torture("lsf", seed=8)
