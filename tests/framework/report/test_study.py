"""The study of a workload as tables, files and a page."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from headway.errors import Failure
from headway.report.study import (
    accuracy_title,
    cell_matrix,
    length_title,
    render_study,
    render_study_html,
    size_title,
    width_title,
    write_study,
)
from headway.workload import Trace
from headway.workload.analysis import COLUMNS, Study, study

HOSTILE = "</script><img src=x onerror=alert(1)>.swf"


def workload(jobs: int = 500, path: str = "log.swf", **header: str) -> Trace:
    rng = np.random.default_rng(1)
    records = np.full((jobs, 18), -1.0)
    records[:, 1] = np.sort(rng.integers(0, 20 * 86_400, jobs))
    records[:, 3] = np.rint(rng.lognormal(7, 2, jobs))
    records[:, 7] = 2.0 ** rng.integers(0, 8, jobs)
    records[:, 8] = records[:, 3] * rng.integers(1, 20, jobs)
    fields = {"UnixStartTime": "1235088000", "TimeZone": "-18000", "MaxProcs": "256", **header}
    return Trace(path, fields={key: value for key, value in fields.items() if value}, records=records)


@pytest.fixture(scope="module")
def month() -> Study:
    return study(workload())


def printed(found: Study, width: int = 80) -> str:
    screen = Console(width=width, file=io.StringIO(), highlight=False)
    screen.print(render_study(found))
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_the_terminal_shows_every_table_in_80_columns(month: Study) -> None:
    text = printed(month)
    for title in ("log.swf: 500 jobs", "offered load", "SN short, narrow", "% of jobs", "hour of day",
                  "day of the week", "processors", "runtime / estimate"):  # fmt: skip
        assert title in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "narrow: at most 1 processor, short: at most 1 h 00 min" in text
    assert "time zone: UTC-05:00" in text


def test_what_is_missing_is_said_and_left_out() -> None:
    found = study(workload(UnixStartTime="", MaxProcs=""))
    text = printed(found)
    assert "day of the week" not in text
    assert "The header names no machine size" in text
    assert re.search(r"offered load +–", text)


def test_bins_have_names() -> None:
    def length(above: float | None, to: float | None) -> str:
        return length_title({"length_above": above, "length_to": to})

    assert length(None, 60) == "≤ 1 min"
    assert length(60, 600) == "1–10 min"
    assert length(1200, 3600) == "20 min–1 h"
    assert length(90, 5400) == "90 s–90 min"
    assert length(28_800, None) == "> 8 h"
    assert [width_title({"width_from": a, "width_to": b}) for a, b in ((1, 1), (2, 32), (33, None))] == [
        "1", "2–32", "> 32",
    ]  # fmt: skip
    assert [size_title({"from": a, "to": b}) for a, b in ((1, 1), (5, 8))] == ["1", "5–8"]
    accuracies = ((None, 0.1), (0.1, 0.2), (1, 1), (1, None))
    assert [accuracy_title({"above": a, "to": b}) for a, b in accuracies] == ["≤ 0.1", "0.1–0.2", "1", "> 1"]


def test_cells_stand_in_a_matrix_with_sums(month: Study) -> None:
    widths, rows = cell_matrix(month)
    assert widths == ["1", "2–32", "> 32", "all"]
    assert [name for name, _ in rows][-1] == "all"
    assert len(rows) == 8
    assert rows[-1][1][-1] == pytest.approx(100)
    for _, shares in rows:
        assert sum(shares[:-1]) == pytest.approx(shares[-1])


def test_each_table_is_a_file_with_its_columns(month: Study, tmp_path: Path) -> None:
    names = [path.name for path in write_study(month, tmp_path / "new")]
    assert names == ["summary.csv", *(f"{name}.csv" for name in COLUMNS), "analysis.json", "analysis.html"]
    for name, columns in COLUMNS.items():
        with open(tmp_path / "new" / f"{name}.csv", newline="") as stream:
            head, *rows = csv.reader(stream)
        assert tuple(head) == columns
        assert len(rows) == len(month.tables[name])
    with open(tmp_path / "new" / "summary.csv", newline="") as stream:
        summary = {row["quantity"]: row["value"] for row in csv.DictReader(stream)}
    assert summary["jobs"] == "500"
    assert float(summary["offered_load"]) == month.summary["offered_load"]
    found = json.loads((tmp_path / "new" / "analysis.json").read_text())
    assert found["summary"] == month.summary
    assert found["cells"] == month.tables["cells"]
    assert found["workload"]["class_bounds"] == {"narrow": 1, "short": 3600}


def test_what_does_not_exist_is_empty_or_null(tmp_path: Path) -> None:
    write_study(study(workload(UnixStartTime="", MaxProcs="")), tmp_path)
    with open(tmp_path / "days.csv", newline="") as stream:
        day = next(csv.DictReader(stream))
    assert (day["day"], day["weekday"], day["load"]) == ("0", "", "")
    assert json.loads((tmp_path / "analysis.json").read_text())["summary"]["offered_load"] is None
    assert "Arrivals by day of the week" not in (tmp_path / "analysis.html").read_text()


def test_the_page_is_self_contained_and_has_its_plots(month: Study) -> None:
    page = render_study_html(month)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "<link" not in page
    assert "<script" not in page
    # The days in three widths, one of them for telephones.
    assert page.count("<svg") == 12
    for title in ("Classes of jobs", "Length by processors", "Offered load by day", "Accuracy of estimates"):
        assert title in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_names_cannot_break_out_of_the_page() -> None:
    page = render_study_html(study(workload(20, HOSTILE, TimeZone="0")))
    assert "<img src=x" not in page


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_smallest_workloads_have_a_page(jobs: int) -> None:
    trace = workload(jobs)
    assert "<svg" in render_study_html(study(trace))
    unknown = trace.records.copy()
    unknown[:, 2:] = -1
    found = study(Trace("x", records=unknown))
    assert "<svg" in render_study_html(found)
    assert "there is no accuracy" in printed(found)


def test_a_directory_that_cannot_be_made_is_a_failure(month: Study, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(Failure, match="out: cannot be made"):
        write_study(month, tmp_path / "out")
