"""The federation of the operators' page on jobs with data runs as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headway import cli

PAGE = Path(__file__).parents[3] / "docs" / "operators" / "sites.md"


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "data-greedy" in block]
    (tmp_path / "federation.yaml").write_text(text)
    for name, jobs in (("oslo", 20), ("graz", 3)):
        rows = (f"{at} {at * 60} -1 {600 + at * 90} 1 -1 -1 1 {600 + at * 90} -1 1 1 1 -1 1 -1 -1 -1"
                for at in range(1, jobs + 1))  # fmt: skip
        (tmp_path / f"{name}.swf").write_text("\n".join(["; UnixStartTime: 1700000000", *rows, ""]))
    reads = "".join(f"oslo:{at},{'era5 grid7' if at % 5 == 0 else 'grid7'}\n" for at in range(1, 21))
    (tmp_path / "datasets.csv").write_text("job_id,datasets\n" + reads)
    monkeypatch.chdir(tmp_path)
    assert "headway dry-run -c federation.yaml --data datasets.csv --policy easy" in PAGE.read_text("utf-8")
    cli.main(
        ["dry-run", "-c", "federation.yaml", "--data", "datasets.csv", "--policy", "easy", "--out", "out"]
    )
    assert "23 jobs (23 completed)" in capsys.readouterr().out
    extra = json.loads((tmp_path / "out" / "metrics.json").read_text())["extra"]
    assert extra["plans"]["routes"] > 0 and extra["staging"]["copies"] > 0
