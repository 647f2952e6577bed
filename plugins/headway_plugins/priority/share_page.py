"""The page of ``headway shares --html``: the tree, and targets against usage over time, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

import headway
from headway.report.atomic import writing
from headway.report.drawing import Axes
from headway.report.html import page_environment, stylesheet
from headway.report.plots import COLOURS, SERIES, over_time, time_unit
from headway_plugins.priority.share_course import Course, Line

#: Accounts that get a plot; of more, the first accounts do, and the page says so.
PLOTS = 24

_PAGE = """{% extends "page.html" %}
{% block main %}
<section>
<h2>Targets against usage over time</h2>
<p class="note">Of the usage of an account, as it counts at that moment: the part of each
member (solid line), and the part that shares or a target promise (dashed line).
Shown are the members with the most usage.
{% if left_out %}{{ left_out }} more accounts are left out.{% endif %}</p>
{% for account, names, plot in plots %}
<figure class="plot"><figcaption>Below {{ account }}</figcaption>
{{ plot }}
<ul class="legend">
{% for name in names %}
<li><i style="background:var(--series-{{ loop.index }})"></i>{{ name }}</li>
{% endfor %}
</ul></figure>
{% else %}
<p class="note">No usage yet.</p>
{% endfor %}
</section>
<section>
<h2>Accounts and users</h2>
<div class="wide" role="group" tabindex="0" aria-label="Accounts and users"><table>
<thead><tr>
{% for name in heads %}
<th{% if loop.index0 >= 2 %} class="n"{% endif %}>{{ name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in rows %}
<tr>
<td style="padding-left:{{ row[0]|length - row[0].lstrip()|length }}em">{{ row[0].lstrip() }}</td>
<td>{{ row[1] }}</td>
{% for text in row[2:] %}
<td class="n">{{ text }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
<p class="note">The columns of sshare -l without the columns of minutes, at the end of the run.</p>
</section>
{% endblock %}
{% block figures %}The columns are explained in docs/operators/policy.md.{% endblock %}
"""


def write_share_page(
    path: Path,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    course: Course,
    families: Sequence[tuple[str, Sequence[Line]]],
) -> None:
    """Write the page, which needs no other file. ``rows``: the first column is indented by blanks.

    Raises :class:`headway.errors.Failure` if that is not possible.
    """
    environment = page_environment()
    plots = []
    for number, (account, lines) in enumerate(families[:PLOTS]):
        plot = Markup(draw_family(course.times, lines, prefix=f"s{number}"))
        plots.append((account, [line.name for line in lines], plot))
    page = environment.from_string(_PAGE).render(
        title="Shares and usage", css=stylesheet(environment), version=headway.__version__,
        heads=heads, rows=rows, plots=plots, left_out=max(len(families) - PLOTS, 0),
    )  # fmt: skip
    with writing(path) as stream:
        stream.write(page)


def draw_family(times: Sequence[float], lines: Sequence[Line], *, prefix: str) -> str:
    """The siblings' parts over time as SVG; at most as many as there are colours."""

    def draw(axes: Axes) -> None:
        unit, name = time_unit(times[-1] - times[0])
        x = (np.array(times) - times[0]) / unit
        for number, line in enumerate(lines[:SERIES]):
            axes.plot(x, 100 * np.array(line.used), linewidth=1.4, color=COLOURS[number])
            axes.plot(
                x, 100 * np.array(line.target), linewidth=1.0, color=COLOURS[number], linestyle=(0, (5, 3))
            )
        axes.set_xlim(0, max(float(x[-1]), 1e-9))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("% of the usage")
        axes.set_xlabel(f"{name} since the beginning")

    return over_time(draw, prefix, "Targets against usage over time")
