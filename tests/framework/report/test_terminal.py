"""Metrics that plugins contribute, as lines."""

from __future__ import annotations

from headway.report.terminal import flatten


def test_nested_figures_are_a_line_each_and_large_tables_and_lists_of_entries_are_counted():
    entries = [{"runs_from": 0, "jobs": 3}, {"runs_from": 10, "jobs": 4}]
    found = flatten("recent", {"jobs": 7, "answered": None, "by_history": entries})
    assert found == [
        ("recent / jobs", "7"),
        ("recent / answered", "–"),
        ("recent / by_history", "2 entries, in metrics.json"),
    ]
    large = {"by_user": {f"u{number}": number for number in range(13)}}
    assert flatten("x", large) == [("x / by_user", "13 entries, in metrics.json")]
    assert flatten("x", {"levels": [1, 2]}) == [("x / levels", "[1, 2]")]
