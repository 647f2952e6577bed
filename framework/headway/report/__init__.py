"""What a run leaves behind for people and programs: CSV and JSON files, an HTML report, terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.report.comparison import compare_table
    from headway.report.html import render_html, write_html
    from headway.report.tables import (
        FORMATS,
        write_decisions_csv,
        write_jobs_csv,
        write_metrics_json,
        write_outputs,
    )
    from headway.report.terminal import render_summary
    from headway.results.section import Section

__all__ = [
    "FORMATS",
    "Section",
    "compare_table",
    "render_html",
    "render_summary",
    "write_decisions_csv",
    "write_html",
    "write_jobs_csv",
    "write_metrics_json",
    "write_outputs",
]

__getattr__ = late(
    __name__,
    {
        ".comparison": "compare_table",
        ".html": "render_html write_html",
        ".tables": "FORMATS write_decisions_csv write_jobs_csv write_metrics_json write_outputs",
        ".terminal": "render_summary",
        "headway.results.section": "Section",
    },
)
