"""The torture among the tests: a few kills, and no job that takes minutes for reasons of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from torture.__main__ import start, wanted, why_not
from torture.campaign import campaign
from torture.report import report


def torture(name: str, seed: int, kills: int = 10) -> None:
    """Fails with the report on an anomaly; the directory with all records then stays."""
    if why := why_not(name):
        if wanted(name) and os.environ.get("CI", "").lower() == "true":
            pytest.fail(why)
        pytest.skip(why)
    base = Path(tempfile.mkdtemp(prefix="hwt-"))
    base.chmod(0o755)
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)

    system = start(name, base / "system")
    try:
        outcome = campaign(system, seed, kills, base / "out", tell, backlog=12, brief=True)
    finally:
        system.stop()
    assert not outcome.headways, f"{base}\n{report(outcome)}"
    shutil.rmtree(base, ignore_errors=True)
