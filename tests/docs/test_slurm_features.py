"""The table of Slurm's features: what shows each row is there, and what is "not" is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tasks" / "slurm_features.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| feature |")
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_has_a_verdict_and_what_shows_it(row: tuple[str, str, str]) -> None:
    _, verdict, shown = row
    assert re.match(r"(same|different|not)\b", verdict)
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", shown)
    # Pages that are linked to are there: test_pages.py.
    assert named or "](" in shown
    for file, test in named:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text


#: Lines of slurm.conf whose rows say "not".
LEFT_OUT = {
    "a site's own priority plugin": "PrioritySiteFactorPlugin=site_factor/mine",
    "`OverTimeLimit`": "OverTimeLimit=5",
    "node features that need a boot, `--reboot`": "NodeFeaturesPlugins=node_features/knl_generic",
    "burst buffers": "BurstBufferType=burst_buffer/lua",
    "federation, `--clusters`": "FederationParameters=fed_display",
}


def test_headway_import_says_what_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "slurm.conf"
    machine = "ClusterName=c\nNodeName=n[1-2] CPUs=4\nPartitionName=batch Nodes=n[1-2] Default=YES\n"
    file.write_text(machine + "\n".join(LEFT_OUT.values()) + "\n", encoding="utf-8")
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["import", "slurm", str(file)])
    assert done.exit_code == 0, done.output
    said = done.output
    assert [line for line in LEFT_OUT.values() if f"{line} is not carried over" not in said] == []
    verdicts = {row[0]: row for row in ROWS}
    for feature in LEFT_OUT:
        assert verdicts[feature][1].startswith("not")
        assert "test_headway_import_says_what_it_leaves_out" in verdicts[feature][2]


def test_no_reader_knows_these_words() -> None:
    """A job's fields in Slurm's JSON, and a flag of reservations."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "adapters" / "headway_adapters" / "slurm").rglob("*.py")
    )
    words = ("time_minimum", "time_min", "deadline:", "prefer:", "contiguous", "MAGNETIC")
    assert [word for word in words if re.search(rf"\b{word}", code)] == []
