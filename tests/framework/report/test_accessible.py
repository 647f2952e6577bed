"""The pages can be read with a keyboard, with a screen reader, on a telephone, and in both themes."""

from __future__ import annotations

import re
from itertools import product

import pytest
from building import described
from synthetic_run import fcfs_run

from headway.model import ClusterDescription
from headway.report import render_html
from headway.report.html import page_environment, stylesheet
from headway.report.plots import SHAPES
from headway.results import JobResult, RunResult

#: Text and what it stands on, as the style sheet has them; ``#16191d`` is the text of the bars' parts.
PAIRS = [
    *product(("ink", "ink-2"), ("paper", "panel", "ground")), ("best", "paper"), ("paper", "series-1"),
    ("ink", "idle"), ("#16191d", "held"), ("#16191d", "fragmented"),
]  # fmt: skip


@pytest.fixture(scope="module")
def pages() -> list[str]:
    one, other = fcfs_run(300), fcfs_run(300, skip=True, label="skip")
    return [render_html([one]), render_html([one, other])]


def test_what_scrolls_has_a_name_and_the_keyboards_focus(pages: list[str]) -> None:
    for page in pages:
        scrolling = re.findall(r'<div class="wide[^>]*>', page)
        assert scrolling
        for element in scrolling:
            assert 'tabindex="0"' in element and re.search(r'aria-label="[^"]+"', element), element


def test_no_heading_of_a_table_is_empty(pages: list[str]) -> None:
    for page in pages:
        assert not re.search(r"<th[^>]*>\s*</th>", page)


def test_long_charts_scroll_instead_of_shrinking(pages: list[str]) -> None:
    css = stylesheet(page_environment())
    assert re.search(r"\.long svg \{ min-width: [0-9]+px; \}", css)
    assert "overflow-wrap: anywhere" not in css.split(".tip")[0], "words break in the middle"
    for page in pages:
        assert page.count('class="wide long"') >= 1


def test_charts_over_time_have_a_shape_for_each_width(pages: list[str]) -> None:
    css = stylesheet(page_environment())
    for page in pages:
        for shape, *_ in SHAPES:
            assert page.count(f'<div class="{shape}"><svg') == 2
            assert f".{shape}" in css


def test_each_chart_is_told_in_words(pages: list[str]) -> None:
    for page, runs in zip(pages, (1, 2), strict=True):
        # The schedule has a chart a run.
        assert page.count("<summary>In words</summary>") == 7 + runs
    one, two = pages
    assert re.search(r"<p>[0-9.]+ % of the capacity was used, in the mean; between", one)
    assert re.search(r"<li>skip: half of the jobs waited at most", two)


def test_the_words_have_the_runs_figures() -> None:
    done = [
        JobResult(
            described(str(n), 2, 100.0, 0.0, user="ann"), start, start + 50.0, "completed", 50.0, (), "pool"
        )
        for n, start in enumerate((0.0, 0.0, 50.0))
    ]
    page = render_html([RunResult("easy", ClusterDescription.flat(4), done)])
    for text in (
        "75.0 % of the capacity was used, in the mean; between 50.0 % and 100.0 %, and at least 90 % for 50",
        "0.5 jobs waited in the mean, at most 1 (0 s after the beginning), and none for 50.0 % of the time",
        "Half of the jobs waited at most 0 s, 90 % at most 40 s, the longest 50 s; 66.7 % waited less than a",
        "Median (90th percentile): from 2 processors on",
        "3 jobs ran within 1 min 40 s; most of the work: ann 100.0 %.",
    ):
        assert text in page


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS, ids=lambda name: str(name))
def test_text_has_the_contrast_of_wcag_aa(theme: int, text: str, ground: str) -> None:
    """Web Content Accessibility Guidelines 2.1, success criterion 1.4.3: at least 4.5 to 1."""
    found = re.findall(r":root \{(.*?)\}", stylesheet(page_environment()), re.DOTALL)[theme]
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", found))
    lighter, darker = sorted((luminance(colours.get(text, text)), luminance(colours[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_title_names_the_workload() -> None:
    def run(label: str, workload: str) -> RunResult:
        done = JobResult(described("1", 1, 60.0, 0.0), 0.0, 10.0, "completed", 10.0, (), "pool")
        return RunResult(label, ClusterDescription.flat(4), [done], about={"workload": workload})

    easy, fcfs, other = run("easy", "log.swf"), run("fcfs", "log.swf"), run("fcfs", "other.swf")
    assert "<title>easy on log.swf: one run" in render_html([easy])
    assert "<title>2 runs on log.swf compared" in render_html([easy, fcfs])
    assert "<title>2 runs compared" in render_html([easy, other])


def test_two_remarks_below_a_chart_are_parted_by_a_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.report.html.EMBEDDED_JOBS", 1)
    done = [
        JobResult(described(str(n), 1, 60.0, 0.0), 0.0, end, "completed", end, (), "pool")
        for n, end in enumerate((10.0, 20.0, *[0.0] * 1200))
    ]
    page = render_html([RunResult("easy", ClusterDescription.flat(4), done)])
    assert re.search("cannot be pointed at\\. 1\N{NARROW NO-BREAK SPACE}200 jobs ran for no time", page)
