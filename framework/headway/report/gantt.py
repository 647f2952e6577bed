"""A Gantt chart of any number of jobs: which job ran on which processors, when.

Three steps. :func:`layout` gives every job its rows: its nodes' rows if the result has placements,
else, on a flat pool, where processors have no names, rows found by first-fit packing of intervals, for
the drawing only; each member of a bundle has its own, while it runs. :func:`raster` paints all jobs into a
picture in which every pixel holds exactly the share of its area that jobs cover, so that no job is too small
to count and none is drawn bigger than it is.
:func:`embedded` chooses the jobs that the page's script gets, for zooming and for telling about one.
"""

from __future__ import annotations

import io
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.metrics import JobColumns
from headway.metrics.jobs import occupations
from headway.model import Placement
from headway.results import JobResult, RunResult

Floats = NDArray[np.float64]

#: Upper bounds in seconds of the classes of waiting that the colours tell, and their names.
WAIT_BOUNDS = (60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0)
WAIT_NAMES = ("under 1 min", "under 10 min", "under 1 h", "under 6 h", "under 1 d", "1 d or more")
#: From short to long. Lightness rises with the wait, so the order survives colour blindness and grey print.
WAIT_COLOURS = ("#4c63c9", "#8450c2", "#b9469d", "#dc5f68", "#ee8f3f", "#dfbd22")
#: The users with the most work, then all others.
USER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a100", "#56a8dc", "#8c6bb1", "#b5651d")
OTHER_COLOUR = "#8a8f98"
#: Rectangles that are placed and painted together.
_BLOCK = 16_384
#: Rows of pixels that are painted together.
_BAND = 140


@dataclass(frozen=True)
class Layout:
    """Rectangles: ``rows[i] .. rows[i] + heights[i]`` of job number ``jobs[i]``, from ``starts[i]`` to
    ``stops[i]``, absolute seconds."""

    jobs: NDArray[np.int64]
    rows: NDArray[np.int64]
    heights: NDArray[np.int64]
    starts: Floats
    stops: Floats
    #: How many rows there are.
    total: int
    #: First row of each pool, and its name.
    pools: tuple[tuple[int, str], ...]


class _Lane:
    """Neighbouring rows, of which some are free: sorted, disjoint, non-touching intervals."""

    def __init__(self, low: int, high: int) -> None:
        self.lows = [low] if high > low else []
        self.highs = [high] if high > low else []

    def take(self, wanted: int) -> list[tuple[int, int]]:
        """Up to ``wanted`` rows: the first hole that is big enough, else the largest holes."""
        whole = self.take_whole(wanted)
        if whole is not None:
            return [(whole, wanted)]
        lows, highs = self.lows, self.highs
        taken = []
        for i in sorted(range(len(lows)), key=lambda i: lows[i] - highs[i]):
            count = min(wanted, highs[i] - lows[i])
            taken.append((lows[i], count))
            wanted -= count
            if not wanted:
                break
        for low, count in taken:
            self._cut(bisect_left(lows, low), low + count)
        return sorted(taken)

    def take_whole(self, wanted: int) -> int | None:
        """The first row of the first hole that is big enough, which is taken; None if there is none."""
        highs = self.highs
        for i, low in enumerate(self.lows):
            if highs[i] - low >= wanted:
                self._cut(i, low + wanted)
                return low
        return None

    def _cut(self, i: int, low: int) -> None:
        if low == self.highs[i]:
            del self.lows[i], self.highs[i]
        else:
            self.lows[i] = low

    def give(self, low: int, count: int) -> None:
        """Frees rows that were taken."""
        lows, highs, high = self.lows, self.highs, low + count
        i = bisect_left(lows, low)
        joins_before = i > 0 and highs[i - 1] == low
        joins_after = i < len(lows) and lows[i] == high
        if joins_before and joins_after:
            highs[i - 1] = highs[i]
            del lows[i], highs[i]
        elif joins_before:
            highs[i - 1] = high
        elif joins_after:
            lows[i] = low
        else:
            lows.insert(i, low)
            highs.insert(i, high)


