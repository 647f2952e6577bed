"""The report: self-contained, safe with any name, readable at 10,000 jobs, and alive in a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from building import described
from devtools import chromium
from synthetic_run import fcfs_run
from waiting import HANG

from headway.metrics import Figures, job_columns
from headway.model import ClusterDescription
from headway.report import Section, quantities, render_html, write_html
from headway.report.gantt import embedded, layout
from headway.results import JobResult, Occupation, RunResult

HOSTILE = "</script><script>alert(1)</script>\u2028<img src=x onerror=alert(2)>"


def hostile() -> RunResult:
    job = described("1</script>", 1, 60.0, 0.0, user=HOSTILE, name=HOSTILE)
    done = JobResult(job, 0.0, 10.0, "completed", 10.0, (), "pool")
    return RunResult(HOSTILE, ClusterDescription.flat(4), [done], about={"workload": HOSTILE})


def bundled() -> RunResult:
    """An ordinary job, and one that ran on two subjobs and then on its own request."""
    plain = JobResult(described("a", 6, 1000.0), 0.0, 1000.0, "completed", 1000.0, (), "pool")
    members = (Occupation(10.0, 1000.0, 2), Occupation(10.0, 1020.0, 2), Occupation(1000.0, 1135.0, 8))
    bundle = JobResult(
        described("b", 8, 600.0, 10.0), 10.0, 1135.0, "completed", 1125.0, (), "pool", members=members
    )
    return RunResult("bundled", ClusterDescription.flat(10, name="pool"), [plain, bundle])


def test_members_of_a_bundle_are_drawn_while_they_ran() -> None:
    result = bundled()
    columns = job_columns(result)
    shape = layout(result, columns, 1135.0)
    drawn = zip(shape.jobs, shape.starts, shape.stops, shape.rows, shape.heights, strict=True)
    assert sorted(tuple(map(float, each)) for each in drawn) == [
        (0, 0, 1000, 0, 6), (1, 10, 1000, 6, 2), (1, 10, 1020, 8, 2), (1, 1000, 1135, 0, 8),
    ]  # fmt: skip
    assert shape.total == 10
    data = embedded(result, shape, columns, 0.0, 1135.0, 10).data
    assert data["bundles"] == {1: 3}
    assert sorted(zip(data["job"], data["from"], data["for"], strict=True)) == [
        (0, 0, 1000), (1, 10, 990), (1, 10, 1010), (1, 1000, 135),
    ]  # fmt: skip
    # The smaller of the two by what it had: 6,000 processor-seconds against 5,080.
    assert embedded(result, shape, columns, 0.0, 1135.0, 1).data["id"] == ["a"]


def test_the_colours_of_bundles_have_a_legend(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_html(page, [bundled()])
    text = page.read_text()
    assert 'class="legend by-bundle" hidden' in text
    assert 'querySelector(".by-bundle").hidden = colourBy !== "bundle"' in text


def named_sizes(sizes: list[int]) -> list[str]:
    """What the plot of slowdowns by size names below, of a run with jobs of these sizes."""
    from headway.report import plots

    jobs = [JobResult(described(str(size), size), 0.0, 10.0, "completed", 10.0, (), "pool") for size in sizes]
    figures = Figures(RunResult("sizes", ClusterDescription.flat(4096), jobs))
    drawn = plots.slowdown_by_size([plots.Plotted(figures.columns, figures.curves)], prefix="s")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    return texts[: texts.index(next(text for text in texts if text.startswith("processors")))]


def test_sizes_are_named_as_ranges_while_there_is_room_for_them() -> None:
    assert named_sizes([1, 3, 130, 2000]) == ["1", "2–3", "128–255", "≥ 1024"]
    every = [2**n for n in range(12)]
    assert named_sizes(every) == ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "≥ 1024"]


@pytest.fixture(scope="module")
def large() -> str:
    return render_html([fcfs_run()])


def test_it_loads_nothing(large: str) -> None:
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", large)
    assert "<link" not in large
    assert not re.search(r"<script[^>]+src", large)
    assert "@import" not in large


def test_ten_thousand_jobs_stay_below_five_megabytes(large: str) -> None:
    assert len(large.encode()) < 5_000_000


def test_names_cannot_break_out() -> None:
    page = render_html([hostile()])
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u2028" not in "".join(re.findall(r"<script.*?</script>", page, re.DOTALL))


def test_several_runs_stand_side_by_side() -> None:
    page = render_html([fcfs_run(jobs=200, label="one"), fcfs_run(jobs=200, label="two")])
    assert "Comparison" in page
    assert page.count('class="gantt"') == 2


def test_classes_of_jobs_have_means_and_boxes(large: str) -> None:
    part = large[large.index("By class of job") : large.index("<h2>Schedule")]
    for name in ("all", "SN short, narrow", "LN long, narrow", "SW short, wide", "LW long, wide"):
        assert f"<th>{name}</th>" in part
    assert part.count("<svg") == 2
    assert "Narrow: at most 1 processor, short: at most 1 h 00 min." in part
    # In each plot five boxes with their means.
    assert len(re.findall(r'<use href="#cw-', part)) >= 5


def test_a_run_without_jobs_has_a_report() -> None:
    assert "<html" in render_html([RunResult("empty", ClusterDescription.flat(4), [])])


def test_sections_of_plugins_are_in_it() -> None:
    page = render_html([fcfs_run(jobs=20)], sections=[Section("Power", "<p>42 W</p>")])
    assert "Power" in page
    assert "<p>42 W</p>" in page


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["large", "hostile", "bundled"])
def test_its_script_runs_to_the_end_in_a_browser(kind: str, tmp_path: Path) -> None:
    browser = chromium()
    page = tmp_path / "report.html"
    write_html(page, [{"large": fcfs_run, "hostile": hostile, "bundled": bundled}[kind]()])
    options = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=20000 --dump-dom"
    )
    dom = subprocess.run(
        [browser, *options.split(), f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    ).stdout
    root = re.search(r"<html[^>]*>", dom)
    assert root is not None
    assert 'data-report="ready"' in root[0]
    assert "data-error" not in root[0]
    assert int(re.search(r'data-rectangles="(\d+)"', root[0])[1]) > 0


def test_it_draws_without_what_matplotlib_has_for_windows() -> None:
    script = (
        "import sys\n"
        "from synthetic_run import fcfs_run\n"
        "from headway.report import render_html\n"
        "render_html([fcfs_run(50)])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parent)


def test_a_job_that_runs_beyond_all_calendars_has_a_page() -> None:
    """As a copy of a live cluster has it: ``sbatch -t 2147483647``, for 4,083 years, twice."""
    years = 2 * 2147483647 * 60.0
    done = JobResult(described("1", 1, years), 0.0, years, "completed", years, (), "pool")
    live = RunResult("long", ClusterDescription.flat(4, name="pool"), [done], epoch=1_795_380_958.0)
    assert quantities.duration(years) in render_html([live])
