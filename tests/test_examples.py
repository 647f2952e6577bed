"""Properties draw the same few examples in each run; `make properties` draws new and many ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

#: A file with one property of 150 examples.
FILE = Path(__file__).parent / "framework" / "test_sizes.py"


@pytest.mark.parametrize(("factor", "passing"), [("", 50), ("2", 300)])
def test_each_property_has_its_examples_so_many_times(factor, passing):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "hypothesis",
         "--hypothesis-show-statistics", str(FILE)],
        env={**os.environ, "HEADWAY_EXAMPLES": factor}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    (found,) = re.findall(r"(\d+) passing", done.stdout)
    assert int(found) == passing
