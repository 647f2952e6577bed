"""What a daemon measures, as Prometheus and OpenMetrics read it: one table of all metrics.

Written by the library prometheus-client (extra ``api``). ``docs/operators/metrics.md`` explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from headway.inputs.extras import need_api
from headway.measured.report import Histogram, Measured, OfPool

#: Values of the labels, and the value itself; None: not known, and not told.
Sample = tuple[Sequence[str], "float | Histogram | None"]


@dataclass(frozen=True)
class Family:
    """One metric."""

    #: With the suffix that Prometheus sees (``_total`` of a counter).
    name: str
    #: "counter", "gauge" or "histogram".
    kind: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Measured], Iterable[Sample]]


def _one(value: Callable[[Measured], float | Histogram | None]) -> Callable[[Measured], Iterable[Sample]]:
    return lambda found: [((), value(found))]


def _by_name(values: Callable[[Measured], dict[str, Any]]) -> Callable[[Measured], Iterable[Sample]]:
    return lambda found: [((name,), value) for name, value in values(found).items()]


def _of_pools(rows: Iterable[OfPool], *, sides: bool = False) -> list[Sample]:
    return [((one.pool, one.qos, *([one.side] if sides else [])), one.seconds) for one in rows]


FAMILIES: tuple[Family, ...] = (
    Family(
        "headway_info", "gauge", "1; what runs stands in the labels.", ("version", "mode", "cluster", "run"),
        lambda m: [((m.version, m.mode, m.cluster, str(m.run)), 1.0)],
    ),
    Family(
        "headway_start_timestamp_seconds", "gauge",
        "When the daemon's process began to count, seconds since 1970.", (), _one(lambda m: m.since),
    ),
    Family(
        "headway_last_turn_timestamp_seconds", "gauge",
        "When the daemon's loop went on last, seconds since 1970.", (), _one(lambda m: m.last_turn),
    ),
    Family(
        "headway_last_cycle_timestamp_seconds", "gauge", "When the last cycle was, seconds since 1970.", (),
        _one(lambda m: m.last_cycle),
    ),
    Family(
        "headway_cycle_seconds", "histogram",
        "Duration of a cycle: journal, step and the batch system's commands.", (),
        _one(lambda m: m.cycle_seconds),
    ),
    Family(
        "headway_step_seconds", "histogram", "Duration of the scheduler's step in a cycle.", (),
        _one(lambda m: m.step_seconds),
    ),
    Family(
        "headway_plugin_seconds_total", "counter", "Time in the hooks of a plugin since the run began.",
        ("plugin",), _by_name(lambda m: m.plugin_seconds),
    ),
    Family(
        "headway_events_total", "counter", "Events that the scheduler was told.", ("event",),
        _by_name(lambda m: m.events),
    ),
    Family(
        "headway_decisions_total", "counter", "Decisions, by what became of them when they were handed over.",
        ("decision", "outcome"),
        lambda m: [((one.decision, one.outcome), one.count) for one in m.decisions],
    ),
    Family(
        "headway_commands_total", "counter", "Programs that were run for the batch system.",
        ("cluster", "command", "outcome"),
        lambda m: [((one.cluster, one.command, one.outcome), one.count) for one in m.commands],
    ),
    Family(
        "headway_command_seconds_total", "counter", "Time that these programs took.",
        ("cluster", "command", "outcome"),
        lambda m: [((one.cluster, one.command, one.outcome), one.seconds) for one in m.commands],
    ),
    Family(
        "headway_start_delay_seconds", "histogram", "From a decided start until the job ran.", ("cluster",),
        _by_name(lambda m: m.start_seconds),
    ),
    Family(
        "headway_wait_seconds", "histogram", "From a job's submission until its start.", ("pool", "qos"),
        lambda m: _of_pools(m.waits),
    ),
    Family(
        "headway_planned_start_error_seconds", "histogram",
        "Between the first planned start of a job and its start.", ("pool", "qos", "side"),
        lambda m: _of_pools(m.plan_errors, sides=True),
    ),
    Family(
        "headway_jobs", "gauge", "Jobs that the daemon knows.", (), _one(lambda m: m.jobs),
    ),
    Family(
        "headway_waiting_jobs", "gauge", "Jobs that wait, by reason.", ("pool", "reason"),
        lambda m: [((one.pool, one.reason), one.jobs) for one in m.waiting],
    ),
    Family(
        "headway_waiting_jobs_timestamp_seconds", "gauge",
        "When the waiting jobs were counted, seconds since 1970.", (), _one(lambda m: m.waiting_as_of),
    ),
    Family(
        "headway_user_waiting_jobs", "gauge", "Jobs of a user that wait; only with metrics.users.", ("user",),
        lambda m: [((one.user,), one.waiting) for one in m.users],
    ),
    Family(
        "headway_outages_total", "counter", "Outages of clusters that began.", (),
        _one(lambda m: m.outages_begun),
    ),
    Family(
        "headway_outage_since_timestamp_seconds", "gauge",
        "Since when a cluster has not answered, seconds since 1970; absent while it answers.", ("cluster",),
        lambda m: [((one.cluster,), one.since) for one in m.outages],
    ),
    Family(
        "headway_oddities_total", "counter",
        "What an operator should know of a cluster, such as a start that was not headway's.",
        ("cluster", "what"), lambda m: [((one.cluster, one.what), one.count) for one in m.oddities],
    ),
    Family(
        "headway_problems_total", "counter", "Failures of plugins, and what made no sense.", (),
        _one(lambda m: m.problems),
    ),
    Family(
        "headway_requests_limited_total", "counter", "Requests of users that were refused as too many.", (),
        _one(lambda m: m.requests_limited),
    ),
    Family(
        "headway_letters_total", "counter", "Letters to users, by what became of them.", ("outcome",),
        lambda m: [((one.outcome,), one.count) for one in m.letters],
    ),
    Family(
        "headway_journal_bytes", "gauge", "Size of the journal's files.", (), _one(lambda m: m.journal_bytes),
    ),
    Family(
        "headway_journal_free_bytes", "gauge", "Free space on the journal's file system.", (),
        _one(lambda m: m.journal_free_bytes),
    ),
    Family(
        "headway_journal_lag_seconds", "gauge", "How far the stand-by's journal is behind.", (),
        _one(lambda m: m.journal_lag_seconds),
    ),
    Family(
        "headway_leader", "gauge", "1: this daemon drives; 0: it only watches, or stands by.", (),
        _one(lambda m: float(m.leader)),
    ),
    Family(
        "headway_epoch", "gauge", "The number that each write of this daemon carries; 0: there is none.", (),
        _one(lambda m: m.epoch),
    ),
    Family(
        "headway_node_watts", "gauge", "Power of all nodes that the batch system measures.", (),
        _one(lambda m: m.watts if m.watts_nodes else None),
    ),
    Family(
        "headway_node_power_states", "gauge", "Nodes that are not on, by power state.", ("state",),
        _by_name(lambda m: m.power),
    ),
    Family(
        "headway_process_cpu_seconds_total", "counter", "Processor time of the daemon.", (),
        _one(lambda m: m.cpu_seconds),
    ),
    Family(
        "headway_process_resident_memory_bytes", "gauge", "Memory of the daemon.", (),
        _one(lambda m: m.memory_bytes),
    ),
)  # fmt: skip


class _Collector:
    """The metrics of one report, as the library asks for them."""

    def __init__(self, report: Measured) -> None:
        self._report = report

    def collect(self) -> Iterator[Any]:
        for family in FAMILIES:
            if (made := _made(family, self._report)) is not None:
                yield made


def _made(family: Family, report: Measured) -> Any:
    """The library's record of a metric; None if there is nothing to tell."""
    from prometheus_client import core

    samples = [(labels, value) for labels, value in family.samples(report) if value is not None]
    if not samples:
        return None
    kinds = {
        "counter": core.CounterMetricFamily, "gauge": core.GaugeMetricFamily,
        "histogram": core.HistogramMetricFamily,
    }  # fmt: skip
    made = kinds[family.kind](family.name.removesuffix("_total"), family.help, labels=family.labels)
    for labels, value in samples:
        if isinstance(value, Histogram):
            bounds = [*map(str, value.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(value.counts), strict=True))
            made.add_metric(list(labels), buckets=buckets, sum_value=value.sum)
        else:
            made.add_metric(list(labels), value)
    return made


def exposition(report: Measured, openmetrics: bool = False) -> bytes:
    """The text of all metrics: of Prometheus (version 0.0.4), or of OpenMetrics 1.0.0.

    Raises :class:`headway.errors.UserError` if the library is not installed.
    """
    need_api("the text of metrics")
    import prometheus_client
    from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_Collector(report))
    write = generate_openmetrics if openmetrics else prometheus_client.generate_latest
    text: bytes = write(registry)
    return text
