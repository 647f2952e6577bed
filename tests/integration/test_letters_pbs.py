"""Letters to users by a real daemon: what hostile users and commands can do, crashes, reloads, monitoring."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from emulated_commands import Commands
from live_daemon import Daemon
from mail_script import MailBox

from headway.decisions import Tell
from headway_adapters.commands import Emulator, EmulatorOptions

pytestmark = pytest.mark.waits

#: Writes to the users of jobs what stands in the jobs' names, and hostile letters with the first job.
PLUGIN = '''
from headway.decisions import Tell
from headway.hookspecs import hookimpl
from headway.plugins import Traits

HOSTILE = [
    Tell("-froot", "x", "to an option"),
    Tell("ann,root", "x", "to two users"),
    Tell("ann\\nBcc: root", "x", "to a header"),
    Tell("../../etc/passwd", "x", "to a file"),
    Tell("|id", "x", "to a program"),
    Tell("", "x", "to nobody"),
    Tell("lines@x", "one\\nBcc: root@x\\r\\n\\r\\nbody", "first\\r\\n~!id\\n.\\n\\x00\\x1b[2Jlast"),
    Tell("places@x", "{user} {subject} $(id) `id` ; | & > /tmp/x 100 %s %n \\\\1", "{user} $(id) %s"),
    Tell("option@x", "--help", "-x"),
    Tell("huge@x", "s" * 1000000, "t" * 1000000),
    Tell("noisy@x", "noisy", "its command fills its standard error"),
    Tell("dies@x", "dies", "its command is killed"),
    Tell("good@x", "good", "behind all of them"),
]

class Writes:
    """Writes each letter once."""

    name = "writes"
    traits = Traits(checkpoint="promises")

    def __init__(self):
        self.known, self.new, self.promises = [], [], 0

    @hookimpl
    def observe(self, event, state):
        job = getattr(event, "job", None)
        if job is not None and job.id not in self.known:
            self.known.append(job.id)
            self.new.append(job)
            self.promises += 1

    @hookimpl
    def react(self, state):
        new, self.new = self.new, []
        for job in new:
            if job is new[0] and len(self.known) == len(new):
                yield from HOSTILE
            yield Tell(f"{job.name}@x", f"job {job.name}", f"job {job.id} of {job.user}", "it came")

    @hookimpl
    def promised(self):
        return self.promises

    @hookimpl
    def checkpoint(self):
        return list(self.known)

    @hookimpl
    def restore(self, saved):
        self.known = list(saved)
'''


#: The users of those that are sent.
SENT = ("lines@x", "places@x", "option@x", "huge@x", "noisy@x", "dies@x", "good@x", "first@x")


class Site:
    """An emulated PBS, a daemon, and a mail box."""

    def __init__(self, emulator: Emulator, directory: Path) -> None:
        self.commands = Commands(emulator)
        self.commands.ok("qmgr", "-c", "set server scheduling = False")
        self.box = MailBox(directory / "box")
        self.plugin = directory / "writes.py"
        self.plugin.write_text(PLUGIN)
        self.daemon = Daemon(SimpleNamespace(conf="", options={}), directory)
        options = {
            "queues": ["workq"], "bin_dir": str(emulator.bin), "poll_interval": 0.3,
            "commands_per_minute": None,
        }  # fmt: skip
        self.daemon.configure(
            cluster={"adapter": "pbs", "options": options}, plugins=["writes", "easy", "first-fit"],
            letters=self.box.config(),
        )  # fmt: skip

    def start(self, *words: str) -> None:
        self.daemon.start("--plugin", str(self.plugin), *words)

    def submit(self, name: str) -> str:
        words = ("-N", name, "-l", "select=1:ncpus=1", "-l", "walltime=0:10:0", "--", "/bin/sleep", "600")
        return self.commands.ok("qsub", *words, user="alice").strip()

    def count(self, what: str) -> int:
        return len(self.daemon.said(what))

    def clean_up(self) -> None:
        self.daemon.clean_up()
        if self.box.hanging is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.box.hanging, signal.SIGKILL)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Emulator(tmp_path / "pbs", EmulatorOptions(system="pbs", nodes=2, processors=4)) as emulator:
        one = Site(emulator, tmp_path)
        yield one
        one.clean_up()


def test_hostile_letters_and_commands_cost_themselves_alone_and_a_crash_repeats_none(site: Site) -> None:
    daemon, box = site.daemon, site.box
    job = site.submit("first")
    site.start()
    daemon.until(lambda: any(words[-1] == "first@x" for words, _ in box.letters()), what="the last letter")
    daemon.until(lambda: site.count("a letter was not delivered") == 2, what="two failed")
    found = {words[-1]: (words[:-1], text) for words, text in box.letters()}
    s = ["-s"]
    assert found["lines@x"] == ([*s, "[headway] one Bcc: root@x body", "--"], "first\n ~!id\n .\n  [2Jlast\n")
    assert found["places@x"] == (
        [*s, "[headway] {user} {subject} $(id) `id` ; | & > /tmp/x 100 %s %n \\1", "--"], "{user} $(id) %s\n",
    )  # fmt: skip
    assert found["option@x"] == ([*s, "[headway] help", "--"], "-x\n")
    assert len(found["huge@x"][0][1]) < 250 and len(found["huge@x"][1]) < 20_000
    assert found["good@x"] == ([*s, "[headway] good", "--"], "behind all of them\n")
    assert found["first@x"] == ([*s, "[headway] job first", "--"], f"job {job} of alice\n")
    assert set(found) == {*SENT}
    assert max(map(len, daemon.log_path.read_text().splitlines())) < 2_000
    errors = [said["error"] for said in daemon.said("a letter was not delivered")]
    assert "exit status 3: nnn" in errors[0] and len(errors[0]) < 500 and "signal 9" in errors[1]
    assert site.count("a letter was not sent") == 6
    daemon.until(lambda: site.count("a letter was delivered") == 6, what="the deliveries are told")
    said = daemon.command("status").stdout
    assert "Letters to users: 6 delivered, 2 failed, 6 refused\n" in said

    # A command that hangs delays no cycle.
    site.submit("hangs")
    daemon.until(lambda: box.hanging is not None, what="the command hangs")
    later = site.submit("later")
    daemon.until(lambda: later in {start.job_id for _, start in daemon.starts()}, what="a later job starts")
    assert "6 refused, 1 waiting\n" in daemon.command("status").stdout
    sent = box.letters()
    assert "later@x" not in {words[-1] for words, _ in sent}

    # The letters of a daemon that was killed are not sent by the next daemon, nor by a replay.
    daemon.kill()
    site.start()
    daemon.until(lambda: site.count("started") == 2, what="it is back")
    site.submit("after")
    daemon.until(lambda: any(words[-1] == "after@x" for words, _ in box.letters()), what="it writes again")
    assert [one for one in box.letters() if one[0][-1] != "after@x"] == sent
    assert daemon.stop() == 0
    told = [decision for _, decision in daemon.decisions() if isinstance(decision, Tell)]
    assert len(told) == 13 + 4 and told[-1].user == "after@x"
    before = box.letters()
    daemon.assert_replays(site.plugin)
    assert box.letters() == before


def test_a_daemon_that_watches_says_what_it_would_write_and_writes_nothing(site: Site) -> None:
    site.submit("first")
    site.start("--monitor")
    would = [{}]

    def told() -> bool:
        would[:] = [said for said in site.daemon.said("would do") if said["decision"] == "Tell"]
        return any(said["user"] == "first@x" for said in would)

    site.daemon.until(told, what="it says what it would do")
    assert would[-1]["subject"] == "job first" and would[-1]["reason"] == "it came" and len(would) == 14
    assert "Letters" not in site.daemon.command("status").stdout
    assert site.daemon.stop() == 0
    outcomes = [
        outcome.message
        for cycle in site.daemon.cycles()
        for decision, outcome in zip(cycle.decisions, cycle.outcomes, strict=True)
        if isinstance(decision, Tell) and outcome is not None
    ]
    assert outcomes == ["monitor mode: the letter would have been sent"] * 14
    assert site.box.letters() == []


def test_a_reload_changes_the_command_and_the_end_waits_for_letters(site: Site, tmp_path: Path) -> None:
    daemon, other = site.daemon, MailBox(tmp_path / "other")
    daemon.configure(letters={})
    site.submit("first")
    site.start()
    daemon.until(
        lambda: any(s.get("user") == "first@x" for s in daemon.said("decided")), what="it is decided"
    )
    daemon.configure(letters=other.config())
    daemon.send(signal.SIGHUP)
    daemon.until(lambda: site.count("configuration read again") == 1, what="it is read again")
    daemon.until(lambda: site.count("started") == 2, what="the next run")
    site.submit("second")
    daemon.until(
        lambda: any(s.get("user") == "second@x" for s in daemon.said("decided")), what="it is decided"
    )
    assert daemon.stop() == 0
    assert [words[-1] for words, _ in other.letters()] == ["second@x"] and site.box.letters() == []
