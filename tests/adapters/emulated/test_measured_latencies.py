"""An emulated cluster that takes as long to start jobs and to tell of ends as a real one was measured to."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from building import alike, emulate, node_cluster, traced
from click.testing import CliRunner

from headway import events as ev
from headway.cli import cli
from headway.emulation import emulate as whole_run
from headway.emulation.delays import MeasuredDelays
from headway.journal import Journal, RunInfo
from headway.journal.latencies import SAVED_AS, Latencies, measured
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload.jobs import Begun
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

FLAT = ClusterDescription.flat(1)
NODES = node_cluster(*alike(1, 1))


def taking(*samples: tuple[float, ...], whole_seconds: bool = False) -> MeasuredDelays:
    """A cluster of which these starts, ends and looks were measured."""
    return MeasuredDelays(Latencies(*samples, whole_seconds=whole_seconds), np.random.default_rng(0))


@pytest.mark.parametrize("cluster", [FLAT, NODES])
def test_a_start_and_the_next_one_wait_for_what_it_takes(cluster: ClusterDescription) -> None:
    jobs = [traced("a", 1, 100, runtime=10), traced("b", 1, 100, runtime=10)]
    run = emulate(cluster, jobs, Fcfs(), delays=taking((2.0,), (3.0,)))
    assert run.starts == {"a": 2.0, "b": 17.0}
    results = run.results
    # It ended when it ended; that was known later.
    assert (results["a"].end_time, results["b"].end_time) == (12.0, 27.0)
    ended = [event for event in run.adapter.told if isinstance(event, ev.JobEnded)]
    assert [event.time for event in ended] == [12.0, 27.0]
    assert [now for now, events in run.adapter.rounds if any(e in ended for e in events)] == [15.0, 30.0]
    assert not run.problems


def test_a_job_that_outlives_its_limit_is_timed_out_as_ever() -> None:
    run = emulate(FLAT, [traced("a", 1, 100, runtime=500)], Fcfs(), delays=taking((), (3.0,)))
    assert run.states == {"a": "timed out"}
    assert run.results["a"].end_time == 100.0


def test_only_what_was_measured_takes_time() -> None:
    jobs = [traced("a", 1, 100, runtime=10), traced("b", 1, 100, runtime=10)]
    assert emulate(FLAT, jobs, Fcfs(), delays=taking((2.0,))).starts == {"a": 2.0, "b": 14.0}
    assert emulate(FLAT, jobs, Fcfs(), delays=taking()).starts == {"a": 0.0, "b": 10.0}


def test_what_happens_between_two_looks_is_told_together() -> None:
    jobs = [traced(str(n), 1, 100, submit=0.1 * n, runtime=10) for n in range(30)]
    run = emulate(ClusterDescription.flat(30), jobs, Fcfs(), delays=taking((0.25,), (0.5,), (1.0,)))
    rounds = [(now, events) for now, events in run.adapter.rounds if events]
    looks = [now for now, _ in rounds]
    assert all(later - earlier >= 1.0 - 1e-9 for earlier, later in pairwise(looks))
    # Nobody looks while nothing happens, and nothing is told before it happened, or twice.
    assert len(looks) <= 10
    told = [(now, event) for now, events in rounds for event in events]
    assert all(event.time <= now for now, event in told)
    for kind in (ev.JobSubmitted, ev.JobStarted, ev.JobEnded):
        assert sum(isinstance(event, kind) for _, event in told) == 30
    assert set(run.states.values()) == {"completed"}
    assert not run.problems


def test_an_end_is_known_as_late_as_was_measured_however_often_somebody_looks() -> None:
    jobs = [traced(str(n), 1, 1000, submit=137.0 * n, runtime=10) for n in range(400)]
    run = emulate(ClusterDescription.flat(9), jobs, Fcfs(), delays=taking((), (5.0, 5.5, 6.0), (1.0,)))
    late = [now - e.time for now, events in run.adapter.rounds for e in events if isinstance(e, ev.JobEnded)]
    assert len(late) == 400
    assert np.median(late) == pytest.approx(5.5, abs=0.15)
    assert max(late) - min(late) <= 1.0


def test_starts_of_one_second_are_stated_alike_where_seconds_are_whole() -> None:
    jobs = [traced(str(n), 1, 100, submit=5.2, runtime=10) for n in range(3)]
    run = emulate(
        ClusterDescription.flat(3), jobs, Fcfs(), delays=taking((0.7,), (), (0.3,), whole_seconds=True)
    )
    started = [e.time for _, events in run.adapter.rounds for e in events if isinstance(e, ev.JobStarted)]
    assert len(started) == 3 and len(set(started)) == 1 and started[0] == int(started[0])
    # What comes out has the times as they were, and those who were started together began together.
    assert len(set(run.starts.values())) == 1 and started[0] < run.starts["0"] < started[0] + 1


def test_what_a_copy_begins_with_is_known() -> None:
    jobs = [traced("a", 1, 100, runtime=100), traced("b", 1, 100, submit=5, runtime=10)]
    run = emulate(
        FLAT, jobs, Fcfs(), delays=taking((1.0,), (1.0,), (2.0,)), start=20.0, running=[Begun("a", 20.0, ())]
    )
    now, events = run.adapter.rounds[0]
    assert now == 20.0 and {type(e) for e in events} == {ev.JobSubmitted, ev.JobStarted}
    assert run.starts["b"] is not None and run.starts["b"] > 101
    assert set(run.states.values()) == {"completed"}


def test_the_draws_come_from_the_seed() -> None:
    jobs = [traced(str(n), 1, 100, runtime=10) for n in range(20)]
    found = Latencies(tuple(float(n) for n in range(10)), (0.5, 1.5))

    def starts(seed: int) -> list[float | None]:
        result = whole_run(
            FLAT, jobs, [PluginConfig("fcfs")], Catalogue(), label="x", seed=seed, latencies=found
        )
        return [one.start_time for one in result.jobs]

    assert starts(1) == starts(1) != starts(2)


def test_a_site_s_configuration_takes_them_from_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    config = tmp_path / "site.yaml"
    settings = {
        "plugins": ["fcfs"], "journal": str(path),
        "emulation": {"processors": 1, "latency": "measured"},
    }  # fmt: skip
    config.write_text(yaml.safe_dump(settings))
    trace = tmp_path / "two.swf"
    trace.write_text(
        "1 0 -1 10 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n2 0 -1 10 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n"
    )
    words = ["dry-run", "-c", str(config), "--trace", str(trace), "--out", str(tmp_path / "out")]

    def starts() -> list[float]:
        lines = (tmp_path / "out" / "jobs.csv").read_text().splitlines()
        at = lines[0].split(",").index("start_time")
        return sorted(float(line.split(",")[at]) for line in lines[1:])

    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "has no measurements yet" in done.output
    assert starts() == [0.0, 10.0]
    with Journal.open(path) as journal:
        journal.begin_run(RunInfo("drive", 1.0, "test", "", 0, FLAT))
        journal.checkpoint(1, {SAVED_AS: {"": {"start": [2.0], "end": [3.0]}}})
        assert measured(journal)
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert starts() == [2.0, 17.0]


def test_of_several_draws_the_one_in_the_middle_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    config = tmp_path / "site.yaml"
    settings = {
        "plugins": ["fcfs"],
        "journal": str(path),
        "emulation": {"processors": 1, "latency": "measured"},
    }
    config.write_text(yaml.safe_dump(settings))
    trace = tmp_path / "one.swf"
    trace.write_text("1 0 -1 10 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n")
    with Journal.open(path) as journal:
        journal.begin_run(RunInfo("drive", 1.0, "test", "", 0, FLAT))
        journal.checkpoint(1, {SAVED_AS: {"": {"start": [0.0, 5.0, 100.0]}}})
    recorded = str(tmp_path / "run.db")
    words = ["dry-run", "-c", str(config), "--trace", str(trace), "--draws", "25", "--journal", recorded]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "draws: 25; half of the jobs start within " in done.output
    # Only what is reported is recorded.
    with Journal.open(recorded, create=False, read_only=True) as journal:
        (run,) = journal.runs()
        starts = [
            e.time for cycle in journal.cycles(run.id) for e in cycle.events if isinstance(e, ev.JobStarted)
        ]
    assert starts == [5.0] and f"seed: {run.info.seed}" in done.output


def test_draws_go_with_what_is_drawn() -> None:
    done = CliRunner().invoke(cli, ["dry-run", "--from-cluster", "-c", "x.yaml", "--draws", "3"])
    assert done.exit_code == 2 and "--draws" in done.output


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_drawn_all_jobs_run_once_and_no_processor_is_given_twice(policy: type, seed: int) -> None:
    draw = random.Random(seed)
    jobs, time = [], 0.0
    for n in range(120):
        time += draw.expovariate(1 / 3)
        runtime = draw.choice([0.0, 0.2, 5.0, 40.0])
        estimate = max(1.0, runtime * draw.choice([0.5, 1, 3]))
        jobs.append(traced(str(n), draw.randint(1, 8), estimate, submit=time, runtime=runtime))
    found = Latencies((0.0, 0.3, 1.2), (0.4, 0.9), (0.2, 0.5, 2.0), whole_seconds=True)
    delays = MeasuredDelays(found, np.random.default_rng(seed))
    run = emulate(ClusterDescription.flat(8), jobs, policy(), delays=delays)
    # The machine refuses what does not fit, so nothing was tried that did not.
    assert not [e for e in run.adapter.told if isinstance(e, ev.DecisionFailed)] and not run.problems
    for kind in (ev.JobSubmitted, ev.JobStarted, ev.JobEnded):
        assert sum(isinstance(event, kind) for event in run.adapter.told) == len(jobs)
