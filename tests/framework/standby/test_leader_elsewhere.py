"""Whether the other daemon leads, asked while the own one is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headway.config import Config, parse_config
from headway.errors import Failure
from headway.standby.elsewhere import other_leader
from headway.standby.frames import Frame
from headway.standby.leadership import Word

CONFIG = "standby: {patience: 5s, follow: [ssh, there]}"


class Told:
    """A link to a machine whose lease says this."""

    name = "ssh"

    def __init__(self, words: Iterator[Word | None], wrong: str = "") -> None:
        self._words, self._wrong = words, wrong

    def ask(self, question: object, seconds: float) -> Frame:
        return Frame(next(self._words), wrong=self._wrong)

    def close(self) -> None: ...


def asked(words: Iterator[Word | None], config: Config | None = None, wrong: str = "") -> tuple[str, float]:
    """What is found, and after how many seconds."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    link: Any = Told(words, wrong)
    found = other_leader(config or parse_config(CONFIG), lambda command: link, lambda: now[0], pause)
    return found, now[0]


def test_a_process_that_renews_its_lease_leads() -> None:
    found, after = asked(Word(7, "process 1 on host a", beat // 2) for beat in range(9))
    assert (found, after) == ("process 1 on host a", 1.0)


def test_a_process_that_was_killed_does_not() -> None:
    found, after = asked(Word(7, "process 1 on host a", 3) for _ in range(99))
    assert found == "" and 5.0 <= after < 6.0


@pytest.mark.parametrize(
    "word", [None, Word(7, "a", released=True), Word(7, "a", leads=False)], ids=["none", "ended", "stands-by"]
)
def test_where_no_lease_is_held_nothing_is_waited_for(word: Word | None) -> None:
    assert asked(iter([word])) == ("", 0.0)


def test_one_that_ends_meanwhile_does_not_lead() -> None:
    assert asked(iter([Word(7, "a"), Word(7, "a", 1, released=True)]))[0] == ""


def test_a_daemon_alone_or_with_a_shared_journal_asks_nobody() -> None:
    for text in ("mode: monitor", "standby: {patience: 5s}"):
        assert asked(iter(()), parse_config(text)) == ("", 0.0)


def test_what_the_other_machine_cannot_tell_is_said() -> None:
    with pytest.raises(Failure, match="ssh: no such journal"):
        asked(iter([None]), wrong="no such journal")
