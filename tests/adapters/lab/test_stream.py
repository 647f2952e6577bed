"""The jobs of the lab: a model's, in a quicker time, without end."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload
from headway_adapters.lab import stream
from headway_adapters.lab.stream import AT_ONCE, Arrival, arrivals

PROGRAM = Path("/tmp/sleep")


def drawn(seed: int) -> Workload:
    """Thirty jobs, a minute apart, as wide as the seed says."""
    return Workload([
        TraceJob(
            job=JobDescription(
                id=str(n), submit_time=1000.0 + 60 * n, request=Request(processors=seed, walltime=7200.0),
                pool="pool",
            ),
            runtime=600.0 * (n % 7),
        )
        for n in range(30)
    ])  # fmt: skip


def first(count: int, speed: float = 60.0, processors: int = 64, seed: int = 3) -> list[Arrival]:
    return list(islice(arrivals(drawn, speed, processors, PROGRAM, seed), count))


def test_the_same_seed_gives_the_same_jobs() -> None:
    assert first(70) == first(70)


def test_the_first_jobs_come_at_once_and_the_time_goes_on_from_there() -> None:
    found = first(30)
    assert {arrival.at for arrival in found[:AT_ONCE]} == {0.0}
    assert [arrival.at for arrival in found[AT_ONCE:]] == [float(n) for n in range(1, 11)]


def test_one_draw_follows_the_other_without_a_gap() -> None:
    found = first(65)
    gaps = {round(b.at - a.at, 3) for a, b in zip(found[AT_ONCE:], found[AT_ONCE + 1 :], strict=False)}
    assert max(gaps) < 1.5
    assert [arrival.job.processors for arrival in found] == [3] * 30 + [4] * 30 + [5] * 5


def test_times_are_divided_and_a_job_is_long_enough_to_be_seen() -> None:
    found = first(7)
    assert [arrival.job.argv for arrival in found[:3]] == [
        ("/tmp/sleep", f"{seconds:.1f}") for seconds in (stream.SHORTEST, 10.0, 20.0)
    ]
    assert {arrival.job.walltime for arrival in found} == {120.0}


def test_no_job_is_wider_than_the_cluster_nor_has_another_name() -> None:
    found = first(40, processors=2)
    assert {arrival.job.processors for arrival in found} == {2}
    assert len({arrival.job.name for arrival in found}) == 40
