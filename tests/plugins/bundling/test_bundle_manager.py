"""The manager with real processes and a real handler; only the batch system is not there. And bad input."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from plugins.bundling.bundle_world import specification
from waiting import HANG, until

from headway.adapter.user_side import Allocation, Listed, Queue, Submission, Window
from headway.cli import main
from headway.errors import Failure, Held, UserError
from headway.service import client, protocol
from headway_plugins.bundling.live import messages, store
from headway_plugins.bundling.live.manager import Manager
from headway_plugins.bundling.live.place import Place
from headway_plugins.bundling.live.state import State, Subjob
from headway_plugins.bundling.live.worker import Worker
from headway_plugins.bundling.model import Interval
from headway_plugins.bundling.slots import Slots

APPLICATION = Path(__file__).parents[2] / "selfsaving.py"
PROCESSES, UNITS = 4, 30


class Side:
    """A batch system in this process: jobs start at once if they fit, each with a worker on a thread."""

    grain = 1.0
    queue = "batch"

    def __init__(self, place: Place, free: int) -> None:
        self.place = place
        self.free = free
        self.jobs: dict[str, Listed] = {}
        self.workers: dict[str, Worker] = {}
        self.shrunk: list[str] = []
        self.says = ""
        self.refuses = ""
        self.offers: Sequence[Window] = ()
        self.asked: list[tuple[str, ...]] = []

    def look(self) -> Queue:
        if self.says:
            raise Failure(self.says)
        waiting = tuple(job for job in self.jobs.values() if job.state == "pending")
        ends = ((time.time() + 3600.0, PROCESSES),)
        return Queue(time.time(), self.free, waiting, ends, dict(self.jobs))

    def windows(self, command: Sequence[str]) -> Sequence[Window]:
        self.asked.append(tuple(command))
        if self.says:
            raise Failure(self.says)
        return self.offers

    def submit(self, job: Submission) -> str:
        if self.refuses:
            raise Failure(self.refuses)
        key = str(len(self.jobs) + 1)
        fits = len(self.jobs) > 0 and job.processors <= self.free
        state, end = ("running", time.time() + job.walltime) if fits else ("pending", None)
        self.jobs[key] = Listed(key, job.name, "alice", job.processors, state, end)
        if fits:
            self.free -= job.processors
            given = Allocation(key, ((f"node{key}", job.processors),), f"node{key}")
            one = self.workers[key] = Worker(self.place, self.place.specification(), given, note=print)
            threading.Thread(target=self._work, args=(key, one), daemon=True).start()
        return key

    def _work(self, key: str, one: Worker) -> None:
        one.run()
        self.jobs[key] = msgspec.structs.replace(self.jobs[key], state="ended")

    def cancel(self, job: str) -> None:
        if job in self.workers:
            self.workers[job].terminate()
        else:
            self.jobs[job] = msgspec.structs.replace(self.jobs[job], state="ended")

    def shrink(self, job: str, seconds: float) -> None:
        self.shrunk.append(job)

    def postpone(self, job: str) -> None:
        raise Failure("users cannot")

    def release(self, job: str) -> None:
        pass

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        return None

    def elsewhere(
        self, argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
    ) -> tuple[tuple[str, ...], ...]:
        return ()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    one = Place.make(tmp_path / "bundles")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    one.specify(specification(
        id=one.path.name, processors=PROCESSES, walltime=600.0, user="alice", migration=2.0, poll=0.2,
        command=(sys.executable, str(APPLICATION), str(meeting), str(UNITS), "0.05"), listen="127.0.0.1",
        directory=str(tmp_path), environment={"PATH": os.environ["PATH"]}, beat=0.1,
        checkpoint_options={"directory": str(one.images), "spare": 0, "ask": 0.1},
    ))  # fmt: skip
    return one


def test_a_real_application_begins_on_one_processor_spreads_and_computes_what_it_should(
    place: Place, tmp_path: Path
) -> None:
    side, said = Side(place, 1), []
    manager = Manager(place, side=side, note=said.append)
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    begun = tmp_path / "meeting" / "begun"
    hold = tmp_path / "meeting" / "hold"
    hold.touch()
    until(lambda: begun.exists() and len(begun.read_text().splitlines()) == PROCESSES, "it begins")
    until(lambda: any(tmp_path.rglob("ready")), "it can be saved")
    side.free = 1
    until(lambda: manager.brain.state.migrations == 1, "it spreads", said=lambda: "\n".join(said))
    hold.unlink()
    until(lambda: place.result() is not None, "it is done", said=lambda: "\n".join(said))
    thread.join(HANG)
    manager.close()
    rows = [line.split() for line in begun.read_text().splitlines()]
    assert {row[3] for row in rows if row[0] == "0"} == {"processor.2.node2.0"}
    assert {row[3] for row in rows if row[0] == "1"} == {"processor.2.node2.0", "processor.3.node3.0"}
    total = sum(number * number for number in range(PROCESSES * UNITS))
    assert (tmp_path / "meeting" / "result").read_text() == str(total)
    result = place.result()
    assert result is not None and result.exit_code == 0 and side.shrunk == ["1"]


def test_the_program_of_the_users_guide_is_saved_spreads_and_is_right(place: Place, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "operators" / "bundle.md").read_text()
    program = guide.split("```python\n")[1].split("```")[0]
    assert "time.sleep(0.2)" in program and "< 2000:" in program
    shorter = program.replace("time.sleep(0.2)", "time.sleep(0.1)").replace("< 2000:", "< 200:")
    (tmp_path / "squares").write_text(shorter)
    spec = place.specification()
    place.specify(msgspec.structs.replace(spec, command=(sys.executable, str(tmp_path / "squares"))))
    side, said = Side(place, 1), []
    manager = Manager(place, side=side, note=said.append)
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    until(lambda: any(tmp_path.rglob("ready")), "it can be saved")
    side.free = 1
    until(lambda: manager.brain.state.migrations == 1, "it spreads", said=lambda: "\n".join(said))
    until(lambda: place.result() is not None, "it is done", said=lambda: "\n".join(said))
    thread.join(HANG)
    manager.close()
    result = place.result()
    assert result is not None and result.exit_code == 0
    sums = [int(path.read_text()) for path in tmp_path.glob("meeting-*/sum.*")]
    assert len(sums) == PROCESSES and sum(sums) == sum(number**2 for number in range(200))
    # It went on from what was saved.
    assert {path.name.split(".")[1] for path in tmp_path.glob("meeting-*/caught.*")} == {"0", "1"}


def test_an_outage_is_said_once_and_waited_for(place: Place) -> None:
    side, said = Side(place, 0), []
    manager = Manager(place, side=side, note=said.append)
    side.says = "Unable to contact slurm controller"
    for _ in range(3):
        manager._next_look = 0.0
        manager.once()
    assert [text for text in said if "controller" in text] == [
        "the batch system does not answer: Unable to contact slurm controller"
    ]
    side.says = ""
    manager._next_look = 0.0
    manager.once()
    assert manager.brain.state.status == "waiting"
    manager.close()


def test_an_original_request_that_is_refused_is_the_end(place: Place) -> None:
    side = Side(place, 0)
    side.refuses = "sbatch: Requested time limit is invalid"
    manager = Manager(place, side=side, note=lambda text: None)
    for _ in range(3):
        manager.once()
    result = place.result()
    assert result is not None and result.exit_code == 1 and "time limit is invalid" in result.message
    assert manager.brain.state.status == "done"
    manager.close()


def test_on_a_full_disk_nothing_is_done_and_no_order_leaves(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, said = Side(place, 0), []
    manager = Manager(place, side=side, note=said.append)
    report = msgspec.to_builtins(messages.Told(messages.Report("1", "node1", (("node1", 1),), "life")))

    def full(state: State) -> None:
        raise Failure("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(manager._store, "save", full)
        for _ in range(3):
            manager.once()
            with pytest.raises(Failure, match="the bundle's state cannot be saved"):
                manager._answer(report)
    assert not side.jobs
    assert said == ["the bundle's state cannot be saved, so nothing is done: database or disk is full"]
    manager.once()
    manager.once()
    assert list(side.jobs) == ["1"] and manager._answer(report)["launch"]["number"] == 0
    # A database that is gone is another matter.
    place.database.unlink()
    with pytest.raises(Failure, match="its file was removed"):
        manager.brain.cancel(0.0)
        manager.once()
    manager.close()


def test_words_of_any_bytes_come_back(place: Place) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    spec = msgspec.structs.replace(
        place.specification(), command=("/bin/true", odd, "a\nb", "$(touch x)"), environment={"X": odd}
    )
    place.specify(spec)
    assert place.specification() == spec


def test_a_broken_bundle_stands_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_BUNDLES", str(tmp_path))
    for name in ("b00000001", "b00000002", "b00000003"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "state.db").write_bytes(b"no database, but long enough to be looked at" * 30)
    (tmp_path / "b00000001" / "bundle.json").write_text("{")
    (tmp_path / "b00000002" / "bundle.json").write_text("[" * 100_000)
    Place(tmp_path / "b00000003").specify(specification(id="b00000003"))
    whole = Place.make(tmp_path)
    whole.specify(specification(id=whole.path.name))
    with store.Store(whole.database) as database:
        database.save(State("done", exit_code=0, message="the application is complete"))
    for words in (["status"], ["resume"], ["status", "--json"]):
        main(["bundle", *words])
    said = " ".join(capsys.readouterr().out.split())
    assert f"{whole.path.name}: done, 100% done, exit code 0: the application is complete" in said
    assert "state.db: file is not a database" in said and "bundle.json: cannot be read" in said


def test_a_submission_that_was_killed_before_it_began_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_BUNDLES", str(tmp_path))
    old, fresh = Place.make(tmp_path), Place.make(tmp_path)
    for place in (old, fresh):
        place.specify(specification(id=place.path.name))
    os.utime(old.path / "bundle.json", (1.0, 1.0))
    main(["bundle", "resume"])
    assert "has its manager" in capsys.readouterr().out
    assert not old.path.exists() and fresh.path.exists()


def test_a_bundle_has_one_manager(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway_plugins.bundling.live.manager._PATIENCE", 0.0)
    first = Manager(place, side=Side(place, 0), note=lambda text: None)
    assert store.managed(place.database)
    with pytest.raises(Held, match="another headway writes to it"):
        Manager(place, side=Side(place, 0), note=lambda text: None)
    first.close()
    assert not store.managed(place.database)


def test_slots_come_from_headways_own_plan_where_its_daemon_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.specify(msgspec.structs.replace(place.specification(), socket="/run/headway.sock", pool="wide"))
    now = time.time()
    pools = (
        protocol.PoolReport("batch", 8, 8, 0, 0),
        protocol.PoolReport("wide", 16, 6, 1, 2, head=12, ends=((now + 100.0, 4), (now + 200.0, 6))),
    )
    report = protocol.Report("drive", "slurm", 1, 0.0, pools=pools)
    asked: list[Path] = []

    def ask(path: Path, request: Any, **more: Any) -> protocol.Reply:
        asked.append(path)
        return protocol.Reply("accepted", status=report)

    monkeypatch.setattr(client, "ask", ask)
    manager = Manager(place, side=Side(place, 0), note=lambda text: None)
    assert manager._daemons_slots() == Slots(6, 4, now + 200.0) and asked == [Path("/run/headway.sock")]
    place.specify(msgspec.structs.replace(place.specification(), pool="none"))
    manager.spec = place.specification()
    with pytest.raises(Failure, match="has no pool 'none'"):
        manager._daemons_slots()
    manager.close()


def test_slots_are_what_showbf_offers_where_it_is_named(place: Place) -> None:
    spec = msgspec.structs.replace(place.specification(), showbf=("/usr/bin/showbf", "-c", "wide"))
    place.specify(spec)
    side, said = Side(place, 8), []
    manager = Manager(place, side=side, clock=lambda: 1000.0, note=said.append)
    queue = side.look()
    # Nothing that lasts is offered; of the rest there is most of what is free for 50 s.
    side.offers = (Window(6, 50.0), Window(2, 100.0))
    assert manager._slots(queue) == Slots(6, 0, 1050.0)
    # Longer than any subjob needs is as good as for ever.
    side.offers = (Window(6, 50.0), Window(2, spec.longest))
    assert manager._slots(queue) == Slots(6, 2, 1050.0)
    assert manager._slots(queue).lasting == 2
    side.offers = (Window(3, float("inf")),)
    assert manager._slots(queue) == Slots(3, 3)
    side.offers = ()
    assert manager._slots(queue) == Slots(0, 0)
    assert side.asked == [spec.showbf] * 5
    side.says = "it is down"
    assert manager._slots(queue) is None and manager._slots(queue) is None
    assert said == ["the free slots are not known: it is down"]
    manager.close()


def test_what_is_written_down_comes_back(tmp_path: Path) -> None:
    state = State(
        "running", [Subjob(0, 8, 60.0, 1.0, "17", "queued"), Subjob(
            1, 2, 60.0, 2.0, "18", "ready", 3.0, 4.0, 64.0, (("node1", 2),), "because")],
        [1], {"1/node1/0": (1, 3), "1/node1/1": (2,)}, 3, False, 1, "USR1", 2, 5.0,
        [Interval(1.0, 2.0, 2), Interval(2.0, 3.0, 0, True)], 0.25, 0.125, 4.0, 1, 2.0, None, None, "",
        [(1.0, "one"), (2.0, "two")],
    )  # fmt: skip
    with store.Store(tmp_path / "state.db") as database:
        assert database.load() is None
        database.save(state)
    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600
    assert store.read(tmp_path / "state.db") == state
    assert store.read(tmp_path / "none.db") is None
    (tmp_path / "broken.db").write_bytes(b"no database, but long enough to be looked at" * 30)
    with pytest.raises(Failure, match=r"broken\.db: file is not a database"):
        store.read(tmp_path / "broken.db")


# ---------------------------------------------------------------------- bad input


SUBMIT = ["submit", "-n", "8", "-t", "1h"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["submit", "-n", "1", "-t", "1h", "--", "true"], "1 is not in the range"),
        (["submit", "-n", "8", "-t", "soon", "--", "true"], "expected a time such as"),
        (["submit", "-n", "8", "-t", "0", "--", "true"], "expected a time"),
        ([*SUBMIT, "--memory", "much", "--", "true"], "expected a size such as 500m or 2g, found 'much'"),
        ([*SUBMIT, "--memory", "0", "--", "true"], "expected a size"),
        (SUBMIT, "Missing argument '-- COMMAND...'"),
        ([*SUBMIT, "--", "/no/such"], "the command '/no/such': expected a program"),
        ([*SUBMIT, "--set", "signal", "--", "true"], "--set: expected KEY=VALUE, found"),
        ([*SUBMIT, "--set", "signal=KILL", "--", "true"], "signal"),
        ([*SUBMIT, "--checkpoint", "easy", "--", "true"], "expected a migration handler"),
        ([*SUBMIT, "--checkpoint", "crui", "--", "true"], "Did you mean 'criu'"),
        ([*SUBMIT, "--system", "slrum", "--", "true"], "Did you mean 'slurm'"),
        ([*SUBMIT, "-q", "a b", "--", "true"], "expected the name of a queue"),
        (["status", "b01234567"], "expected the id of a bundle"),
        (["cancel", "../../etc"], "expected the id of a bundle"),
        (["worker", "/no/such"], "/no/such: no bundle is there"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_clear_error_and_leaves_nothing(
    words: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("HEADWAY_BUNDLES", str(tmp_path / "bundles"))
    monkeypatch.setenv("SLURM_CONF", "/dev/null")
    given = [*words[:1], "--system", "slurm", "-q", "batch", *words[1:]] if words[0] == "submit" else words
    with pytest.raises(SystemExit) as end:
        main(["bundle", *given])
    said = " ".join(capsys.readouterr().err.split())
    assert end.value.code == 2 and expected in said and "Traceback" not in said
    assert not list((tmp_path / "bundles").glob("*"))


def test_a_fifth_bundle_is_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_BUNDLES", str(tmp_path))
    for _ in range(4):
        place = Place.make(tmp_path)
        place.specify(specification(id=place.path.name))
    from headway_plugins.bundling.live import commands

    monkeypatch.setattr(commands, "_pick_up", lambda base: [])
    with pytest.raises(UserError, match="expected at most 4 bundles at a time"):
        commands.submit.callback(  # type: ignore[misc]
            8, 60.0, "batch", "", "slurm", (), "checkpoint-signal", (), "auto", 8, 1.0, 0, 120.0, 1.0, 1.05,
            1800.0, 15.0, 60.0, 60.0, "", None, "", "", ("true",), as_json=False,
        )  # fmt: skip
