"""What a run leaves behind for people and programs: CSV and JSON files, an HTML report, terminal tables."""

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
