"""The submit filter while headway is away: when it leaves jobs to Slurm, and what clocks and files can do to
that. Seconds: the filter's patience is 300, and slurmctld was started at 1000 of the machine's uptime."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lua_filter import HEARTBEAT, LuaFilter
from pretended import events
from pretended_slurm import PretendedSlurm
from test_slurm_adapter_unit import adapter
from waiting import until

from headway.adapter import Check
from headway.inputs.shipped import shipped
from headway_adapters.polling.heartbeat import LocalFile, Word, read_word
from headway_adapters.slurm import SlurmOptions, failing_open

WALL = 1_000_000
PATIENCE = 300


@pytest.fixture
def lua() -> Iterator[LuaFilter]:
    made = LuaFilter()
    yield made
    made.close()


def at(lua: LuaFilter, uptime: int, wall: int | None = None) -> bool:
    """Whether a job that is submitted then enters held."""
    lua.clock(uptime, WALL + uptime - 1000 if wall is None else wall)
    return lua.holds()


def test_it_holds_while_headway_is_heard_and_for_its_patience(lua: LuaFilter) -> None:
    lua.beat(2000, WALL + 1000)
    assert at(lua, 2000) and at(lua, 2000 + PATIENCE)
    assert not at(lua, 2001 + PATIENCE)
    lua.beat(2301, WALL + 1301)
    assert at(lua, 2302)


@pytest.mark.parametrize("word", [None, "headway drives boot=this-boot up=100 at=1 since=1\n"])
def test_a_slurmctld_that_has_just_started_waits_a_minute_for_a_word(lua: LuaFilter, word: str) -> None:
    # headway had no answer either, so its last word is old, or there is none.
    lua.file(HEARTBEAT, word)
    assert at(lua, 1000) and at(lua, 1060)
    assert not at(lua, 1061)


def test_a_script_that_is_loaded_anew_begins_no_new_patience() -> None:
    lua = LuaFilter(started=1000, loaded=1500)
    assert not at(lua, 1500)
    lua.close()


@pytest.mark.parametrize(
    "text",
    [
        None, "", "\0" * 512, "headway", "headway drives", "headway drives boot=this-boot up=x at=y since=z",
        "headway drives boot=this-boot up=-5 at=5 since=1\n", "x" * 100_000,
        # Of the future, in this boot: nobody's clock, so not headway's word.
        "headway drives boot=this-boot up=99999 at=5 since=1\n",
        "headway drives boot=this-boot up=999999999999999999999999999999 at=5 since=1\n",
    ],
)  # fmt: skip
def test_a_file_that_says_nothing_changes_nothing(lua: LuaFilter, text: str | None) -> None:
    lua.beat(2000, WALL + 1000)
    assert at(lua, 2000)
    lua.file(HEARTBEAT, text)
    assert at(lua, 2000 + PATIENCE), "what was heard counts on"
    assert not at(lua, 2001 + PATIENCE), "and not for ever"


@pytest.mark.parametrize("step", [-10_000_000, -3600, 3600, 10_000_000])
def test_a_clock_that_is_set_changes_nothing_on_the_same_machine(lua: LuaFilter, step: int) -> None:
    lua.beat(2000, WALL + 1000)
    assert at(lua, 2001, WALL + 1001)
    assert at(lua, 2002, WALL + 1002 + step)
    assert at(lua, 2000 + PATIENCE, WALL + 1300 + step)
    assert not at(lua, 2001 + PATIENCE, WALL + 1301 + step)


def test_of_another_machine_the_clock_counts(lua: LuaFilter) -> None:
    lua.beat(5, WALL + 1000, boot="other")
    assert at(lua, 2000) and at(lua, 2000 + PATIENCE)
    assert not at(lua, 2001 + PATIENCE)


def test_a_word_of_the_future_counts_once(lua: LuaFilter) -> None:
    # The clock of the other machine was set back after it, perhaps, or is ahead.
    lua.beat(5, WALL + 100_000, boot="other")
    assert at(lua, 2000) and at(lua, 2000 + PATIENCE)
    assert not at(lua, 2001 + PATIENCE)
    lua.beat(6, WALL + 100_001, boot="other")
    assert at(lua, 2400)


def test_a_word_that_is_written_again_is_a_sign_of_life_whatever_the_clocks_say(lua: LuaFilter) -> None:
    for second in range(2000, 2600, 100):
        # Its clock is a day behind.
        lua.beat(second, WALL + second - 86400, boot="other")
        held = at(lua, second)
        assert held or second == 2000
    assert not at(lua, 2600 + PATIENCE)


def test_control_that_was_given_back_is_slurms_at_once(lua: LuaFilter) -> None:
    lua.beat(2000, WALL + 1000)
    assert at(lua, 2000)
    lua.file(HEARTBEAT, "headway rests at=1001000\n")
    assert not at(lua, 2001)
    lua.beat(2002, WALL + 1002)
    assert at(lua, 2003)


def test_without_a_clock_that_nobody_sets_it_goes_by_the_other(lua: LuaFilter) -> None:
    lua.beat(5, WALL + 1000, boot="other")
    lua.file("/proc/uptime", None)
    for wall, held in ((WALL + 1000, True), (WALL + 1300, True), (WALL + 1301, False)):
        lua.do(f"NOW = {wall}")
        assert lua.holds() is held


@pytest.mark.parametrize("old", ['HEARTBEAT = "/run/headway/heartbeat"', "PATIENCE = 300"])
def test_switched_off_it_holds_for_ever(old: str) -> None:
    new = 'HEARTBEAT = ""' if "HEARTBEAT" in old else "PATIENCE = 0"
    lua = LuaFilter(changed=((old, new),))
    assert at(lua, 1000) and at(lua, 1_000_000)


HOLD, RELEASE = {"priority": 0}, {"priority": 4294967295}
NEW, TAKEN = {"admin_comment": "headway:new", "priority": 0}, {"admin_comment": "headway:held", "priority": 0}


@pytest.mark.parametrize(
    ("job", "change", "silent", "driven"),
    [
        # A hold of the user's own, or of the filter's: its user's release is a release.
        ({"priority": 0}, RELEASE, {"priority": "4294967295"},
         {"priority": "0", "comment": "headway:released"}),
        ({**NEW, "comment": "mine headway:user-hold"}, RELEASE,
         {"priority": "4294967295", "comment": "mine"},
         {"priority": "0", "comment": "mine headway:released"}),
        # headway's hold as administrator, which Slurm lets no user take away: the timer reads the word.
        (TAKEN, RELEASE, {"priority": "0", "comment": "headway:released"},
         {"priority": "0", "comment": "headway:released"}),
        # Other changes of a job that nothing holds do not hold it.
        ({"priority": 5}, {"time_limit": 7}, {"time_limit": "7"},
         {"time_limit": "7", "priority": "0", "comment": "headway:released"}),
        # A hold is noted, also of a job that the filter once held and that its user released meanwhile.
        (TAKEN, HOLD, {"priority": "0", "comment": "headway:user-hold"},
         {"priority": "0", "comment": "headway:user-hold"}),
        ({**NEW, "priority": 5}, HOLD, {"priority": "0", "comment": "headway:user-hold"},
         {"priority": "0", "comment": "headway:user-hold"}),
        ({"priority": 5}, HOLD, {"priority": "0"}, {"priority": "0"}),
    ],
)  # fmt: skip
def test_what_users_do_is_slurms_while_headway_is_away(
    lua: LuaFilter, job: dict[str, object], change: dict[str, object], silent: dict[str, str],
    driven: dict[str, str],
) -> None:  # fmt: skip
    lua.clock(5000, WALL)
    assert lua.modify(job, change) == {"code": "0", **silent}
    lua.beat(5000, WALL)
    assert lua.modify(job, change) == {"code": "0", **driven}


# ---------------------------------------------------------------------- the adapter


def test_the_first_sign_of_life_comes_when_the_first_news_are_dealt_with(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    with adapter(PretendedSlurm(), heartbeat=str(path), poll_interval=0.05) as one:
        one.describe()
        moment = one.wait(time.time() + 60.0)
        assert moment is not None and moment[1]
        assert not path.exists(), "a daemon that fails over them ends here"
        until(lambda: events(one) is not None and path.exists(), "it goes on")
        word = read_word(path.read_text())
        assert word is not None and word.drives


def test_a_daemon_that_only_watches_gives_no_sign_of_life(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    with adapter(PretendedSlurm(), read_only=True, heartbeat=str(path), poll_interval=0.05) as one:
        one.describe()
        for _ in range(3):
            events(one)
    assert not path.exists()


# ---------------------------------------------------------------------- what `headway check` says of it

SCRIPT = shipped("slurm/job_submit.lua").read_text()
PATH = Path("/etc/slurm/job_submit.lua")


def said(text: str, **options: object) -> Check:
    return failing_open.check(SlurmOptions(partitions=["batch"], **options), PATH, text)


@pytest.mark.parametrize(
    ("text", "options", "ok", "words"),
    [
        (SCRIPT, {"heartbeat": HEARTBEAT}, True, ""),
        (SCRIPT, {"heartbeat": HEARTBEAT, "patience": 60}, False, "patience 300 s, and headway writes"),
        (SCRIPT, {"heartbeat": "/run/other/heartbeat"}, False, "new jobs enter unheld while headway drives"),
        (SCRIPT, {}, False, "headway writes none: after 300 s new jobs enter unheld"),
        (SCRIPT, {"heartbeat": HEARTBEAT, "patience": 0}, False, "headway writes none"),
        (SCRIPT.replace(f'"{HEARTBEAT}"', '""'), {"heartbeat": HEARTBEAT}, False, "headway without end"),
        (SCRIPT.replace("PATIENCE = 300", "PATIENCE = 0"), {}, True, "off"),
        ("local MANAGED = { batch = true }", {"heartbeat": HEARTBEAT}, False, "reads no heartbeat"),
        ("local MANAGED = { batch = true }", {}, True, "off"),
        ("", {"heartbeat": HEARTBEAT}, True, "cannot be read from here"),
    ],
)  # fmt: skip
def test_check_says_whether_filter_and_configuration_agree(
    text: str, options: dict[str, object], ok: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFile, "check", lambda self: None)
    found = said(text, **options)
    assert found.ok is ok and words in found.detail
    assert found.ok or found.remedy
    assert found.known is (words != "cannot be read from here")


@pytest.mark.parametrize(
    ("word", "words"),
    [
        (Word(True, "b", 1, int(time.time()), 0), "was written"),
        (Word(True, "b", 1, int(time.time()) - 90, 0), "headway does not drive"),
        (Word(False, "", 0, int(time.time()), 0), "control was given back"),
        (None, "is not written yet"),
    ],
)
def test_check_says_when_the_heartbeat_was_written(tmp_path: Path, word: Word | None, words: str) -> None:
    path = tmp_path / "heartbeat"
    if word is not None:
        path.write_text(word.text())
    found = said(SCRIPT.replace(HEARTBEAT, str(path)), heartbeat=str(path))
    assert found.ok and words in found.detail


def test_jobs_that_came_while_headway_was_silent_show_nothing(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    text, options = SCRIPT.replace(HEARTBEAT, str(path)), SlurmOptions(partitions=["b"], heartbeat=str(path))
    assert not failing_open.held_then(options, text)(1000.0)
    path.write_text(Word(True, "b", 1, 2000, 1500).text())
    held_then = failing_open.held_then(options, text)
    assert [held_then(moment) for moment in (1400.0, 1600.0, 2200.0, 2400.0)] == [False, True, True, False]
    assert failing_open.held_then(options, SCRIPT.replace(f'"{HEARTBEAT}"', '""'))(1000.0)
