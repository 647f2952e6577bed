"""A frequency that a daemon asked for and did not come to set is set by its successor."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from building import described, plugged
from waiting import limit

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome, WishedFrequency
from headway.errors import UserError
from headway.model import NodeDescription, PoolDescription
from headway.scheduler import Scheduler
from headway_adapters.federation import Federation
from headway_adapters.polling import Look, PollingAdapter
from headway_adapters.polling.actuators import ActuatorOptions
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result

NOW, SLOW, TIMEOUT = 1_800_000_000.0, 2.0e9, 30.0
ON_N = (("n", 2),)
#: Decided and asked for; begun at NOW - 40.
ASKED = WishedFrequency(SLOW, asked=NOW - 50)


class Quiet:
    def info(self, *args: Any, **more: Any) -> None: ...

    debug = warning = error = info


class Toy(PollingAdapter[None, None]):
    """A batch system with one job."""

    system, title, Options = "toy", "Toy", UserError  # type: ignore[assignment]
    capabilities = frozenset({d.Start})
    fails = False

    def __init__(self, job: SnapshotJob, *, actuators: bool = True, **more: Any) -> None:
        pace = SimpleNamespace(poll_interval=0.01, confirm_interval=0.01, start_timeout=TIMEOUT)
        client = SimpleNamespace(close=lambda: None, act=self._act)
        words = {
            "set_frequency": ["set", "{node}", "{job}", "{hertz}"],
            "reset_frequency": ["reset", "{node}"],
        }
        options = ActuatorOptions(**words) if actuators else None  # type: ignore[arg-type]
        self.job, self.ran = job, []  # type: ignore[var-annotated]
        super().__init__(
            client, pace, actuators=options, log=Quiet(), clock=lambda: NOW, **more  # type: ignore[arg-type]
        )  # fmt: skip

    def _act(self, argv: Any, timeout: float) -> Result:
        self.ran.append(" ".join(argv))
        return Result(tuple(argv), int(self.fails), b"", "", 0.0)

    def learn(self) -> str:
        return "toy"

    def look(self, before: Snapshot | None) -> Look[None]:
        nodes = {"n": NodeDescription("n", 4, pools=("p",))}
        return Look(Snapshot(NOW, {"1": self.job}, nodes, {"p": PoolDescription("p")}))

    def adopt(self, look: Look[None]) -> Any:
        return [(d.Start("1", ON_N), None, 0)] if self.job.releasing else []

    def start_all(self, starts: Any) -> Any:
        raise NotImplementedError

    def carry_out(self, decision: Any, now: float) -> Any:
        raise NotImplementedError

    def told(self, wanted: type[ev.Event]) -> list[ev.Event]:
        """What is told until there is one of these."""
        events: list[ev.Event] = []
        end = time.monotonic() + limit()
        while not any(isinstance(event, wanted) for event in events):
            assert time.monotonic() < end, events
            moment = self.wait(NOW)
            assert moment is not None
            events += moment[1]
        return events


class Counting(Toy):
    counts_restarts = True


def running(**more: Any) -> SnapshotJob:
    told = {"placement": ON_N, "start_time": NOW - 40, **more}
    return SnapshotJob(described("1", submit=NOW - 90, pool="p"), "running", **told)


RELEASING = SnapshotJob(described("1", submit=NOW - 90, pool="p"), "pending", releasing=True, pinned=ON_N)


def test_a_start_on_its_way_has_its_frequency_in_the_state_and_on_the_nodes() -> None:
    with Toy(RELEASING) as one:
        one.wished_before({"1": ASKED})
        cluster = one.describe()
        events = one.told(ev.JobReleasing)
        assert [e.frequency for e in events if isinstance(e, ev.JobReleasing)] == [SLOW]
        scheduler = Scheduler(cluster, plugged())
        scheduler.step(NOW, events)
        assert scheduler.state.jobs["1"].frequency == SLOW
        one.job = running()
        events = one.told(ev.JobFrequencyChanged)
        # Told without it, the job would count as fast until it is set, and be slowed once more.
        assert [e.frequency for e in events if isinstance(e, ev.JobStarted)] == [SLOW]
        assert one.ran == [f"set n 1 {SLOW:.0f}"]
        scheduler.step(NOW, events)
        assert scheduler.state.jobs["1"].frequency == SLOW


@pytest.mark.parametrize(
    ("adapter", "job", "wish"),
    [
        (Toy, running(), ASKED),
        (Counting, running(restarts=3), ASKED),
        # It never went back, so this is it, however late it began.
        (Counting, running(start_time=NOW), WishedFrequency(SLOW, asked=NOW - 5000)),
        (Toy, running(start_time=NOW - 40), WishedFrequency(SLOW, asked=NOW - 5000, started=NOW - 40.4)),
        (Toy, running(), WishedFrequency(SLOW, started=NOW - 40)),
    ],
)  # fmt: skip
def test_a_job_that_began_while_nobody_watched_gets_its_frequency(adapter, job, wish) -> None:
    with adapter(job) as one:
        one.wished_before({"1": wish})
        one.describe()
        (told,) = [e for e in one.told(ev.JobFrequencyChanged) if isinstance(e, ev.JobFrequencyChanged)]
        assert told.frequency == SLOW
        assert one.ran == [f"set n 1 {SLOW:.0f}"]


@pytest.mark.parametrize(
    ("adapter", "job", "wish"),
    [
        (Toy, running(start_time=NOW), WishedFrequency(SLOW, asked=NOW - 5000)),
        (Counting, running(start_time=NOW, restarts=1), WishedFrequency(SLOW, asked=NOW - 5000)),
        (Toy, running(), WishedFrequency(SLOW, asked=NOW - 50, started=NOW - 45)),
        (Counting, running(), WishedFrequency(SLOW, asked=NOW - 50, started=NOW - 45, is_set=True)),
        (Toy, running(start_time=None), ASKED),
    ],
)  # fmt: skip
def test_one_that_began_anew_has_the_nodes_own(adapter, job, wish) -> None:
    with adapter(job) as one:
        one.wished_before({"1": wish})
        one.describe()
        events = one.told(ev.JobStarted)
        for _ in range(3):
            events += one.wait(NOW)[1]
        assert not any(isinstance(event, ev.JobFrequencyChanged) for event in events)
        assert one.ran == []


class Limiting(Toy):
    """One whose jobs' limits can be changed: those of this length at the most."""

    capabilities = frozenset({d.Start, d.SetTimeLimit})
    most = 1000.0

    def carry_out(self, decision: Any, now: float) -> Outcome:
        self.ran.append(f"limit {decision.job_id} {decision.walltime:.0f}")
        return Outcome(decision.walltime <= self.most, "" if decision.walltime <= self.most else "too long")


