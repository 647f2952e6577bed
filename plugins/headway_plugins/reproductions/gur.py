"""The experiments of the paper on GUR, on emulated sites.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 6. The paper reports that its tests worked, and no figures. Here:

- *metajobs* (E1): two sites whose batch jobs go on, of the model `lublin` or with ``trace`` of a real trace;
  metajobs of various sizes and lengths, simultaneous and earliest, from either side. The window is 0 to 24
  hours longer than the metajob.
- *demonstration* (E2): the three machines of SC2004.
- *queues* (E3): random queues in time, with and without a reservation.
- *requests* (E4): what a search asks of its sites.

``--seeds`` is the number of workloads, and of samples of the queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.errors import UserError
from headway.experiment import judging
from headway.experiment.campaign import Row, Task, select
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval
from headway_plugins.reproductions.gur_runs import (
    ACCOUNTS,
    GRAIN,
    LATENCY,
    LOAD,
    ORDERS,
    SC2004,
    SEARCHES,
    SITES,
    run_background,
    run_demonstration,
    run_queues,
    run_unprivileged,
)

#: What the demonstration reserved.
PUBLISHED = {"DataStar": 10.0, "Linux": 1.0, "Purdue": 1.0}
_USUAL = next(iter(SEARCHES))


class GurReproduction:
    """The experiments of Yoshimoto, Kovatch and Andrews 2005."""

    title = "GUR: reservations at several sites (Yoshimoto, Kovatch and Andrews 2005)"
    published = Published(system="open", intervals=False)

    def __init__(
        self,
        jobs: int = 1000,
        metajobs: int = 100,
        slacks: Sequence[float] = (0, 1, 6, 24),
        queues: int = 500,
        trace: str = "",
    ) -> None:
        """``jobs`` of each site's batch queue; ``slacks``: hours that the window is longer than the metajob;
        ``queues``: random queues of a seed; ``trace``: how the name of a trace in --traces begins, whose jobs
        are taken in the place of the model's."""
        for what, value in (("jobs", jobs), ("metajobs", metajobs), ("queues", queues)):
            if value < 2:
                raise UserError(f"--set {what}: expected at least 2, found {value}")
        self._jobs, self._metajobs, self._queues = jobs, metajobs, queues
        self._slacks, self._trace = tuple(float(slack) for slack in slacks), trace

    def run(self, context: Context) -> list[Claim]:
        trace = self._traced(context)
        scenario = "lublin" if trace is None else trace.name
        metajobs = context.collect(
            "metajobs",
            [
                Task(
                    ((scenario, slack, name, seed),), run_background,
                    (scenario, slack, name, seed, self._jobs, self._metajobs, trace),
                )
                for slack in self._slacks for name in SEARCHES for seed in context.seeds
            ],
            (scenario, self._jobs, self._metajobs, self._slacks, SITES, SEARCHES, LOAD, LATENCY, GRAIN,
             ACCOUNTS),
        )  # fmt: skip
        shown = context.collect(
            "demonstration", [Task((("SC2004", 12.0, "GUR", 1),), run_demonstration, ())], SC2004
        )
        queues = context.collect(
            "queues",
            [
                Task((("queues", float(self._queues), order, seed),), run_queues, (order, seed, self._queues))
                for order in ORDERS
                for seed in context.seeds
            ],
            (self._queues, ORDERS),
        )
        asked = context.collect(
            "requests", [Task((("a user's requests", 2.0, "GUR", 1),), run_unprivileged, ())], sorted(SITES)
        )
        line_plot(
            metajobs, ("accepted", "calls", "late"), context.out / "metajobs.png",
            x_label="hours that the window is longer than the metajob", title="GUR",
        )  # fmt: skip
        (context.out / "measures.md").write_text(measures(metajobs), encoding="utf-8")
        return [
            *self._worked(metajobs),
            _division(shown),
            *_batch(queues, metajobs),
            _user(asked),
            Claim("E5", "earlier demonstrations reserved by hand, or from a privileged account",
                  "background of the paper, not of GUR", "not run"),
        ]  # fmt: skip

    def _traced(self, context: Context) -> Path | None:
        if not self._trace:
            return None
        found = context.trace(self._trace)
        if found is None:
            raise UserError(f"--set trace: there is no trace {self._trace!r} in the directory of --traces")
        return found

    def _worked(self, rows: Sequence[Row]) -> list[Claim]:
        together = [value for row in rows if (value := row.values["together"]) == value]
        shares = {slack: _mean(rows, "accepted", slack) for slack in self._slacks}
        told = ", ".join(f"{slack:g} h: {100 * share.mean:.0f} %" for slack, share in shares.items())
        return [
            Claim(
                "E1", "jobs that asked for the same time on both platforms got it",
                f"all parts of {100 * sum(together) / max(len(together), 1):.0f} % of the accepted metajobs "
                "start at one instant",
                judging.held([share == 1.0 for share in together]),
            ),
            Claim(
                "E1", "all of these tests worked",
                f"accepted with a window that is longer by {told}; the paper does not tell its requests",
                judging.held([row.values["accepted"] == 1.0 for row in rows]),
            ),
        ]  # fmt: skip


