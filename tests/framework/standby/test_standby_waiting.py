"""The stand-by's loop: it waits, and leads when it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from waiting import HANG

from headway.config import parse_config
from headway.config.standby import StandbyConfig
from headway.errors import Failure, UserError
from headway.inquiry.reports import HealthReport
from headway.journal.lock import holder
from headway.service import protocol, server
from headway.service.client import ask
from headway.service.peer import Peer
from headway.standby.answering import Answering, served
from headway.standby.followed import FollowedJournal
from headway.standby.keeper import Keeper
from headway.standby.leadership import Watch, Word
from headway.standby.lease import Lease
from headway.standby.lease_file import LeaseFile
from headway.standby.sources import Source
from headway.standby.waiting import StandBy, stand_by

ONE = Word(7, "process 1 on host a")


class Told(Source):
    """What the test says."""

    trouble = ""

    def __init__(self) -> None:
        self.words: Iterator[Word | None] = iter(())
        self.taken: list[Word] = []
        self.fails, self.faster = 0, 0
        self.clock: Callable[[], float] = lambda: 0.0

    def hear(self, watch: Watch) -> None:
        watch.hear(next(self.words, None), self.clock())

    def may_lead(self, watch: Watch, now: float) -> bool:
        return watch.is_over(now)

    def take(self, watch: Watch, word: Word) -> bool:
        if self.fails:
            self.fails -= 1
            raise Failure("the server is away")
        if self.faster:
            self.faster -= 1
            return False
        self.taken.append(word)
        return True

    def free(self) -> None: ...

    def lag(self, now: float) -> float | None:
        return 1.5

    def epoch(self) -> int:
        return 3

    def close(self, *, leads: bool) -> None:
        self.leads = leads


class Nowhere(Lease):
    shared, name = True, "nowhere"

    def read(self) -> Word | None:
        return None

    def replace(self, seen: Word | None, by: Word) -> bool:
        return True

    def close(self) -> None: ...


class Time:
    """A clock that goes on while the loop pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        #: Seconds that one more pause takes.
        self.stops: dict[int, float] = {}
        self.pauses = 0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses += 1
        assert self.pauses < 1000
        self.now += seconds + self.stops.get(self.pauses, 0.0)


def standing_by(
    source: Told, time: Time, stopped: Callable[[], bool] = lambda: False, wall: float = 5.0
) -> StandBy:
    source.clock = time
    return StandBy(
        parse_config("standby: {patience: 5s}"), source, Nowhere(), stopped=stopped, on_lost=lambda: None,
        clock=time, wall=lambda: wall, pause=time.pause,
    )  # fmt: skip


def beats(count: int) -> Iterator[Word]:
    return (Word(7, ONE.holder, beat) for beat in range(count))


def lead(waits: StandBy) -> Keeper:
    keeper = waits.wait()
    assert keeper is not None
    keeper.release()
    return keeper


def test_it_leads_when_the_leader_is_silent_for_the_patience() -> None:
    source, time = Told(), Time()
    source.words = beats(20)
    lead(standing_by(source, time))
    # The last word came after 19 pauses of half a second.
    assert 9.5 + 5.0 <= time.now <= 9.5 + 5.5
    assert source.leads and source.taken == [Word(8, holder())]


def test_it_leads_at_once_when_the_leader_gave_up_its_lease() -> None:
    source, time = Told(), Time()
    source.words = iter([ONE, Word(7, ONE.holder, 1, released=True)])
    lead(standing_by(source, time))
    assert time.now == 0.5


def test_an_epoch_is_higher_than_all_that_are_known_and_is_no_earlier_leader_s() -> None:
    for wall, epoch in ((5.0, 8), (1_790_000_000.9, 1_790_000_000)):
        source, time = Told(), Time()
        source.words = beats(1)
        lead(standing_by(source, time, wall=wall))
        assert [word.epoch for word in source.taken] == [epoch]


def test_it_goes_on_waiting_when_another_was_faster_or_the_server_is_away() -> None:
    source, time = Told(), Time()
    source.words, source.fails, source.faster = beats(1), 2, 1
    lead(standing_by(source, time))
    assert time.now == 5.0 + 3 * 0.5


def test_a_stand_by_that_was_stopped_itself_waits_for_the_patience_again() -> None:
    source, time = Told(), Time()
    source.words = beats(4)
    time.stops = {4: 60.0}
    lead(standing_by(source, time))
    assert time.now >= 62.0 + 5.0


def test_it_ends_when_it_is_told_to() -> None:
    source, time = Told(), Time()
    source.words = beats(50)
    assert standing_by(source, time, stopped=lambda: time.now > 3.0).wait() is None
    assert not source.taken and not source.leads