def layout(result: RunResult, columns: JobColumns, end: float) -> Layout:
    """Rows for all jobs that ran for any time at all; a job that still runs does so until ``end``.

    Processors beyond what the cluster's description has (oversubscribed, or nodes that came later)
    get further rows on top.
    """
    lanes, pools, base = _lanes(result)
    overflow = _Lane(base, 1 << 40)
    owner, start, stop, _ = occupations(result, columns)
    owners = owner.tolist()
    stop = np.where(np.isnan(stop), end, stop)
    members = [member for job in result.jobs for member in job.several]
    plain = len(owner) - len(members)
    drawn = np.flatnonzero(stop > start)
    moments = np.concatenate((stop[drawn], start[drawn]))
    # At one moment, ends come before starts: that is where the starts get their processors.
    order = np.lexsort((np.repeat((0, 1), len(drawn)), moments))
    ran = drawn.tolist()

    held: dict[int, Sequence[tuple[_Lane, int, int]]] = {}
    #: Span, first row and number of rows of one rectangle after the other.
    pieces = array("q")
    blocks = (order[first : first + _BLOCK].tolist() for first in range(0, len(order), _BLOCK))
    for number in chain.from_iterable(blocks):
        if number < len(ran):
            for lane, low, count in held.pop(ran[number]):
                lane.give(low, count)
            continue
        span = ran[number - len(ran)]
        record = result.jobs[owners[span]]
        placement, processors = record.placement, record.job.request.processors
        if span >= plain:
            member = members[span - plain]
            placement, processors = member.placement, member.processors
        places = _wanted(record, placement, processors, lanes, overflow)
        if len(places) == 1:
            # Most jobs on a flat pool: one hole that is big enough.
            lane, wanted = places[0]
            whole = lane.take_whole(wanted)
            if whole is not None:
                held[span] = ((lane, whole, wanted),)
                pieces.extend((span, whole, wanted))
                continue
        parts: list[tuple[_Lane, int, int]] = []
        for lane, wanted in places:
            for low, count in lane.take(wanted):
                parts.append((lane, low, count))
                wanted -= count
            if wanted:
                parts.extend((overflow, low, count) for low, count in overflow.take(wanted))
        held[span] = parts
        for low, count in _joined(parts):
            pieces.extend((span, low, count))
    table = np.frombuffer(pieces, dtype=np.int64).reshape(-1, 3)
    top = int((table[:, 1] + table[:, 2]).max()) if len(table) else 0
    spans = table[:, 0]
    return Layout(
        jobs=owner[spans], rows=table[:, 1], heights=table[:, 2], starts=start[spans], stops=stop[spans],
        total=max(base, top, 1), pools=pools,
    )  # fmt: skip


def _lanes(result: RunResult) -> tuple[dict[str, _Lane], tuple[tuple[int, str], ...], int]:
    """Lanes by the name of their flat pool (after a slash) or node, names of pools, and rows used."""
    lanes: dict[str, _Lane] = {}
    pools: list[tuple[int, str]] = []
    base = 0
    placed = set()
    for pool in result.cluster.pools:
        first = base
        if pool.flat:
            lanes["/" + pool.name] = _Lane(base, base + pool.processors)
            base += pool.processors
        for node in result.cluster.nodes:
            if pool.name in node.pools and node.name not in placed:
                placed.add(node.name)
                lanes[node.name] = _Lane(base, base + node.processors)
                base += node.processors
        if base > first:
            pools.append((first, pool.name))
    for node in result.cluster.nodes:
        if node.name not in placed:
            lanes[node.name] = _Lane(base, base + node.processors)
            base += node.processors
    return lanes, tuple(pools), base


def _wanted(
    record: JobResult, placement: Placement, processors: int, lanes: dict[str, _Lane], overflow: _Lane
) -> list[tuple[_Lane, int]]:
    if placement:
        return [(lanes.get(name, overflow), count) for name, count in placement]
    lane = lanes.get("/" + (record.pool or record.job.pool))
    if lane is None:
        lane = next((lane for name, lane in lanes.items() if name.startswith("/")), overflow)
    return [(lane, processors)]


def _joined(parts: Sequence[tuple[_Lane, int, int]]) -> list[tuple[int, int]]:
    """Touching intervals as one: a job over whole neighbouring nodes is one rectangle."""
    joined: list[tuple[int, int]] = []
    for low, count in sorted((low, count) for _, low, count in parts):
        if joined and joined[-1][0] + joined[-1][1] == low:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((low, count))
    return joined


def wait_classes(columns: JobColumns) -> NDArray[np.int64]:
    """Index into :data:`WAIT_COLOURS` for each job."""
    return np.searchsorted(np.array(WAIT_BOUNDS), np.nan_to_num(columns.wait), side="right")


