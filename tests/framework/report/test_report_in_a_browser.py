"""The report in a browser, on a telephone and on a large screen, light and dark: nothing is cut off or small,
and axe-core has no serious finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_in_a_browser import looked_at
from synthetic_run import fcfs_run

from headway.report import render_html

WIDTHS = (400, 800, 1400)
#: A picture without a text, for axe-core to find.
BAD = '<html lang="en"><head><title>bad</title></head><body><main><img src="data:,"></main></body></html>'


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_at_each_width(dark: bool, tmp_path: Path) -> None:
    # A browser with six frames, each of which axe-core looks at, takes longer than other tests.
    runs = [fcfs_run(80)] if dark else [fcfs_run(80), fcfs_run(80, skip=True, label="skip")]
    page = render_html(runs)
    *found, bad = looked_at([*((page, width) for width in WIDTHS), (BAD, 400)], tmp_path, dark=dark)
    assert "image-alt" in {name for _, name, _ in bad["findings"]}
    for width, told in zip(WIDTHS, found, strict=True):
        assert (told["width"], told["dark"], told["error"]) == (width, dark, "")
        assert [one for one in told["findings"] if one[0] in ("serious", "critical")] == []
        assert told["overflow"] <= 0
        # Charts that are not scrolled to, letters of less than 8 points, figures behind the edge.
        assert (told["cut"], told["hidden"], told["unnamed"]) == ([], [], 0)
        assert told["charts"] == 7 + len(runs)
        assert told["smallest"] >= 10
        # The key n tells of a job, as the mouse does.
        assert "processors for" in told["told"]
