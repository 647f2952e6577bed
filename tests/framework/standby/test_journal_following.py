"""A stand-by's journal becomes the leader's, row by row, whatever is in it."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from journals import DAY, begin, cycles, fill

from headway.adapter import Outcome
from headway.decisions import Start
from headway.errors import Failure, Held, UserError
from headway.events import JobEnded
from headway.journal import Journal
from headway.journal.copying import digests
from headway.journal.database import Database
from headway.standby import rows, telling
from headway.standby.copies import Copy
from headway.standby.follower import Follower, Link
from headway.standby.frames import LANGUAGE, LONGEST, Begin, Depose, Frame, More, Unpacker, packed
from headway.standby.leadership import Word
from headway.standby.lease_file import LeaseFile
from headway.standby.telling import Teller, journal_file

NOW = 1_790_000_000.0


def follow(teller: Teller, copy: Copy) -> int:
    """Ask until nothing more is there; how often."""
    frame, asked = teller.answer(copy.begin()), 1
    copy.apply(frame)
    while not frame.complete:
        assert not frame.wrong, frame.wrong
        frame, asked = teller.answer(More()), asked + 1
        copy.apply(frame)
    return asked


def holds_the_same(one: Path, other: Path) -> bool:
    found = []
    for path in (one, other):
        with closing(Database(path, create=False, read_only=True)) as database, database.reading() as read:
            found.append({name: what for name, what in digests(read).items() if name != "headway_journal"})
    return found[0] == found[1]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "leader.db"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "standby.db"


@pytest.mark.parametrize("page", [1, 4, 2000])
def test_a_copy_is_the_same_to_the_last_row(
    here: Path, there: Path, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "ROWS", page)
    monkeypatch.setattr(rows, "ROWS", page)
    monkeypatch.setattr(telling, "_RUNS", 2)
    fill(here, NOW)
    copy = Copy(there)
    with closing(Teller(here)) as teller:
        asked = follow(teller, copy)
    copy.close()
    assert holds_the_same(here, there)
    assert asked > 5 or page == 2000


def test_what_comes_while_it_is_followed_is_copied_as_it_comes(here: Path, there: Path) -> None:
    copy = Copy(there)
    with Journal.open(here) as journal, closing(Teller(here)) as teller:
        run = begin(journal, NOW)
        follow(teller, copy)
        journal.record_events(1, NOW, [JobEnded(NOW, "a")])
        copy.apply(teller.answer(More()))
        journal.record_decisions(1, [Start("b", (("n1", 4),), "first")])
        copy.apply(teller.answer(More()))
        with Journal.open(there, read_only=True) as read:
            # The leader may have been killed here.
            assert [one.decision.job_id for one in read.unfinished(run)] == ["b"]
        journal.record_outcomes(1, [Outcome(True)])
        journal.checkpoint(1, {"share": {"anna": 1}})
        copy.apply(teller.answer(More()))
        # In the same cycle once more.
        journal.checkpoint(1, {"share": {"anna": 2}})
        copy.apply(teller.answer(More()))
        assert holds_the_same(here, there)
        journal.end_run("stopped", ended_at=NOW + 9)
        copy.apply(teller.answer(More()))
        nothing = teller.answer(More())
        assert holds_the_same(here, there) and not (nothing.runs or nothing.rows or nothing.checkpoints)
    copy.close()


def test_a_stand_by_that_was_away_goes_on_where_it_was(here: Path, there: Path) -> None:
    fill(here, NOW)
    copy = Copy(there)
    with closing(Teller(here)) as teller:
        follow(teller, copy)
    copy.close()
    with Journal.open(here) as journal:
        begin(journal, NOW)
        cycles(journal, NOW)
    copy = Copy(there)
    with closing(Teller(here)) as teller:
        frame = teller.answer(copy.begin())
        assert len(frame.rows["cycles"]) == 3
        copy.apply(frame)
    copy.close()
    assert holds_the_same(here, there)


def test_what_only_the_stand_by_knows_stays(here: Path, there: Path) -> None:
    """It led, and its last cycles never reached the daemon that leads now."""
    with Journal.open(there) as journal:
        begin(journal, NOW)
        cycles(journal, NOW)
        lost = journal.cycles(1)
        assert len(list(lost)) == 3
    copy = Copy(here)
    with closing(Teller(there)) as teller:
        follow(teller, copy)
    copy.close()
    with Journal.open(there) as journal:
        journal._run, journal._seq = 1, 2
        journal.record_events(3, NOW + 3, [])
    with Journal.open(here) as journal:
        assert begin(journal, NOW + 10) == 2
        cycles(journal, NOW + 10)
    copy = Copy(there)
    with closing(Teller(here)) as teller:
        follow(teller, copy)
    copy.close()
    with Journal.open(there, read_only=True) as read:
        assert [len(list(read.cycles(run))) for run in (1, 2)] == [4, 3]


def test_a_journal_of_another_life_is_put_aside_and_copied_anew(here: Path, there: Path) -> None:
    for path, at in ((here, NOW), (there, NOW - DAY)):
        with Journal.open(path) as journal:
            begin(journal, at)
            cycles(journal, at)
    copy = Copy(there)
    epoch = copy.epoch
    with closing(Teller(here)) as teller:
        assert teller.answer(copy.begin()).diverged == 1 and not teller.answer(copy.begin()).rows
        kept = copy.renew()
        follow(teller, copy)
    copy.close()
    assert holds_the_same(here, there) and kept.exists() and copy.epoch > epoch
    with Journal.open(kept, read_only=True) as read:
        assert read.runs()[0].info.started_at == NOW - DAY


def test_a_journal_that_is_not_there_yet_is_waited_for(here: Path, there: Path) -> None:
    copy = Copy(there)
    with closing(Teller(here)) as teller:
        assert teller.answer(copy.begin()) == Frame()
        with Journal.open(here) as journal:
            begin(journal, NOW)
            cycles(journal, NOW)
        follow(teller, copy)
    copy.close()
    assert holds_the_same(here, there)


def test_a_daemon_that_writes_without_a_lease_leads(here: Path) -> None:
    with Journal.open(here), closing(Teller(here)) as teller:
        word = teller.answer(More(rows=False)).word
        assert word is not None and word.leads and word.holder.startswith("process ")
        LeaseFile(here).replace(None, Word(7, "process 1 on host a", released=True))
        word = teller.answer(More(rows=False)).word
        assert word is not None and not word.released and word.epoch == 7
    with closing(Teller(here)) as teller:
        assert teller.answer(More(rows=False)).word == Word(7, "process 1 on host a", released=True)


def test_the_leader_s_word_comes_with_each_answer_and_a_new_leader_s_goes_back(here: Path) -> None:
    lease, word = LeaseFile(here), Word(7, "process 1 on host a")
    lease.replace(None, word)
    new = Word(8, "process 2 on host b")
    with closing(Teller(here)) as teller:
        assert teller.answer(Begin(LANGUAGE, {}, {})).word == word
        assert teller.answer(Depose(new)).word == new
        # A stand-by that was stopped itself comes too late.
        assert teller.answer(Depose(word)).word == new
    assert lease.read() == new


def test_a_stand_by_s_journal_is_locked_as_a_daemon_s_is(there: Path) -> None:
    copy = Copy(there)
    with pytest.raises(Held):
        Journal.open(there)
    copy.close()


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (Frame(rows={"cycles": [[1]]}), "expected rows of cycles with the 3 values run_id, seq, now"),
        (Frame(runs=[["x"] * 3]), "expected rows of runs"),
        (Frame(checkpoints={1: [[1, [], 2, 3]]}), "expected rows of checkpoints"),
    ],
)
def test_rows_that_make_no_sense_change_nothing(there: Path, frame: Frame, what: str) -> None:
    copy = Copy(there)
    with pytest.raises(Failure, match=what):
        copy.apply(frame)
    assert copy.begin().runs == {}
    copy.close()


def test_another_version_is_told_so(here: Path) -> None:
    fill(here, NOW)
    with closing(Teller(here)) as teller:
        frame = teller.answer(Begin(LANGUAGE + 1, {}, {}))
    assert "need the same version of headway" in frame.wrong and not frame.complete


def test_messages_come_whole_however_they_are_cut() -> None:
    said = packed(More()) + packed(Depose(Word(7, "a"))) + packed(More(False))
    come, found = Unpacker("the test"), []
    for byte in said:
        come.add(bytes([byte]))
        found += come.questions()
    assert found == [More(), Depose(Word(7, "a")), More(False)]


@pytest.mark.parametrize(
    "said", [b"Welcome to headway1!\n", b"\0\0\0\x03abc", (LONGEST + 1).to_bytes(4, "big")]
)
def test_what_is_no_message_is_told_with_what_was_found(said: bytes) -> None:
    come = Unpacker("standby.follow: ssh")
    come.add(said)
    with pytest.raises(Failure, match=r"standby.follow: ssh: expected what .* found b'"):
        list(come.frames())


def test_a_journal_on_a_server_needs_no_command() -> None:
    with pytest.raises(UserError, match="expected a journal in a file, found a server's database"):
        journal_file("postgresql://a@b/c")


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("import sys; sys.exit('Host key verification failed.')", "ended: Host key verification failed."),
        ("print('hello, this is a banner', flush=True); input()", "found b'hell"),
        ("import time; time.sleep(60)", "no answer within 0.5 s"),
    ],
)
def test_a_command_that_does_not_follow_is_told_with_its_words(program: str, what: str) -> None:
    with closing(Link([sys.executable, "-c", program])) as link, pytest.raises(Failure, match=what):
        link.ask(Begin(LANGUAGE, {}, {}), 0.5 if "sleep" in program else 60.0)


def test_the_command_answers_and_ends_with_its_input(
    here: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    fill(here, NOW)
    with open(here.with_name("asked"), "w+b") as asked:
        asked.write(packed(More(rows=False)) + packed(More(rows=False)))
        asked.seek(0)
        telling.tell(here, asked.fileno(), 1)
    come = Unpacker("the test")
    come.add(capfdbinary.readouterr().out)
    assert [frame.newest for frame in come.frames()] == [(4, 2), (4, 2)]


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(Failure, match=r"standby\.follow: /no/such: cannot be run: No such file"):
        Link(["/no/such"])


class Log:
    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, event: str, **more: object) -> None:
        self.said.append(event)

    warning = error = info


def eventually(condition: object) -> None:
    end = time.monotonic() + 60.0
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_command_is_run_again_when_it_ends_and_the_lag_is_told(here: Path, there: Path) -> None:
    fill(here, NOW)
    # It ends after a few answers, as over a connection that breaks.
    program = (
        "import sys; from pathlib import Path; from headway.standby import telling\n"
        "count = 0\n"
        "def answer(self, question, real=telling.Teller.answer):\n"
        "    global count; count += 1\n"
        "    return real(self, question) if count < 4 else sys.exit('the connection broke')\n"
        "telling.Teller.answer = answer\n"
        f"telling.tell(Path({str(here)!r}), 0, 1)\n"
    )
    log = Log()
    follower = Follower([sys.executable, "-c", program], there, 1.0, log)
    follower.start()
    eventually(lambda: "the other daemon is followed again" in log.said)
    eventually(lambda: follower.known_to is not None)
    follower.end()
    assert "the other daemon cannot be followed" in log.said
    assert holds_the_same(here, there)


def test_what_nobody_foresaw_does_not_end_the_following(
    here: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(here, NOW)
    real, left = Copy.apply, [OSError("disk full"), RuntimeError("a mistake")]

    def apply(self: Copy, frame: Frame) -> None:
        if left:
            raise left.pop(0)
        real(self, frame)

    monkeypatch.setattr(Copy, "apply", apply)
    program = (
        "from pathlib import Path; from headway.standby import telling\n"
        f"telling.tell(Path({str(here)!r}), 0, 1)\n"
    )
    log = Log()
    follower = Follower([sys.executable, "-c", program], there, 1.0, log)
    follower.start()
    eventually(lambda: follower.trouble or not follower.is_alive())
    assert "disk full" in follower.trouble
    eventually(lambda: follower.known_to is not None or not follower.is_alive())
    follower.end()
    assert log.said[0] == "the other daemon cannot be followed" and not left
    assert holds_the_same(here, there)


def test_a_leader_that_can_be_reached_later_learns_then_that_it_leads_no_more(
    here: Path, there: Path, tmp_path: Path
) -> None:
    lease, new = LeaseFile(here), Word(8, "process 2 on host b")
    lease.replace(None, Word(7, "process 1 on host a"))
    gate = tmp_path / "gate"
    program = (
        "import sys; from pathlib import Path; from headway.standby import telling\n"
        f"Path({str(gate)!r}).exists() or sys.exit('no route to host')\n"
        f"telling.tell(Path({str(here)!r}), 0, 1)\n"
    )
    follower = Follower([sys.executable, "-c", program], there, 1.0, Log())
    follower.start()
    follower.depose(new)
    # The own journal is free for the daemon at once.
    Journal.open(there).close()
    gate.touch()
    eventually(follower.deposed.is_set)
    assert lease.read() == new
    follower.join(60.0)