def users_by_work(result: RunResult, columns: JobColumns) -> tuple[list[str], NDArray[np.int64]]:
    """The users with the most work, and for each job its user's index there; -1: another user."""
    work = np.nan_to_num(columns.runtime) * columns.allocated
    total: Counter[str] = Counter()
    for record, amount in zip(result.jobs, work.tolist(), strict=True):
        total[record.job.user] += amount
    names = [name for name, _ in total.most_common(len(USER_COLOURS))]
    index = {name: i for i, name in enumerate(names)}
    numbers = (index.get(record.job.user, -1) for record in result.jobs)
    return names, np.fromiter(numbers, np.int64, len(result.jobs))


def raster(
    shape: Layout, columns: JobColumns, begin: float, end: float, *, width: int = 1600, height: int = 560
) -> bytes:
    """A PNG (``width`` x ``height`` pixels, transparent where nothing ran), coloured by wait.

    Every rectangle puts 4 x 4 weights into a grid of second differences; two cumulative sums
    turn them into exact coverage. The time depends on the pixels and, without a loop, on the rectangles.
    """
    span = max(end - begin, 1e-9)

    def across(some: Any) -> tuple[Floats, Floats]:
        """From where to where rectangles reach, in pixels."""
        x0 = (np.clip(shape.starts[some], begin, end) - begin) / span * width
        x1 = (np.clip(shape.stops[some], begin, end) - begin) / span * width
        # A gap between neighbours, where there is room for one.
        return x0, np.where(x1 - x0 > 4, x1 - 0.7, x1)

    def upward(some: Any, top: int, rows: int) -> tuple[Floats, Floats]:
        """The same from the upper end of a band of so many rows, and in it. Row 0 is at the bottom."""
        y0 = shape.rows[some] / shape.total * height
        y1 = (shape.rows[some] + shape.heights[some]) / shape.total * height
        y1 = np.where(y1 - y0 > 4, y1 - 0.7, y1)
        return np.clip(height - y1 - top, 0, rows), np.clip(height - y0 - top, 0, rows)

    # Red, green, blue and one for the cover, for each class of waiting.
    weights = np.array([(*_rgb(colour), 1.0) for colour in WAIT_COLOURS]).T
    waits = wait_classes(columns).astype(np.int8)
    pixels = np.zeros((height, width, 4), np.uint8)
    # In bands, so that the grids of numbers that become shades are small, and few rectangles at a time, of
    # which there may be very many.
    for top in range(0, height, _BAND):
        band = pixels[top : top + _BAND]
        here = []
        for first in range(0, len(shape.jobs), _BLOCK):
            low, high = upward(slice(first, first + _BLOCK), top, len(band))
            here.append(np.flatnonzero(high > low) + first)
        inside = np.concatenate(here) if here else np.zeros(0, np.int64)
        blocks = (inside[first : first + _BLOCK] for first in range(0, len(inside), _BLOCK))
        *channels, cover = _coverage(
            ((*across(some), *upward(some, top, len(band)), waits[shape.jobs[some]]) for some in blocks),
            weights, width, len(band),
        )  # fmt: skip
        for channel, sums in enumerate(channels):
            band[:, :, channel] = _shades(np.divide(sums, cover, out=sums, where=cover > 1e-9))
        band[:, :, 3] = _shades(cover)
    # Colour where nothing is seen is only size.
    pixels[pixels[:, :, 3] == 0] = 0
    return _png(pixels)


def _shades(values: Floats) -> NDArray[np.uint8]:
    """0 .. 1 -> 0 .. 255, in 32 shades: a third of the size, without a visible difference."""
    known = np.round(np.arange(32) / 31 * 255).astype(np.uint8)
    return known[np.round(np.clip(values, 0, 1) * 31).astype(np.uint8)]


def _coverage(
    blocks: Iterable[tuple[Floats, Floats, Floats, Floats, NDArray[np.int8]]],
    weights: Floats,
    width: int,
    height: int,
) -> Floats:
    """The weighted area of rectangles in each pixel of a grid, once for each row of ``weights``.

    ``blocks``: x0, x1, y0, y1 and the kinds of some rectangles. A row of the weights has one for each kind.
    """
    columns = width + 2
    grids = np.zeros((len(weights), columns * (height + 2)))
    for x0, x1, y0, y1, kinds in blocks:
        cells, parts = _corners(x0, x1, y0, y1, columns)
        for grid, weight in zip(grids, weights[:, kinds], strict=True):
            grid += np.bincount(cells, weights=(parts * weight).ravel(), minlength=len(grid))[: len(grid)]
    covered = grids.reshape(-1, height + 2, columns)
    np.cumsum(covered, axis=1, out=covered)
    np.cumsum(covered, axis=2, out=covered)
    return np.maximum(covered[:, :height, :width], 0.0, out=covered[:, :height, :width])


