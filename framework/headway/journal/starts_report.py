"""What is said of planned starts beside real ones: to a person, and over the socket."""

from __future__ import annotations

import msgspec

from headway.journal.latency_summary import LatencySummary


class PlannedStarts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the plans of runs of one kind. Seconds, and numbers of plans or jobs."""

    planned: int = 0
    #: The job began; then this much later than planned, at the quantiles of
    #: :data:`headway.journal.latencies.QUANTILES`, and in the mean.
    began: int = 0
    later: tuple[float, ...] = ()
    mean: float = 0.0
    #: Of these: on other nodes than planned.
    elsewhere: int = 0
    #: The batch system refused the start, or it failed.
    failed: int = 0
    #: The job ended, was held or requeued first.
    withdrawn: int = 0
    #: Not known yet.
    open: int = 0
    #: Jobs that began without a plan.
    unplanned: int = 0

    def __str__(self) -> str:
        """For a person, in a line."""
        said = [f"{self.began} of {self.planned} planned starts took place"]
        if self.later:
            half, most, last = self.later
            said.append(f"half within {half:.1f} s, 95 % within {most:.1f} s, all within {last:.1f} s")
        for count, what in (
            (self.elsewhere, "on other nodes"),
            (self.failed, "failed"),
            (self.withdrawn, "withdrawn"),
            (self.open, "open"),
            (self.unplanned, "jobs began unplanned"),
        ):
            if count:
                said.append(f"{count} {what}")
        return ", ".join(said)


class StartsReport(msgspec.Struct, frozen=True, tag="starts", tag_field="found"):
    """How good plans were, and how long the cluster takes."""

    cluster: str
    #: Counted are plans between these, absolute seconds; None: there is no bound, or nothing.
    since: float | None
    until: float | None
    #: By mode: ``drive``, ``monitor``.
    starts: dict[str, PlannedStarts]
    #: Cluster ("": the only one) -> how long it takes.
    latencies: dict[str, LatencySummary]
