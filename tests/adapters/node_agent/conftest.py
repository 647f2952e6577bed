"""What the tests of the node agent share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_sysfs import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "sys")
