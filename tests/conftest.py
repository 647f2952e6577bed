"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def trace_dir() -> Path:
    """The directory of the real traces; skips where there is none."""
    directory = Path(os.environ.get("HEADWAY_TRACES") or Path(__file__).parents[2] / "shared" / "traces")
    if not directory.is_dir():
        pytest.skip(f"needs the real traces: no directory {directory}; set HEADWAY_TRACES to theirs")
    return directory
