"""A start that was on its way when the daemon was started again has no more time than it was given first."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from building import described

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, PoolDescription
from headway_adapters.federation import Federation
from headway_adapters.polling import Look, PollingAdapter
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

#: Absolute seconds, at which the new daemon begins.
NOW = 1_800_000_000.0
#: A pause that no test waits out.
LONG = 1000.0


class Quiet:
    def info(self, *args: Any, **more: Any) -> None: ...

    debug = warning = error = info


class Waiting(PollingAdapter[None, None]):
    """One pending job whose start is on its way."""

    system, title, Options = "toy", "Toy", UserError  # type: ignore[assignment]
    capabilities = frozenset({d.Start})

    def __init__(self) -> None:
        pace = SimpleNamespace(poll_interval=0.01, confirm_interval=0.01, start_timeout=LONG)
        client = SimpleNamespace(close=lambda: None)
        super().__init__(client, pace, log=Quiet(), clock=lambda: NOW)  # type: ignore[arg-type]

    def learn(self) -> str:
        return "toy"

    def look(self, before: Snapshot | None) -> Look[None]:
        job = SnapshotJob(described("1", submit=NOW - 5, pool="p"), "pending", releasing=True)
        return Look(Snapshot(NOW, {"1": job}, {}, {"p": PoolDescription("p", 4)}))

    def adopt(self, look: Look[None]) -> Any:
        return [(d.Start("1"), None, 0)]

    def start_all(self, starts: Any) -> Any:
        raise NotImplementedError

    def carry_out(self, decision: Any, now: float) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({}, LONG), ({"2": NOW}, LONG), ({"1": NOW - 400}, 600.0), ({"1": NOW - 3 * LONG}, -2 * LONG),
        # The clock was set back since.
        ({"1": NOW + 1e6}, LONG),
    ],
)  # fmt: skip
def test_it_has_the_rest_of_its_time(asked: dict[str, float], left: float) -> None:
    with Waiting() as one:
        one.asked_before(asked)
        one.describe()
        before = time.monotonic()
        one.wait(None)
        after = time.monotonic()
        assert before + left <= one.flights["1"].deadline <= after + left if "1" in one.flights else left < 0


def test_one_whose_time_was_over_while_nobody_watched_is_taken_back_at_once() -> None:
    with Waiting() as one:
        one.asked_before({"1": NOW - LONG - 1})
        one.describe()
        told: list[ev.Event] = []
        while not any(isinstance(event, ev.DecisionFailed) for event in told):
            moment = one.wait(None)
            assert moment is not None
            told += moment[1]


class Late(Waiting):
    """The job comes with a later look, its start on its way already: somebody else decided it."""

    looks = 0
    capabilities = frozenset({d.Start})

    def look(self, before: Snapshot | None) -> Look[None]:
        found = super().look(before)
        self.looks += 1
        return found if self.looks > 2 else Look(Snapshot(NOW, {}, {}, found.snapshot.pools))

    def take_back(self, flight: Any, *, late: bool) -> bool:
        return True


def test_one_that_is_seen_later_with_its_job_is_confirmed_or_taken_back_as_well() -> None:
    with Late() as one:
        one.asked_before({"1": NOW - 2 * LONG})
        one.describe()
        told: list[ev.Event] = []
        while one.looks < 6:
            moment = one.wait(time.time() + 0.05)
            told += moment[1] if moment is not None else []
        kinds = [type(event) for event in told if not isinstance(event, ev.NodeUp | ev.PoolChanged)]
        assert kinds == [ev.JobSubmitted, ev.JobReleasing, ev.DecisionFailed]


def test_a_federation_passes_it_on_in_the_cluster_s_own_names() -> None:
    a, b = Waiting(), Waiting()
    with Federation({"a": a, "b": b}, clock=lambda: NOW, log=Quiet()) as one:
        one.asked_before({"a:1": 1.0, "b:2_3": 2.0, "c:1": 3.0})
        assert (a._wishes.asked, b._wishes.asked) == ({"1": 1.0}, {"2_3": 2.0})


def test_the_journal_knows_the_last_start_of_each_job_over_several_runs(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        for run, starts in enumerate([{1: "old", 2: "a"}, {10: "a", 11: "b"}, {}]):
            journal.begin_run(RunInfo("drive", float(run), "test", "", 0, ClusterDescription.flat(1)))
            for now, job in starts.items():
                journal.record_events(now, float(now), [])
                journal.record_decisions(now, [d.Start(job), d.Hold("x")])
            journal.end_run("killed")
        assert journal.recent_starts(1.5) == {"a": 10.0, "b": 11.0}
