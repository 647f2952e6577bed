"""Pending jobs that are sent to another pool: seen there, refused, or not seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from building import described
from test_polling_unforeseen import Scripted

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.model import JobDescription, PoolDescription
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

JOB = msgspec.structs.replace(described("1", 1), pool="short", submit_time=0.0)
TO = d.Route("1", "long")


class Routing(Scripted):
    """A batch system with the pools short, long and theirs, of which headway drives two."""

    capabilities = frozenset({d.Route})

    def __init__(self, *looks: Any, timeout: float = 5.0) -> None:
        super().__init__(*looks)
        self._orders._routes._timeout = timeout
        self.took: list[d.Decision] = []
        self.answer = Outcome(True)

    def drives(self, pool: str) -> bool:
        return pool != "theirs"

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        self.took.append(decision)
        return self.answer


def look(time: float, job: JobDescription | None = JOB, state: str = "pending", **fields: Any) -> Snapshot:
    pools = {name: PoolDescription(name) for name in ("short", "long", "theirs")}
    jobs = {} if job is None else {job.id: SnapshotJob(job, state, **fields)}
    return Snapshot(time, jobs=jobs, pools=pools)


def moved(**more: Any) -> JobDescription:
    return msgspec.structs.replace(JOB, **{"pool": "long", **more})


def after(adapter: Routing, *decisions: d.Decision) -> list[ev.Event]:
    """What is told once the decisions were applied and a look was made."""
    adapter.apply(1.0, decisions)
    told: list[ev.Event] = []
    while adapter.looks:
        told += adapter.wait(adapter.now() + 1.0)[1]  # type: ignore[index]
    return told


def ready(*looks: Snapshot, **more: Any) -> Routing:
    adapter = Routing(look(0.0), look(0.5), *looks, **more)
    adapter.describe()
    adapter.wait(None)
    return adapter


def test_a_job_that_is_seen_in_its_new_pool_was_routed() -> None:
    adapter = ready(look(2.0, moved()))
    assert after(adapter, TO) == [ev.JobRouted(2.0, "1", "long")]
    assert adapter.took == [TO]
    adapter.close()


def test_a_job_of_several_pools_goes_to_the_only_one() -> None:
    several = msgspec.structs.replace(JOB, further_pools=("other",))
    adapter = Routing(look(0.0, several), look(0.5, several), look(2.0, moved()))
    adapter.describe()
    adapter.wait(None)
    assert after(adapter, TO) == [ev.JobRouted(2.0, "1", "long")]
    adapter.close()


def test_what_else_changed_is_told_behind_it() -> None:
    other = moved(name="renamed")
    adapter = ready(look(2.0, other))
    assert after(adapter, TO) == [ev.JobRouted(2.0, "1", "long"), ev.JobChanged(2.0, other)]
    adapter.close()


def test_without_an_order_it_is_a_change() -> None:
    adapter = ready(look(2.0, moved()))
    assert after(adapter) == [ev.JobChanged(2.0, moved())]
    adapter.close()


def test_a_job_that_goes_elsewhere_meanwhile_is_not_routed() -> None:
    elsewhere = moved(pool="theirs")
    adapter = ready(look(2.0, elsewhere), timeout=0.0)
    changed, failed = after(adapter, TO)
    assert changed == ev.JobChanged(2.0, elsewhere)
    assert isinstance(failed, ev.DecisionFailed) and failed.message == "after 0 s it still is in theirs"
    adapter.close()


def test_a_job_that_is_not_seen_there_in_time_stays() -> None:
    adapter = ready(look(2.0), timeout=0.0)
    (failed,) = after(adapter, TO)
    assert isinstance(failed, ev.DecisionFailed) and failed.decision == TO
    assert failed.message == "after 0 s it still is in short"
    adapter.close()


def test_a_job_that_runs_where_it_was_is_not_on_its_way_any_more() -> None:
    runs = look(2.0, JOB, "running", placement=(("n1", 1),), start_time=1.5)
    adapter = ready(runs)
    told = after(adapter, TO)
    assert any(isinstance(event, ev.JobStarted) for event in told)
    (failed,) = [event for event in told if isinstance(event, ev.DecisionFailed)]
    assert failed.message == "it runs in pool short"
    adapter.close()


def test_a_job_that_ended_is_told_as_ended_alone() -> None:
    adapter = ready(look(2.0, JOB, "ended", outcome="cancelled", end_time=1.5))
    assert [type(event) for event in after(adapter, TO)] == [ev.JobEnded]
    assert "1" not in adapter._orders._routes
    adapter.close()


def refused(adapter: Routing, decision: d.Decision) -> str:
    (outcome,) = adapter.apply(1.0, [decision])
    assert not outcome.accepted
    return outcome.message


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (d.Route("9", "long"), "job 9 does not wait"),
        (d.Route("1", "theirs"), "'theirs' is not a pool that headway drives"),
        (d.Route("1", "nowhere"), "'nowhere' is not a pool that headway drives"),
    ],
)
def test_what_cannot_be_routed(decision: d.Decision, why: str) -> None:
    adapter = ready()
    assert refused(adapter, decision) == why
    assert adapter.took == []
    adapter.close()


def test_a_job_that_runs_or_starts_is_not_routed() -> None:
    adapter = ready()
    adapter.flights._open["1"] = SimpleNamespace()  # type: ignore[assignment]
    assert refused(adapter, TO) == "a start of job 1 is on its way"
    adapter.close()


def test_what_the_batch_system_refuses_is_told_at_once() -> None:
    adapter = ready()
    adapter.answer = Outcome(False, "no access")
    assert refused(adapter, TO) == "no access"
    assert "1" not in adapter._orders._routes
    adapter.close()


def test_a_second_order_is_taken_without_a_second_command() -> None:
    adapter = ready()
    assert [outcome.accepted for outcome in adapter.apply(1.0, [TO, TO])] == [True, True]
    assert adapter.took == [TO]
    adapter.close()
