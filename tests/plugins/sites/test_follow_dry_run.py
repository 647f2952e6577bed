"""The example of the operators' guide runs as a dry run."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from guide import GUIDE, PAGES

from headway.cli import cli

#: 23 November 2026, a Monday, 0:00 UTC.
MONDAY = 1795392000
HOUR = 3600


def example() -> str:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if "- follow:" in block]
    return found


def log(submissions: list[int], processors: int) -> str:
    lines = [f"; UnixStartTime: {MONDAY}", f"; MaxProcs: {processors}"]
    for number, submit in enumerate(submissions, 1):
        fields = [number, submit, -1, HOUR, processors, -1, -1, processors, 2 * HOUR, -1, 1, 1, *[-1] * 6]
        lines.append(" ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def test_the_example_runs(tmp_path):
    (tmp_path / "headway.yaml").write_text(example())
    (tmp_path / "oslo.swf").write_text(log([hour * HOUR for hour in range(0, 48, 3)], 32))
    (tmp_path / "denver.swf").write_text(log([hour * HOUR for hour in range(1, 48, 6)], 64))
    (tmp_path / "prices-oslo.csv").write_text("time,price\n2026-11-23T00:00,0.05\n2026-11-24T00:00,0.20\n")
    out = tmp_path / "out"
    found = CliRunner().invoke(
        cli, ["dry-run", "-c", str(tmp_path / "headway.yaml"), "--out", str(out)], catch_exceptions=False
    )
    assert found.exit_code == 0, found.output
    (path,) = out.rglob("metrics.json")
    follow = json.loads(path.read_text())["extra"]["follow"]
    assert follow["routes"] > 0 and follow["share_in_open_hours"] > 0.5
    hours = {name: site["processor_hours"] for name, site in follow["sites"].items()}
    assert sum(hours.values()) == pytest.approx(32 * 16 + 64 * 8)
    assert follow["cost"] == pytest.approx(sum(site["cost"] for site in follow["sites"].values()))


@pytest.mark.parametrize(
    "word", ["calendar", "load", "data", "price", "carbon", "most_routes", "leave_above"]
)
def test_the_guide_names_the_option(word):
    (page,) = [page for page in PAGES.values() if "- follow:" in page]
    assert f"`{word}" in page or f"*{word}*" in page
