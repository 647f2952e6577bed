"""Migration handlers in a federation: each cluster has its own, and no handler meets a name of another."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from building import described
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Outcome
from headway.decisions import Decision
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, PoolDescription
from headway_adapters.federation.adapter import Federation
from headway_adapters.federation.handlers import Handlers
from headway_adapters.federation.member import Member
from headway_adapters.federation.names import Names
from headway_plugins.migration.checkpoint_signal import CheckpointSignal
from headway_plugins.migration.requeue import RequeueMove

GIVES: frozenset[type[Decision]] = frozenset({d.Migrate, d.Checkpoint})


class Cluster(ClusterAdapter):
    """A cluster that tells what a test lets it tell, and remembers what it was given."""

    capabilities = frozenset({d.Start, d.Requeue})
    moves = True

    def __init__(self, *events: ev.Event) -> None:
        self.events = [*events]
        self.handlers: tuple[Any, ...] = ()
        self.before: dict[str, d.Decision] = {}
        self.applied: list[d.Decision] = []

    def describe(self) -> ClusterDescription:
        return ClusterDescription("c", (PoolDescription("batch", 8),))

    def use_handlers(self, handlers: Any, gives: frozenset[type[Decision]]) -> None:
        self.handlers = tuple(handlers)
        self.capabilities = self.capabilities | gives

    def moving_before(self, decisions: Mapping[str, d.Decision]) -> None:
        self.before.update(decisions)

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]]:
        told, self.events = self.events, []
        return 1.0, told

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        self.applied += decisions
        return [Outcome(True) for _ in decisions]


class NoMarks:
    """Between these clusters jobs can go, and none does."""

    def standing(self, job_ids: Collection[str]) -> Mapping[str, Any]:
        return {}


class Unmoved(Cluster):
    """One that drives no handlers."""

    moves = False


@pytest.fixture
def saving(tmp_path: Path) -> CheckpointSignal:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return CheckpointSignal(CheckpointSignal.Options(directory=tmp_path / "{cluster}", spare=0))


@pytest.fixture
def clusters() -> dict[str, Cluster]:
    return {"a": Cluster(), "b": Cluster()}


@pytest.fixture
def federation(clusters: dict[str, Cluster]) -> Iterator[Federation]:
    with Federation(clusters, clock=itertools.count(1.0).__next__) as one:
        yield one


def test_each_cluster_has_handlers_of_its_own(
    federation: Federation, clusters: dict[str, Cluster], saving: CheckpointSignal, tmp_path: Path
) -> None:
    assert federation.moves and d.Checkpoint not in federation.capabilities
    federation.use_handlers([saving, RequeueMove()], GIVES)
    assert federation.capabilities >= GIVES
    for name, cluster in clusters.items():
        first, last = cluster.handlers
        assert first is not saving and first.images.directory == tmp_path / name and last.name == "requeue"


def test_clusters_that_would_share_images_are_refused(federation: Federation, tmp_path: Path) -> None:
    shared = CheckpointSignal(CheckpointSignal.Options(directory=tmp_path))
    with pytest.raises(UserError, match=r"plugin 'checkpoint-signal': directory: .*expected \{cluster\}"):
        federation.use_handlers([shared], GIVES)


def test_a_handler_that_knows_one_cluster_only_is_refused(federation: Federation) -> None:
    class Own:
        name = "mover"

    with pytest.raises(UserError, match="mover moves jobs of one cluster only"):
        federation.use_handlers([Own()], GIVES)


def test_check_says_by_cluster_which_handler_works(saving: CheckpointSignal, tmp_path: Path) -> None:
    (tmp_path / "b").rmdir()
    with Federation({"a": Cluster(), "b": Cluster(), "c": Unmoved()}) as one:
        one.use_handlers([saving, RequeueMove()], GIVES)
        said = {check.subject: (check.ok, check.known, check.detail) for check in one.check()}
    assert said["a: images (checkpoint-signal)"][0] is True and said["a: migration: requeue"][0] is True
    assert said["b: images (checkpoint-signal)"] == (
        False,
        True,
        f"{tmp_path / 'b'}: No such file or directory",
    )
    assert (
        said["c: migration"][:2] == (True, False)
        and "drives no migration handlers" in said["c: migration"][2]
    )


def test_one_cluster_has_no_name_for_itself(saving: CheckpointSignal) -> None:
    (check,) = saving.check()
    assert not check.ok and "only with several clusters" in check.detail


def test_what_a_cluster_cannot_move_is_refused_there(saving: CheckpointSignal) -> None:
    with Federation({"a": Cluster(), "c": Unmoved()}, clock=lambda: 1.0) as one:
        one.use_handlers([saving], GIVES)
        one.describe()
        one.wait(None)
        first, second = one.apply(1.0, [d.Checkpoint("a:1"), d.Checkpoint("c:1")])
    assert first.accepted and second == Outcome(False, "cluster c cannot carry out Checkpoint")


def test_a_move_that_an_earlier_run_began_is_given_up_where_the_job_is() -> None:
    # Job a:1 went to b, where it is job 7; it was moved there when the daemon was killed.
    came = described("7", 1, attributes={"came_from": "a:1"})
    a = Cluster(ev.JobSubmitted(0.0, described("2", 1)))
    b = Cluster(ev.JobSubmitted(0.0, came))
    a.resubmission = b.resubmission = NoMarks()  # type: ignore[attr-defined]
    moves = {"a:1": d.Migrate("a:1", (("b:n1", 1),)), "a:2": d.Checkpoint("a:2")}
    with Federation({"a": a, "b": b}, clock=lambda: 1.0) as one:
        one.moving_before(moves)
        assert set(a.before) == {"1", "2"} and not b.before
        one.describe()

        def told() -> bool:
            one.wake()
            one.wait(None)
            return bool(b.before)

        until(told, "it is told of the move")
    assert a.before["2"] == d.Checkpoint("2")
    assert b.before == {"7": d.Migrate("7", (("n1", 1),))}


# ---------------------------------------------------------------------- what is kept of a job that goes


def image(directory: Path, job: str, **files: str) -> Path:
    place = directory / job
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def handlers(*given: Any) -> Handlers:
    members = {name: Member(name, Cluster(), lambda: None, lambda: 1.0, None) for name in ("a", "b")}
    made = Handlers(members, Names())
    made.use(given, GIVES)
    return made


def test_an_image_goes_with_its_job(saving: CheckpointSignal, tmp_path: Path) -> None:
    made = handlers(saving, RequeueMove())
    here = image(tmp_path / "a", "17", state="40", complete="", ready="1")
    (here / "parts").mkdir()
    (here / "parts" / "0").write_text("x" * 100)
    (here / "link").symlink_to("/etc/passwd")
    for _ in range(2):
        # The second time as after a kill.
        said = made.carry(("a", "17"), ("b", "99"), "", lambda: None).result()
        assert said.startswith("3 files of 102 bytes") and str(tmp_path / "b" / "99") in said
    made.close()
    there = tmp_path / "b" / "99"
    found = {str(path.relative_to(there)) for path in there.rglob("*") if not path.is_dir()}
    # The word of an execution, and what is no plain file, stay.
    assert found == {"state", "complete", "parts/0"} and (there / "state").read_text() == "40"
    assert (here / "state").exists() and not list((tmp_path / "b" / ".headway").glob("*.coming"))


def test_where_there_is_no_image_nothing_goes(saving: CheckpointSignal, tmp_path: Path) -> None:
    made = handlers(saving)
    assert made.carry(("a", "17"), ("b", "99"), "", lambda: None).result() == ""
    made.close()
    assert not (tmp_path / "b" / "99").exists()


def test_without_room_there_nothing_goes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    full = CheckpointSignal(CheckpointSignal.Options(directory=tmp_path / "{cluster}", spare=0, quota=5))
    made = handlers(full)
    image(tmp_path / "a", "17", state="40")
    image(tmp_path / "b", "3", state="123456")
    with pytest.raises(Failure, match="fill the quota"):
        made.carry(("a", "17"), ("b", "99"), "", lambda: None).result()
    made.close()
    assert not (tmp_path / "b" / "99").exists()


def test_a_handler_without_the_method_keeps_nothing() -> None:
    class Own:
        name = "own"

        def for_cluster(self, cluster: str) -> Any:
            return Own()

        def check(self) -> list[Check]:
            return [Check("migration: own", True, "")]

        def stop(self) -> None: ...

    made = handlers(Own())
    assert made.carry(("a", "17"), ("b", "99"), "", lambda: None).result() == ""
    made.close()
