"""Ten kills on a real PBS; `make torture SYSTEM=pbs` is the long form."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.pbs, pytest.mark.torture]


def test_ten_kills() -> None:
    torture("pbs", seed=606)
