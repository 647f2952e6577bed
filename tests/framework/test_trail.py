"""An event is followed to the command: the same ids in the journal, in `decided`, and beside the command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from building import described, plugged
from structlog.testing import capture_logs

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Decision, Start
from headway.engine import Engine
from headway.events import Event, JobSubmitted
from headway.inputs.trail import NOTHING, Trail, current, following, ids_of
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy


class Cluster(ClusterAdapter):
    """Two jobs come in its second cycle, and then it ends."""

    capabilities = frozenset({Start})

    def __init__(self) -> None:
        self.moments: list[tuple[float, list[Event]]] = [
            (0.0, []), (1.0, [JobSubmitted(1.0, described("12")), JobSubmitted(1.0, described("13"))]),
        ]  # fmt: skip
        self.followed: list[tuple[Trail, tuple[str, ...]]] = []

    def describe(self) -> ClusterDescription:
        return ClusterDescription.flat(4)

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        return self.moments.pop(0) if self.moments else None

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        self.followed.append((current(), ids_of(decisions)))
        return [Outcome(True)] * len(decisions)


def ran(place: Path, mode: Mode = Mode.DRIVE) -> tuple[Cluster, list[Any], Journal]:
    cluster = Cluster()
    journal = Journal.open(place / "j.db")
    run = journal.begin_run(RunInfo("drive", 0.0, "1", "", 0, cluster.describe(), {}))
    scheduler = Scheduler(cluster.describe(), plugged(Easy()))
    with capture_logs() as lines:
        Engine(cluster, scheduler, journal, mode=mode, run=run, tells_events=True).run()
    return cluster, lines, journal


def test_an_event_is_followed_to_its_decision_and_the_adapter(tmp_path: Path) -> None:
    cluster, lines, journal = ran(tmp_path)
    (run,) = [one.id for one in journal.runs()]
    happened = [line for line in lines if line["event"] == "happened"]
    assert [(line["kind"], line["job"], line["cycle"]) for line in happened] == [
        ("JobSubmitted", "12", f"{run}-2"), ("JobSubmitted", "13", f"{run}-2"),
    ]  # fmt: skip
    decided = [(line["job"], line["id"]) for line in lines if line["event"] == "decided"]
    assert decided == [("12", f"{run}-2-0"), ("13", f"{run}-2-1")]
    assert cluster.followed == [
        (Trail(f"{run}-2", (f"{run}-2-0", f"{run}-2-1")), (f"{run}-2-0", f"{run}-2-1"))
    ]
    (cycle,) = [one for one in journal.cycles(run) if one.decisions]
    assert cycle.seq == 2
    assert [one.job_id for one in cycle.decisions if isinstance(one, Start)] == ["12", "13"]
    journal.close()


def test_in_mode_monitor_wishes_have_ids_too(tmp_path: Path) -> None:
    cluster, lines, journal = ran(tmp_path, Mode.MONITOR)
    assert [line["id"] for line in lines if line["event"] == "would do"] == ["1-2-0", "1-2-1"]
    assert cluster.followed == []
    journal.close()


def test_outside_of_a_cycle_nothing_is_followed() -> None:
    trail = Trail("3-4", ("3-4-0", "3-4-2"))
    with following(trail):
        assert ids_of([1, 2]) == ("3-4-0", "3-4-2")
        # Somebody else's decisions.
        assert ids_of([1]) == ()
    assert current() == NOTHING
    assert trail.of([1]) == Trail("3-4", ("3-4-2",))
    assert NOTHING.of([0, 5]) == NOTHING


def test_the_page_tells_the_words_of_the_line(tmp_path: Path) -> None:
    _, lines, journal = ran(tmp_path)
    journal.close()
    page = (Path(__file__).parents[2] / "docs" / "operators" / "tracing.md").read_text(encoding="utf-8")
    (line, *_) = [line for line in lines if line["event"] == "happened"]
    words = ", ".join(f"`{word}`" for word in line if word not in ("event", "log_level"))
    assert f"| `happened` | {words} |" in page
