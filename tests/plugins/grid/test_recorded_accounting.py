"""Acceptance 12: a recorded dump of Slurm's accounting has a profile, and is watched without a decision."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from building import described, plugged

from headway import events as ev
from headway.adapter import ClusterAdapter
from headway.engine import Engine
from headway.model import ClusterDescription, PoolDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.workload import read_swf
from headway.workload.group_study import group_study
from headway_plugins.grid.arrival_forecast import ArrivalForecast, ArrivalForecastOptions
from headway_plugins.policies.easy import Easy

TESTS = Path(__file__).parents[2]
DUMP = TESTS / "adapters" / "slurm" / "fixtures" / "slurm-22.05" / "sacct-long.txt"
USERS = {"alice": 1001, "bob": 1002, "carol": 1003}
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"}


def rows():
    """The dump's jobs, as dictionaries; times are seconds since 1970, None where there is none."""
    head, *lines = DUMP.read_text().splitlines()
    found = [dict(zip(head.split("|"), line.split("|"), strict=True)) for line in lines]
    for row in found:
        for key in ("Submit", "Start", "End"):
            told = row[key]
            known = told != "Unknown"
            row[key] = datetime.fromisoformat(told).replace(tzinfo=UTC).timestamp() if known else None
        row["State"] = row["State"].split()[0]
    return found


def seconds(text):
    hours, minutes, rest = map(int, text.split(":"))
    return hours * 3600 + minutes * 60 + rest


@pytest.fixture
def trace(tmp_path):
    """What `sacct-to-swf` makes of the dump; `sacct` answers what was recorded, in the columns asked for."""
    lines = []
    for row in rows():
        start = "Unknown" if row["Start"] is None else int(row["Start"])
        lines.append(
            "|".join(
                map(
                    str,
                    (
                        row["JobIDRaw"], int(row["Submit"]), start, seconds(row["Elapsed"]), row["NCPUS"],
                        row["ReqCPUS"], seconds(row["Timelimit"]) // 60, USERS[row["User"]], row["State"],
                        row["Account"], row["Partition"],
                    ),
                )
            )
        )  # fmt: skip
    (tmp_path / "recorded").write_text("\n".join(lines) + "\n")
    (tmp_path / "sacct").write_text(
        "#!/bin/sh\n"
        'case "$*" in *JobIDRaw,Submit,Start,ElapsedRaw,AllocCPUS,ReqCPUS,TimelimitRaw,UID,State,Account,'
        f'Partition) cat {tmp_path}/recorded;; *) echo "$*" >&2; exit 1;; esac\n'
    )
    (tmp_path / "sacct").chmod(0o755)
    done = subprocess.run(
        [TESTS.parent / "etc" / "slurm" / "sacct-to-swf", "batch,fg,bg", "64", "2026-11-21", "2026-11-22"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (tmp_path / "site.swf").write_text(done.stdout)
    return read_swf(tmp_path / "site.swf", strict=True)


def test_acceptance_12_a_recorded_dump_has_a_profile(trace):
    ended = [row for row in rows() if row["State"] in ENDED and row["Start"] is not None]
    assert len(ended) == len(trace.records) == 7
    found = group_study(trace, 64)
    (group,), (queue,) = found["groups"], found["queues"]
    runtimes = [seconds(row["Elapsed"]) for row in ended]
    waits = [row["Start"] - row["Submit"] for row in ended]
    for one in (group, queue):
        assert one["jobs"] == 7
        assert one["mean_runtime"] == pytest.approx(sum(runtimes) / 7)
        assert one["mean_wait"] == pytest.approx(sum(waits) / 7)
        assert one["failed"] == pytest.approx(6 / 7)
    assert json.dumps(found)


class Recording(ClusterAdapter):
    """Tells what the dump says, when it happened; nothing may be done."""

    def __init__(self, events):
        self.cluster = ClusterDescription(
            "recorded", tuple(PoolDescription(name, 64) for name in ("batch", "fg", "bg", "parked"))
        )
        self.events = sorted(events, key=lambda event: event.time)

    def describe(self):
        return self.cluster

    def wait(self, deadline):
        if not self.events:
            return None
        now = self.events[0].time
        told = [event for event in self.events if event.time == now]
        del self.events[: len(told)]
        return now, told

    def apply(self, now, decisions):
        raise AssertionError(f"applied: {decisions}")


def test_acceptance_12_watched_live_no_decision_is_applied_and_arrivals_are_profiled():
    events = []
    for row in rows():
        name, nodes = row["JobIDRaw"], int(row["NCPUS"])
        job = described(
            name, nodes, seconds(row["Timelimit"]), row["Submit"], user=row["User"], pool=row["Partition"]
        )
        events.append(ev.JobSubmitted(row["Submit"], job))
        if row["Start"] is not None:
            events.append(ev.JobStarted(row["Start"], name, ()))
        if row["End"] is not None:
            events.append(ev.JobEnded(row["End"], name, row["State"].lower(), ""))
    forecast = ArrivalForecast(ArrivalForecastOptions(least=3))
    adapter = Recording(events)
    scheduler = Scheduler(adapter.cluster, plugged(Easy(), forecast), monitor=True)
    wished, outcomes = [], []

    def keep(now, decisions, results):
        wished.extend(decisions)
        outcomes.extend(results)

    Engine(adapter, scheduler, mode=Mode.MONITOR, on_decisions=keep).run()
    assert not adapter.events and not scheduler.problems
    # Jobs that waited for reasons that the dump does not tell would have been started, and none was.
    assert {"21", "37"} <= {decision.job_id for decision in wished}
    assert outcomes and not any(outcome.accepted for outcome in outcomes)
    assert scheduler.state.jobs["21"].start_time is None
    # The profile: who submits, by the silences between his jobs.
    known = {(pool, user): sum(n for _, n in gaps) + 1 for pool, user, _, gaps in forecast.checkpoint()}
    assert known == Counter((row["Partition"], row["User"]) for row in rows())
    assert 0 <= scheduler.state.arrival_chance("batch", 3600.0) < 1
    assert scheduler.state.arrival_chance("parked", 3600.0) is None  # one job tells nothing
