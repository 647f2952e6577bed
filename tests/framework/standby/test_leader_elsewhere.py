"""Whether the other daemon leads or waits to, asked while the own one is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journals import schema_of

from headway.config import Config, parse_config
from headway.errors import Failure
from headway.journal.lock import holder
from headway.standby.elsewhere import Other, other_daemon
from headway.standby.frames import Frame
from headway.standby.leadership import Watch, Word
from headway.standby.lease_file import LeaseFile
from headway.standby.shared import SharedJournal

CONFIG = "{{journal: {journal}, standby: {{patience: 5s, follow: [ssh, there]}}}}"


class Told:
    """A link to a machine whose lease says this."""

    name = "ssh"

    def __init__(self, words: Iterator[Word | None], wrong: str = "") -> None:
        self._words, self._wrong = words, wrong

    def ask(self, question: object, seconds: float) -> Frame:
        return Frame(next(self._words), wrong=self._wrong)

    def close(self) -> None: ...


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return parse_config(CONFIG.format(journal=tmp_path / "j.db"))


def asked(
    words: Iterator[Word | None], config: Config, wrong: str = "", hook: Any = None
) -> tuple[Other | None, float]:
    """What is found, and after how many seconds."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds
        if hook is not None:
            hook()

    link: Any = Told(words, wrong)
    found = other_daemon(config, lambda command: link, lambda: now[0], pause)
    return found, now[0]


@pytest.mark.parametrize("leads", [True, False], ids=["leads", "stands-by"])
def test_a_process_that_renews_its_lease_is_there(config: Config, leads: bool) -> None:
    found, after = asked((Word(7, "process 1 on host a", beat // 2, leads) for beat in range(9)), config)
    assert (found, after) == (Other("process 1 on host a", leads), 1.0)


@pytest.mark.parametrize("leads", [True, False], ids=["leads", "stands-by"])
def test_a_process_that_was_killed_is_not(config: Config, leads: bool) -> None:
    found, after = asked((Word(7, "process 1 on host a", 3, leads) for _ in range(99)), config)
    assert found is None and 5.0 <= after < 6.0


@pytest.mark.parametrize("word", [None, Word(7, "a", released=True)], ids=["none", "ended"])
def test_where_no_lease_is_held_nothing_is_waited_for(config: Config, word: Word | None) -> None:
    assert asked(iter([word]), config) == (None, 0.0)


def test_one_that_ends_meanwhile_is_not_there(config: Config) -> None:
    assert asked(iter([Word(7, "a"), Word(7, "a", 1, released=True)]), config)[0] is None


def test_a_stand_by_of_this_machine_is_found_by_its_own_lease(config: Config) -> None:
    lease = LeaseFile(Path(config.journal))
    lease.replace(None, Word(7, "process 2 on host b", leads=False))

    def renewed() -> None:
        word = lease.read()
        assert word is not None and lease.replace(word, msgspec.structs.replace(word, beats=word.beats + 1))

    found, _ = asked((None for _ in range(99)), config, hook=renewed)
    assert found == Other("process 2 on host b", leads=False)


def test_a_leader_of_this_machine_has_the_journal_which_tells(config: Config) -> None:
    LeaseFile(Path(config.journal)).replace(None, Word(7, "process 2 on host b"))
    assert asked(iter([None]), config) == (None, 0.0)


def test_a_stand_by_of_a_shared_journal_is_known_to_the_database(request: pytest.FixtureRequest) -> None:
    with schema_of(request.getfixturevalue("postgres")) as url:
        config = parse_config(f"{{journal: '{url}', standby: {{patience: 5s}}}}")
        assert other_daemon(config) is None
        waits = SharedJournal(url, log=None)
        watch = Watch(5.0, 0.0)
        waits.hear(watch)
        assert other_daemon(config) == Other(holder()[:55], leads=False)
        assert waits.take(watch, Word(1, holder()))
        assert other_daemon(config) is None
        waits.close(leads=False)


def test_a_daemon_alone_asks_nobody() -> None:
    assert asked(iter(()), parse_config("mode: monitor")) == (None, 0.0)


def test_what_the_other_machine_cannot_tell_is_said(config: Config) -> None:
    with pytest.raises(Failure, match="ssh: no such journal"):
        asked(iter([None]), config, wrong="no such journal")
