"""Three kills on a real PBS; `make torture SYSTEM=pbs` is the long form, ten kills are between."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.pbs, pytest.mark.torture]


def test_three_kills() -> None:
    """Of the server as headway starts, of headway as it decides, of a node's daemon."""
    torture("pbs", seed=496, kills=3)


@pytest.mark.slow
def test_ten_kills() -> None:
    torture("pbs", seed=606)