@pytest.mark.parametrize("is_set", [False, True], ids=["asked for", "set"])
@pytest.mark.parametrize(
    ("walltime", "changed"), [(None, []), (100.0, []), (50.0, []), (150.0, ["limit 1 150"])]
)
def test_a_longer_limit_that_was_to_go_with_a_frequency_is_asked_for_too(walltime, changed, is_set) -> None:
    wish = WishedFrequency(SLOW, asked=NOW - 50, started=NOW - 40, is_set=is_set, walltime=walltime)
    with Limiting(running()) as one:
        one.wished_before({"1": wish})
        one.describe()
        one.told(ev.JobFrequencyChanged)
        assert [line for line in one.ran if line.startswith("limit")] == changed


def test_so_it_is_for_a_start_on_its_way_and_for_no_other_execution() -> None:
    wish = msgspec.structs.replace(ASKED, walltime=150.0)
    for job, changed in ((RELEASING, ["limit 1 150"]), (running(start_time=NOW - 1 + 2 * TIMEOUT), [])):
        with Limiting(job) as one:
            one.wished_before({"1": wish})
            one.describe()
            one.told(ev.JobReleasing if job is RELEASING else ev.JobStarted)
            assert [line for line in one.ran if line.startswith("limit")] == changed


def test_a_limit_that_is_refused_then_is_said_to_be() -> None:
    with Limiting(running()) as one:
        one.wished_before({"1": msgspec.structs.replace(ASKED, walltime=5000.0)})
        one.describe()
        (failed,) = [e for e in one.told(ev.DecisionFailed) if isinstance(e, ev.DecisionFailed)]
        assert isinstance(failed.decision, d.SetTimeLimit) and failed.message == "too long"


def test_what_was_set_is_told_and_given_back_at_the_end_and_not_set_again() -> None:
    with Toy(running()) as one:
        one.wished_before({"1": WishedFrequency(SLOW, asked=NOW - 50, started=NOW - 40, is_set=True)})
        one.describe()
        assert ev.JobFrequencyChanged(NOW, "1", SLOW) in one.told(ev.JobFrequencyChanged)
        assert one.ran == []
        one.job = SnapshotJob(one.job.job, "ended", placement=ON_N, start_time=NOW - 40, end_time=NOW)
        one.told(ev.JobEnded)
        end = time.monotonic() + limit()
        while one.ran != ["reset n"]:
            assert time.monotonic() < end, one.ran
            one.wait(NOW)
            time.sleep(0.01)


@pytest.mark.parametrize("job", [RELEASING, running()], ids=["on its way", "runs"])
def test_one_that_cannot_be_set_is_told_to_run_at_the_nodes_own(job: SnapshotJob) -> None:
    with Toy(job) as one:
        one.fails = True
        one.wished_before({"1": ASKED})
        scheduler = Scheduler(one.describe(), plugged())
        if job is RELEASING:
            scheduler.step(NOW, one.told(ev.JobReleasing))
            one.job = running()
        events = one.told(ev.DecisionFailed)
        assert [e.frequency for e in events if isinstance(e, ev.JobStarted)] == [SLOW]
        scheduler.step(NOW, events)
        assert scheduler.state.jobs["1"].frequency is None


@pytest.mark.parametrize("more", [{"read_only": True}, {"actuators": False}], ids=str)
def test_who_must_or_can_not_sets_nothing(more: dict[str, bool]) -> None:
    with Toy(running(), **more) as one:
        one.wished_before({"1": ASKED})
        one.describe()
        one.told(ev.JobStarted)
        assert one.ran == []


def test_a_federation_passes_it_on_in_the_cluster_s_own_names() -> None:
    a, b = Toy(running()), Toy(running())
    with Federation({"a": a, "b": b}, clock=lambda: NOW, log=Quiet()) as one:
        one.wished_before({"a:1": ASKED, "c:1": ASKED})
        assert (a._wishes.frequencies, b._wishes.frequencies) == ({"1": ASKED}, {})