def _corners(
    x0: Floats, x1: Floats, y0: Floats, y1: Floats, columns: int
) -> tuple[NDArray[np.int64], Floats]:
    """The 16 cells that each rectangle changes in a grid of second differences, in a row, and by how much."""
    cells, parts = [], []
    for x, sign_x in ((x0, 1.0), (x1, -1.0)):
        left = np.floor(x).astype(np.int64)
        for y, sign_y in ((y0, 1.0), (y1, -1.0)):
            upper = np.floor(y).astype(np.int64)
            for dx in (0, 1):
                part_x = x - left if dx else 1.0 - (x - left)
                for dy in (0, 1):
                    part_y = y - upper if dy else 1.0 - (y - upper)
                    cells.append((upper + dy) * columns + left + dx)
                    parts.append(sign_x * sign_y * part_x * part_y)
    return np.concatenate(cells), np.array(parts)


def _rgb(colour: str) -> tuple[float, float, float]:
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255


def _png(pixels: NDArray[np.uint8]) -> bytes:
    # Here and not above: the layout alone does not need Pillow.
    from PIL import Image

    stream = io.BytesIO()
    # Runs of equal bytes are all there is to find: a tenth of the time of a full search, and no larger.
    Image.fromarray(pixels).save(stream, "png", compress_level=6, compress_type=zlib.Z_RLE)
    return stream.getvalue()


@dataclass(frozen=True)
class Embedded:
    """What the page's script gets, and what is missing from it."""

    data: dict[str, Any]
    #: Jobs left out, and the share of the work that they are.
    omitted: int
    omitted_work: float


def embedded(
    result: RunResult, shape: Layout, columns: JobColumns, begin: float, end: float, limit: int
) -> Embedded:
    """At most ``limit`` jobs, the jobs with the largest area (processors x time), as compact columns.

    Times are whole seconds since ``begin``.
    """
    stop = np.where(np.isnan(columns.end), end, columns.end)
    drawn = np.unique(shape.jobs)
    areas = np.bincount(shape.jobs, (shape.stops - shape.starts) * shape.heights, len(result.jobs))
    kept = np.sort(drawn[np.argsort(-areas[drawn], kind="stable")[:limit]])
    number = np.full(len(result.jobs), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    mine = number[shape.jobs] >= 0
    _, user = users_by_work(result, columns)
    all_users = list(dict.fromkeys(result.jobs[i].job.user for i in kept))
    user_number = {name: i for i, name in enumerate(all_users)}
    states = list(dict.fromkeys(result.jobs[i].state for i in kept))
    total, here = float(areas.sum()), float(areas[kept].sum())
    counts = {i: len(result.jobs[job].members) for i, job in enumerate(kept.tolist())}
    bundles = {i: count for i, count in counts.items() if count}
    several = any(result.jobs[job].several for job in kept.tolist())
    # Where there are bundles, or jobs that were suspended, a rectangle's times may be others than its job's.
    spans = (
        {
            "from": np.round(shape.starts[mine] - begin).astype(np.int64).tolist(),
            "for": np.round((shape.stops - shape.starts)[mine]).astype(np.int64).tolist(),
            "bundles": bundles,
        }
        if several
        else {}
    )
    return Embedded(
        data={
            **spans,
            "span": round(end - begin),
            "rows": shape.total,
            "pools": [list(pool) for pool in shape.pools],
            "users": all_users,
            "states": states,
            "id": [result.jobs[i].job.id for i in kept],
            "user": [user_number[result.jobs[i].job.user] for i in kept],
            "hue": user[kept].tolist(),
            "state": [states.index(result.jobs[i].state) for i in kept],
            "start": np.round(columns.start[kept] - begin).astype(np.int64).tolist(),
            "length": np.round((stop - columns.start)[kept]).astype(np.int64).tolist(),
            "wait": np.round(columns.wait[kept]).astype(np.int64).tolist(),
            "estimate": np.round(columns.estimate[kept]).astype(np.int64).tolist(),
            "size": columns.allocated[kept].tolist(),
            "job": number[shape.jobs[mine]].tolist(),
            "row": shape.rows[mine].tolist(),
            "height": shape.heights[mine].tolist(),
        },
        omitted=len(drawn) - len(kept),
        omitted_work=1.0 - here / total if total > 0 else 0.0,
    )