def _mean(rows: Sequence[Row], metric: str, x: float, variant: str = _USUAL) -> Interval:
    """Over the seeds, without values that are not there."""
    return interval([one for one in select(rows, metric, variant=variant, x=x) if one == one])


def _division(rows: Sequence[Row]) -> Claim:
    """E2."""
    (row,) = rows
    found = {name: row.values[name] for name in PUBLISHED}
    told = ", ".join(f"{name} {nodes:g}" for name, nodes in found.items())
    at = row.values["start"] - SC2004[0]
    return Claim(
        "E2", "10 nodes on DataStar, 1 on the Linux cluster, 1 on the Purdue SP, all at 7:00 PST",
        f"{told}; start {at:g} s after 7:00 PST (machines free, least 1 node, most 158, 128 and 2)",
        judging.held([found == PUBLISHED, at == 0]),
    )  # fmt: skip


def _batch(queues: Sequence[Row], metajobs: Sequence[Row]) -> list[Claim]:
    """E3."""
    claims = []
    where = {
        ORDERS[0]: "the queue keeps its order, later jobs go behind",
        ORDERS[1]: "the queue is sorted by the expansion factor, as that of Catalina",
        ORDERS[2]: "later jobs go ahead of the queue",
    }
    for order, when in where.items():
        mine = [row.values for row in queues if row.variant == order]
        accepted, delaying, jobs, late = (
            sum(values[name] for values in mine) for name in ("accepted", "delaying", "jobs", "delayed jobs")
        )
        claims.append(
            Claim(
                "E3", f"no user's reservation delays the batch jobs queued before it: {when}",
                f"{delaying:,.0f} of {accepted:,.0f} reservations delay {late:,.0f} of {jobs:,.0f} jobs",
                judging.held([values["delayed jobs"] == 0 for values in mine]),
            )
        )  # fmt: skip
    moved = [row.values["plans moved"] for row in metajobs]
    claims.append(
        Claim(
            "E3", "no metajob moves the planned start of a queued job, both sites at work",
            f"{sum(moved):g} planned starts moved", judging.held([value == 0 for value in moved]),
        )
    )  # fmt: skip
    return claims


def _user(rows: Sequence[Row]) -> Claim:
    """E4."""
    (row,) = rows
    values = row.values
    told = ", ".join(f"{values[kind]:g} {kind}" for kind in ("set", "cancel", "show", "bind"))
    return Claim(
        "E4", "no central control and no privileged account is needed",
        f"one search makes {told}, for the user's own account, and {values['other']:g} other requests",
        judging.held([values["other"] == 0, values["other accounts"] == 0, values["accepted"] == 1]),
    )  # fmt: skip


#: Metric of the rows, what it is, its unit, and the factor to that unit.
MEASURES = (
    ("accepted", "accepted metajobs", "%", 100.0),
    ("refused in vain", "refused although a place existed, of the refused", "%", 100.0),
    ("calls", "requests to sites", "", 1.0),
    ("rounds", "rounds", "", 1.0),
    ("made", "reservations made", "", 1.0),
    ("cancelled", "reservations cancelled", "", 1.0),
    ("seconds", f"time of the search, {LATENCY:g} s a request", "s", 1.0),
    ("node-seconds in vain", "node-seconds held in vain", "", 1.0),
    ("late", "start after the best possible, of the accepted", "min", 1 / 60),
    ("added load", "load that all metajobs add", "%", 100.0),
    ("wait", "wait of a batch job without metajobs", "min", 1 / 60),
    ("extra wait", "further wait of a batch job, also of a later job", "min", 1 / 60),
)


def measures(rows: Sequence[Row]) -> str:
    """The measures for which the paper has no figures, as a table; a metajob has them, if nothing else is
    said."""
    slacks = sorted({row.x for row in rows})
    ends = (slacks[0], slacks[-1])
    cells = [(slack, name) for slack in dict.fromkeys(ends) for name in SEARCHES]
    lines = [
        "| a metajob has | " + " | ".join(f"{name}, {slack:g} h" for slack, name in cells) + " |",
        "|---|" + "---|" * len(cells),
    ]
    for metric, what, unit, factor in MEASURES:
        told = [_mean(rows, metric, slack, name) for slack, name in cells]
        values = [str(Interval(one.mean * factor, one.half * factor, one.count)) for one in told]
        lines.append(f"| {what}{f' ({unit})' if unit else ''} | " + " | ".join(values) + " |")
    return "\n".join([*lines, ""])
