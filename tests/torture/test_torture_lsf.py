"""Ten kills on a real LSF; `make torture SYSTEM=lsf` is the long form."""

from __future__ import annotations

import pytest

from torture.short_form import torture

pytestmark = [pytest.mark.lsf, pytest.mark.torture]


def test_ten_kills() -> None:
    torture("lsf", seed=8)
