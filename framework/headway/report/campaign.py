"""The page of a campaign: its tables, what the rule book says of it, and its plots, in one file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from headway.report.atomic import writing
from headway.report.html import page_environment, stylesheet
from headway.report.table import Table
from headway.version import __version__


def write_campaign_page(
    path: Path, title: str, tables: Sequence[Table], plots: Sequence[tuple[str, Path]]
) -> None:
    """Write the page; ``plots``: what each PNG file shows. The page needs no other file.

    Raises :class:`headway.errors.Failure` if that is not possible.
    """
    environment = page_environment()
    page = environment.get_template("campaign.html").render(
        title=title,
        css=stylesheet(environment),
        tables=tables,
        plots=[(name, Markup(base64.b64encode(file.read_bytes()).decode("ascii"))) for name, file in plots],
        version=__version__,
    )
    with writing(path) as stream:
        stream.write(page)
