"""A picture of the machine for the report: every midplane and every link at one moment of the run.

At the moment shown most midplanes were lost to shape or wiring; in a run that lost none, most were in use.
Layers of the torus along z stand beside each other. A partition has a single colour. The bars between
midplanes are links that it takes, bars at an edge close a ring, and the squares in a midplane's corner lead
to the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

from headway.partitions.torus import Box, Geometry, bits_of
from headway.report.quantities import duration
from headway.results import PartitionStep, RunResult

#: Pixels: a midplane, the room between two, around a layer, and above it.
CELL, GAP, MARGIN, HEAD = 44, 10, 14, 22
#: Colours of the report that are not like that of what is idle.
SERIES = 7
_SAID = {
    "promised": "to be booted", "configuring": "is booting", "ready": "is booted, without a job",
    "loading": "is loading its job", "busy": "runs its job", "deallocating": "is given back",
}  # fmt: skip
_LOST = {
    "shape": "enough processors, but they form no box for the job",
    "wiring": "there is a box for the job, but its links are in use",
}


def standing(steps: Sequence[PartitionStep], time: float) -> list[PartitionStep]:
    """The last step at ``time`` of each partition that holds its hardware then, in order of promise."""
    last: dict[str, PartitionStep] = {}
    for step in steps:
        if step.time > time:
            break
        if step.state in ("free", "error"):
            last.pop(step.partition, None)
        else:
            last[step.partition] = step
    return list(last.values())


def section(result: RunResult) -> str:
    """The picture as HTML; "" where it is not known what became of partitions."""
    figures = result.contributed.get("partitions")
    wiring = result.cluster.wiring
    if figures is None or wiring is None or not result.partitions:
        return ""
    moment = figures(result)["worst_moment"]
    if not moment:
        return ""
    geometry = Geometry(wiring)
    drawn = _drawing(geometry, standing(result.partitions, moment["time"]))
    # Here, since the plugin runs without the libraries of reports.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("headway_plugins.partitions", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    begin = result.begin if result.begin is not None else result.jobs[0].job.submit_time
    lost = _LOST.get(moment["cause"])
    return environment.get_template("picture.svg.html").render(
        when=duration(moment["time"] - begin),
        caption=f"{moment['idle']} of {geometry.size} midplanes are idle while job {moment['job']} waits "
        f"first: {lost}."
        if lost
        else "Nothing was lost to shape or wiring. "
        f"{moment['busy']} of {geometry.size} midplanes are in use.",
        **drawn,
    )


def _drawing(geometry: Geometry, partitions: Sequence[PartitionStep]) -> dict[str, Any]:
    """Midplanes, links and the legend, in pixels."""
    owner: dict[str, PartitionStep] = {}
    uses: dict[int, list[PartitionStep]] = {}
    colour = {step.partition: at % SERIES + 1 for at, step in enumerate(partitions)}
    for step in partitions:
        box = geometry.box_of(step.nodes, step.connection)
        if not isinstance(box, Box):
            continue
        nodes, links = geometry.masks(box)
        for at in bits_of(nodes):
            owner[geometry.names[at]] = step
        for link in bits_of(links):
            uses.setdefault(link, []).append(step)
    wide, high, deep = geometry.shape
    across = min(deep, max(1, ceil(sqrt(deep * high / wide))))
    width, height = wide * (CELL + GAP) + 2 * MARGIN, high * (CELL + GAP) + 2 * MARGIN + HEAD
    cells, bars, heads = [], [], []
    for z in range(deep):
        left, top = z % across * width + MARGIN, z // across * height + MARGIN + HEAD
        heads.append({"x": left, "y": top - 14, "text": f"z = {z}"})
        for x in range(wide):
            for y in range(high):
                name = geometry.names[geometry.bit((x, y, z))]
                at_x, at_y = left + x * (CELL + GAP) + GAP // 2, top + y * (CELL + GAP) + GAP // 2
                cells.append(_cell(name, at_x, at_y, owner.get(name), colour))
                for d, size in enumerate((wide, high, deep)):
                    if size > 1:
                        users = uses.get(geometry.link(d, (x, y, z)), [])
                        bars += _bars(name, d, (x, y, z)[d] == size - 1, at_x, at_y, left, top, users,
                                      colour)  # fmt: skip
    rows = ceil(deep / across)
    return {
        "width": across * width, "height": rows * height, "cells": cells, "bars": bars, "heads": heads,
        "cell": CELL,
    }  # fmt: skip


def _cell(name: str, x: int, y: int, step: PartitionStep | None, colour: dict[str, int]) -> dict[str, Any]:
    if step is None:
        return {
            "x": x, "y": y, "colour": "var(--idle)", "opacity": 1.0, "label": "", "title": f"{name}: idle",
        }  # fmt: skip
    whose = f"job {step.job_id}" if step.job_id else f"block {step.partition}"
    return {
        "x": x, "y": y, "colour": f"var(--series-{colour[step.partition]})",
        "opacity": 1.0 if step.state == "busy" else 0.3 if step.state == "ready" else 0.6,
        "label": step.job_id[-6:],
        "title": f"{name}: {whose}, {_SAID[step.state]} ({len(step.nodes)} midplanes, {step.connection})",
    }  # fmt: skip


def _bars(
    name: str, d: int, last: bool, x: int, y: int, left: int, top: int,
    users: Sequence[PartitionStep], colour: dict[str, int],
) -> list[dict[str, Any]]:  # fmt: skip
    """The bars of a link from a midplane along a dimension: a single bar, or two halves of a link that closes
    a ring."""
    fill = f"var(--series-{colour[users[-1].partition]})" if users else "var(--line)"
    thick = 6 if users else 2
    title = f"link of {name} along {'xyz'[d]}: " + (
        ", ".join(step.job_id or step.partition for step in users) if users else "free"
    )
    middle = (CELL - thick) // 2
    said = {"colour": fill, "title": title}
    if d == 2:
        # Only if it is in use: every midplane has such a link.
        return [{"x": x + CELL - 11, "y": y + 3, "width": 8, "height": 8, **said}] if users else []
    if d == 0:
        places = [(x + CELL, y + middle)] + [(left - GAP // 2, y + middle)] * last
        return [{"x": at, "y": up, "width": GAP, "height": thick, **said} for at, up in places]
    places = [(x + middle, y + CELL)] + [(x + middle, top - GAP // 2)] * last
    return [{"x": at, "y": up, "width": thick, "height": GAP, **said} for at, up in places]