def test_it_says_how_it_is_and_that_the_leader_is_asked_elsewhere() -> None:
    source, time = Told(), Time()
    source.words = beats(50)
    waits = standing_by(source, time, stopped=lambda: time.now > 3.0)
    answers = Answering(parse_config("plugins: [easy, first-fit: {}]"), waits)
    nobody = Peer("anna", False)
    assert "no leader is known" in answers.ask(protocol.Jobs(), nobody).result().reason
    waits.wait()
    status = answers.ask(protocol.Status(), nobody).result().status
    assert status is not None and status.plugins == ("easy", "first-fit")
    assert status.leadership == protocol.Leadership("stand-by", ONE.holder, 7, 5.0, 0.5, 1.5)
    reply = answers.ask(protocol.Jobs(), nobody).result()
    assert (reply.outcome, reply.reason) == (
        "failed", "this headway is the stand-by: ask the leader, process 1 on host a"
    )  # fmt: skip


def answering(source: Told, time: Time) -> Answering:
    """Of a stand-by that heard of the leader and waits no more."""
    waits = standing_by(source, time, stopped=lambda: time.now > 3.0)
    waits.wait()
    return Answering(parse_config("standby: {patience: 5s}"), waits)


def test_a_stand_by_that_hears_of_the_leader_and_its_journal_is_well() -> None:
    source, time = Told(), Time()
    source.words = beats(50)
    answers = answering(source, time)
    found = answers.ask(protocol.Health(), Peer("anna", False)).result().found
    assert isinstance(found, HealthReport) and found.well
    assert [(check.name, check.detail) for check in found.checks] == [
        ("leader", "process 1 on host a leads with epoch 7, last heard of 0.5 s ago"),
        ("leader's journal", "what is known of it is at most 1.5 s old"),
    ]
    time.now += 60.0
    source.trouble = "standby.follow: no route"
    found = answers.ask(protocol.Health(), Peer("anna", False)).result().found
    assert isinstance(found, HealthReport) and [check.ok for check in found.checks] == [False, False]
    assert found.checks[1].detail.endswith("; standby.follow: no route")


def test_a_stand_by_where_no_daemon_ever_led_is_not_well() -> None:
    found = answering(Told(), Time()).ask(protocol.Health(), Peer("anna", False)).result().found
    assert isinstance(found, HealthReport) and found.checks[0].detail == "no leader is known"


def test_a_stand_by_has_metrics_and_leads_in_none() -> None:
    source, time = Told(), Time()
    source.words = beats(50)
    told = answering(source, time).ask(protocol.Metrics(), Peer("anna", False)).result().metrics
    assert told is not None
    assert (told.leader, told.epoch, told.journal_lag_seconds, told.mode) == (False, 0, 1.5, "monitor")
    assert told.last_turn == 5.0


def test_a_program_that_would_follow_a_stand_by_is_told_where_the_leader_is() -> None:
    source, time = Told(), Time()
    source.words = beats(50)
    with pytest.raises(Failure, match="this headway is the stand-by: ask the leader, process 1 on host a"):
        answering(source, time).follow((), operator=True)


def test_a_speaker_may_ask_the_stand_by_on_behalf_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    config = parse_config(f"service: {{socket: {path}, speakers: [web]}}\nstandby: {{patience: 5s}}")
    monkeypatch.setattr(server, "user_name", lambda uid: "web")
    defaults = {**(server.Server.__init__.__kwdefaults__ or {}), "credentials": lambda connection: 4711}
    monkeypatch.setattr(server.Server.__init__, "__kwdefaults__", defaults)
    served_at = served(config, standing_by(Told(), Time()), structlog.get_logger())
    assert served_at is not None
    with served_at:
        reply = ask(path, protocol.OnBehalf("anna", protocol.Jobs()), timeout=HANG)
    assert reply.reason == "this headway is the stand-by: no leader is known"


def test_each_look_is_a_sign_of_life() -> None:
    source, time, looks = Told(), Time(), list[float]()
    source.words = beats(50)
    waits = StandBy(
        parse_config("standby: {patience: 5s}"), source, Nowhere(), stopped=lambda: time.now > 3.0,
        on_lost=lambda: None, on_look=lambda: looks.append(time.now), clock=time, wall=lambda: 5.0,
        pause=time.pause,
    )  # fmt: skip
    source.clock = time
    waits.wait()
    assert len(looks) == 7
    assert waits.line() == "stand-by; process 1 on host a leads with epoch 7"


# -- a journal of its own


class Quiet:
    def warning(self, *_: object, **__: object) -> None: ...

    info = warning


