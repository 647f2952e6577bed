"""A look that fails in a way that nobody foresaw is an outage, not the daemon's end."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from building import described
from waiting import until

from headway import events as ev
from headway.adapter import Outcome
from headway.decisions import Requeue
from headway.errors import UserError
from headway.model import PoolDescription
from headway_adapters.polling import Look, PollingAdapter
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

        self.more: list[dict[str, Any]] = []

    def error(self, what: str, **more: Any) -> None:
        self.said.append(("error", what))
        self.more.append(more)

    def info(self, what: str, **more: Any) -> None:
        self.said.append(("info", what))
        self.more.append(more)

    warning = info

    def debug(self, what: str, **more: Any) -> None: ...


class Scripted(PollingAdapter[None, None]):
    """Looks as a list says: an exception is raised."""

    system, title, Options = "toy", "Toy", UserError  # type: ignore[assignment]

    def __init__(self, *looks: Any) -> None:
        pace = SimpleNamespace(poll_interval=0.01, confirm_interval=0.01, start_timeout=5.0)
        self.log = Log()
        super().__init__(SimpleNamespace(close=lambda: None), pace, log=self.log)  # type: ignore[arg-type]
        self.looks = list(looks)

    def learn(self) -> str:
        return "toy"

    def look(self, before: Snapshot | None) -> Look[None]:
        found = self.looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return Look(found)

    def start_all(self, starts: Any) -> Any:
        raise NotImplementedError

    def carry_out(self, decision: Any, now: float) -> Any:
        raise NotImplementedError


def snapshot(time: float, *ids: str) -> Snapshot:
    jobs = {name: SnapshotJob(described(name, pool="p"), "pending") for name in ids}
    return Snapshot(time, jobs, {}, {"p": PoolDescription("p")})


def test_what_nobody_foresaw_brings_no_news_and_is_waited_out() -> None:
    adapter = Scripted(snapshot(1, "a"), OverflowError("int too large"), KeyError("x"), snapshot(2, "a", "b"))
    first = adapter.wait(None)
    assert first is not None and [type(e) for e in first[1]] == [ev.JobSubmitted]
    silent = adapter.wait(None)
    assert silent is not None and [type(e) for e in silent[1]] == [ev.ClusterSilent]
    second = adapter.wait(None)
    assert second is not None
    assert any(isinstance(e, ev.ClusterAnswers) for e in second[1]), "with the first look that succeeds"
    assert [e.job.id for e in second[1] if isinstance(e, ev.JobSubmitted)] == ["b"]
    assert not any(isinstance(e, ev.JobEnded) for e in second[1])
    # Each is said once for the whole outage.
    assert [what for _, what in adapter.log.said] == [
        "a look could not be read, which is a mistake in headway",
        "toy does not answer; waiting for it",
        "toy answers again",
    ]
    adapter.close()


def test_who_asks_again_and_again_for_what_is_refused_does_not_keep_headway_from_looking() -> None:
    adapter = Scripted(snapshot(1, "a"), *[snapshot(2, "a", "b")] * 1000)
    seen: list[str] = []

    def step() -> bool:
        moment = adapter.wait(None)
        assert moment is not None
        now, events = moment
        seen.extend(event.job.id for event in events if isinstance(event, ev.JobSubmitted))
        (outcome,) = adapter.apply(now, [Requeue("a")])
        assert not outcome.accepted
        return "b" in seen

    until(step, "the second look is told", pause=0.0)
    adapter.close()


class Slow(Scripted):
    """A look takes its time, and each decision is a command."""

    def look(self, before: Snapshot | None) -> Look[None]:
        time.sleep(0.05)
        return super().look(before)

    def carry_out(self, decision: Any, now: float) -> Outcome:
        assert self.commands.change([("refuse",)]) == [None]
        return Outcome(False, "invalid job id")


def test_who_is_refused_during_every_look_does_not_make_all_looks_vain() -> None:
    """An array of which headway does not know yet that it was cancelled: each of its elements is refused."""
    adapter = Slow(snapshot(1, "a"), *[snapshot(2, "a", "b")] * 1000)
    adapter._client.change_all = lambda argvs: [None] * len(argvs)  # type: ignore[method-assign]
    adapter.capabilities = frozenset({Requeue})
    seen: list[str] = []

    def step() -> bool:
        moment = adapter.wait(None)
        assert moment is not None
        seen.extend(event.job.id for event in moment[1] if isinstance(event, ev.JobSubmitted))
        (outcome,) = adapter.apply(moment[0], [Requeue("a")])
        assert outcome.message == "invalid job id"
        return seen == ["a", "b"]

    until(step, "the second look is told", pause=0.0)
    adapter.close()


def test_elements_of_an_array_that_are_refused_alike_are_one_line_and_each_is_told() -> None:
    jobs = [described("a", pool="p")]
    jobs += [described(f"7_{n}", pool="p", array_id="7", array_index=n) for n in range(50)]
    shown = Snapshot(
        1, {job.id: SnapshotJob(job, "pending") for job in jobs}, {}, {"p": PoolDescription("p")}
    )
    adapter = Scripted(shown)
    why = {"a": "no", "7_49": "not on a Sunday"}
    adapter.carry_out = lambda decision, now: Outcome(  # type: ignore[method-assign]
        False, why.get(decision.job_id, f"job {decision.job_id} is over")
    )
    adapter.capabilities = frozenset({Requeue})
    assert adapter.wait(None) is not None
    asked = [Requeue(job.id) for job in jobs]
    assert not any(outcome.accepted for outcome in adapter.apply(1.0, asked))
    refusals = [more for (_, what), more in zip(adapter.log.said, adapter.log.more, strict=True)
                if what == "toy refused"]  # fmt: skip
    assert [(more["job"], more["error"], more.get("elements")) for more in refusals] == [
        ("a", "no", None), ("7_0", "job 7_0 is over", 49), ("7_49", "not on a Sunday", None),
    ]  # fmt: skip
    failed = [event for event in adapter._loop._told if isinstance(event, ev.DecisionFailed)]
    assert [event.decision for event in failed] == asked
    adapter.close()


def test_a_users_mistake_that_a_look_finds_is_told() -> None:
    adapter = Scripted(UserError("cluster.options.queues: no such queue"))
    with pytest.raises(UserError, match="no such queue"):
        adapter.wait(None)
    adapter.close()
