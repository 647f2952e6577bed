"""The post: letters are taken at once, delivered on another thread at most once, and counted."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from headway.config.letters import LettersConfig
from headway.decisions import Tell
from headway.letters import Post, post
from headway.service.protocol import LetterCounts

#: Appends its words and its input to a file, each letter a line.
RECORDS = """#!/bin/sh
printf '%s\\n' "$1|$2|$(tr '\\n' '/')" >> {}
"""


class Said:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, what: str, **more: Any) -> None:
        self.lines.append((what, more))

    warning = info


class Site:
    """A post whose command records letters."""

    def __init__(self, folder: Path, body: str = "", **more: Any) -> None:
        self.box, self.log, self.now = folder / "box", Said(), 0.0
        self.box.touch()
        program = folder / "mail"
        program.write_text(RECORDS.format(self.box) + body)
        program.chmod(0o755)
        self.post = Post(self.log, clock=lambda: self.now)
        self.config = {"command": [str(program), "{user}", "about {subject}"], **more}
        self.post.use(LettersConfig(**self.config))

    def send(self, user: str = "ann", subject: str = "s", text: str = "t") -> tuple[bool, str]:
        outcome = self.post.send(Tell(user, subject, text))
        return outcome.accepted, outcome.message

    @property
    def letters(self) -> list[str]:
        return self.box.read_text().splitlines()


def test_a_letter_is_delivered_with_its_words_and_its_text(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.send("ann", "{user} $(id) 'x'", "one\ntwo") == (True, f"handed to {tmp_path}/mail")
    assert site.send("ben")[0]
    site.post.close()
    assert site.letters == ["ann|about {user} $(id) 'x'|one/two/", "ben|about s|t/"]
    assert site.post.counts() == LetterCounts(delivered=2)
    assert [(what, more["user"]) for what, more in site.log.lines] == [
        ("a letter was delivered", "ann"), ("a letter was delivered", "ben"),
    ]  # fmt: skip


def test_without_a_command_nothing_is_sent_and_there_is_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    none = Post(Said())
    assert none.send(Tell("ann", "s", "t")).message == "not sent: letters.command is not configured"
    none.use(LettersConfig())
    assert not none.send(Tell("ann", "s", "t")).accepted
    assert threading.active_count() == before and none.counts() == LetterCounts()
    none.close()


def test_a_name_that_is_no_name_is_refused_and_counted(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.send("-froot")[1].startswith("not sent: expected a user's name")
    assert site.post.counts() == LetterCounts(refused=1)
    ((what, more),) = site.log.lines
    assert what == "a letter was not sent" and more["user"] == "-froot"
    assert site.send()[0], "it does not count for anybody's limit"
    site.post.close()


def test_a_command_that_fails_or_is_not_there_costs_its_letter_and_no_other(tmp_path: Path) -> None:
    site = Site(tmp_path, body='[ "$1" != bad ] || { echo no such user >&2; exit 67; }')
    site.send("bad")
    site.send("ann")
    until(lambda: site.post.counts() == LetterCounts(delivered=1, failed=1), "both are done")
    site.post.use(LettersConfig(command=["/no/such/mail", "{user}"]))
    site.send("ann")
    until(lambda: site.post.counts().failed == 2, "the third is done")
    errors = [more["error"] for what, more in site.log.lines if what == "a letter was not delivered"]
    assert errors[0].endswith("exit status 67: no such user") and "could not be started" in errors[1]
    site.post.close()
    assert len(site.letters) == 2, "nothing is tried again"


def test_an_unforeseen_failure_costs_one_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path)
    run = site.post._program.run

    def failing(argv: Any, *more: Any) -> None:
        if "bad" in argv:
            raise RuntimeError("never foreseen")
        run(argv, *more)

    monkeypatch.setattr(site.post._program, "run", failing)
    site.send("bad")
    site.send("ann")
    site.post.close()
    assert site.post.counts() == LetterCounts(delivered=1, failed=1)
    assert any("never foreseen" in more.get("error", "") for _, more in site.log.lines)


def test_a_broken_cluster_sends_no_thousands(tmp_path: Path) -> None:
    site = Site(tmp_path, hourly=3, hourly_in_all=8)
    ann = [site.send("ann") for _ in range(1000)]
    assert sum(accepted for accepted, _ in ann) == 3
    assert ann[-1][1] == "not sent: the user gets 3 letters an hour (letters.hourly)"
    others = [site.send(f"user{at % 50}") for at in range(500)]
    assert sum(accepted for accepted, _ in others) == 5
    assert any(
        "all users together get 8 letters an hour (letters.hourly_in_all)" in said for _, said in others
    )
    site.now = 1200.0
    assert sum(site.send("ann")[0] for _ in range(10)) == 1, "a third of an hour later"
    site.post.close()
    assert site.post.counts() == LetterCounts(delivered=9, refused=1000 + 500 + 10 - 9)


def test_the_same_configuration_read_again_gives_no_new_letters(tmp_path: Path) -> None:
    site = Site(tmp_path, hourly=1)
    assert site.send()[0]
    site.post.use(LettersConfig(**site.config))
    assert not site.send()[0]
    site.post.close()


def test_a_command_that_hangs_delays_no_sender_and_the_queue_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "MOST_WAITING", 5)
    monkeypatch.setattr(post, "CLOSING", 0.2)
    site = Site(tmp_path, body="sleep 1000", timeout=1000)
    site.send()
    until(lambda: site.letters, "the command has begun")
    began = time.process_time()
    said = [site.send() for _ in range(7)]
    assert time.process_time() - began < 1.0
    assert [accepted for accepted, _ in said] == [True] * 5 + [False] * 2
    assert said[-1][1] == "not sent: 5 letters wait already"
    assert site.post.counts() == LetterCounts(refused=2, waiting=5)
    site.post.close()
    until(lambda: site.post.counts() == LetterCounts(refused=2, failed=6), "what ran is over")
    lost = [more["error"] for what, more in site.log.lines if what == "a letter was not delivered"]
    assert lost.count("the daemon ended before") == 5 and any("signal 9" in error for error in lost)
    assert site.send()[1] == "not sent: the daemon ends"


def test_the_end_waits_for_letters_that_are_on_their_way(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for at in range(10):
        site.send("ann", str(at))
    site.post.close()
    assert len(site.letters) == 10 and site.post.counts() == LetterCounts(delivered=10)