class Other:
    """What the other daemon's machine says."""

    def __init__(self, source: FollowedJournal) -> None:
        self._follower = source._follower
        self._follower.end()

    def says(self, word: Word | None, now: float, newest: tuple[int, int] = (0, 0)) -> None:
        self._follower.told, self._follower.newest = (now, word), newest


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[tuple[FollowedJournal, Other, Watch, list[float]]]:
    clock = [0.0]
    settings = StandbyConfig(patience="5s", alone="60s", follow=["false"])

    source = FollowedJournal(tmp_path / "journal.db", settings, Quiet(), lambda: clock[0])
    yield source, Other(source), Watch(5.0, 0.0), clock
    source.close(leads=False)


def may(source: FollowedJournal, watch: Watch, now: float) -> bool:
    source.hear(watch)
    return source.may_lead(watch, now)


def test_a_leader_that_was_never_heard_of_is_waited_for_longer(
    followed: tuple[FollowedJournal, Other, Watch, list[float]],
) -> None:
    source, other, watch, _ = followed
    assert not may(source, watch, 59.0) and may(source, watch, 60.0)
    other.says(ONE, 61.0)
    assert not may(source, watch, 65.9) and may(source, watch, 66.0)


def test_where_no_daemon_ever_ran_it_leads_soon(
    followed: tuple[FollowedJournal, Other, Watch, list[float]],
) -> None:
    source, other, watch, _ = followed
    other.says(None, 1.0)
    assert not may(source, watch, 4.9) and may(source, watch, 5.0)


def test_of_two_that_begin_at_once_the_daemon_with_the_newer_journal_leads(
    followed: tuple[FollowedJournal, Other, Watch, list[float]],
) -> None:
    source, other, watch, _ = followed
    other.says(Word(3, "~", 1, leads=False), 1.0, (4, 100))
    assert not may(source, watch, 1.0)
    other.says(Word(3, "", 2, leads=False), 2.0, (0, -1))
    assert may(source, watch, 2.0)
    # With the same journals one of them, whichever asks.
    other.says(Word(3, "~", 3, leads=False), 3.0, (0, -1))
    assert not may(source, watch, 3.0)


def test_it_goes_on_listening_while_its_own_lease_cannot_be_written(
    followed: tuple[FollowedJournal, Other, Watch, list[float]],
) -> None:
    source, other, watch, _ = followed
    source.lease.path.write_text("{")
    other.says(ONE, 1.0)
    assert not may(source, watch, 1.0)
    assert watch.word == ONE and "expected what headway wrote" in source.trouble
    source.lease.path.unlink()
    other.says(Word(7, ONE.holder, 1), 2.0)
    assert not may(source, watch, 2.0) and source.trouble == ""


def test_it_follows_on_when_it_cannot_write_that_it_leads(tmp_path: Path) -> None:
    settings = StandbyConfig(patience=5.0, alone=60.0, follow=["sleep", "1000"])
    source = FollowedJournal(tmp_path / "journal.db", settings, Quiet())
    try:
        source.lease.path.write_text("{")
        with pytest.raises(Failure, match="expected what headway wrote"):
            source.take(Watch(5.0, 0.0), Word(8, holder()))
        assert source._follower.is_alive() and not source._follower._over.is_set()
        source.lease.path.unlink()
        assert source.take(Watch(5.0, 0.0), Word(8, holder()))
        assert source.lease.read() == Word(8, holder())
        assert source._follower._over.is_set()
    finally:
        source.close(leads=False)


def test_its_own_lease_says_that_it_stands_by(
    followed: tuple[FollowedJournal, Other, Watch, list[float]], tmp_path: Path
) -> None:
    source, _, watch, _ = followed
    lease = LeaseFile(tmp_path / "journal.db")
    said = []
    for _ in range(3):
        source.hear(watch)
        said.append(lease.read())
    assert all(word is not None and not word.leads for word in said) and len(set(said)) == 3


# -- the configuration


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("journal: j.db", "standby.follow: expected the command that tells the other daemon's journal"),
        (
            "journal: postgresql://a@b/c\nstandby: {follow: [ssh, b]}",
            "standby.follow: expected none, since both daemons write to one database; found 'ssh'",
        ),
    ],
)
def test_what_does_not_fit_the_journal_is_told(text: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        stand_by(parse_config(text), (), lambda: True, lambda: None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{patience: 0.5s}", "standby.patience"),
        ("{follow: [ssh, '']}", "expected words, found an empty one"),
        ("{patients: 5s}", "patients"),
    ],
)
def test_a_wrong_section_is_told(text: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        parse_config(f"standby: {text}")
