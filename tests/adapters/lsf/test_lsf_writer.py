"""Decisions as LSF's commands."""

from __future__ import annotations

import math
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_lsf import NOW, at

from headway import decisions as d
from headway.model import JobDescription, Request, Reservation
from headway_adapters.lsf import writer
from headway_adapters.lsf.detail import Detail

CPUS = {"h1": 4, "h2": 4, "h3": 2}
SLOTS = {"h1": 4, "h2": 4, "h3": 2}


def detail(least: int = 1, most: int = 0) -> Detail:
    return Detail(held=False, least=least, most=most or least)


def started(placement: Any, asked: Detail, *, ibm: bool = False, job: str = "5") -> tuple[str, ...]:
    """The ``brun`` of a start of a job that keeps its number of slots."""
    launching = writer.start(d.Start(job, tuple(placement)), asked, CPUS, ibm=ibm)
    assert not launching.settle
    return launching.brun


def planned(decision: d.Decision, **more: Any) -> list[str]:
    """The commands, each as a line, for reading; words with blanks are quoted."""
    return [shlex.join(argv) for argv in writer.plan(decision, now=NOW, slots=SLOTS, **more).steps]


# ---------------------------------------------------------------------- starts


@pytest.mark.parametrize("ibm", [False, True])
def test_one_host_is_named_alone(ibm: bool) -> None:
    assert started([("h1", 2)], detail(2), ibm=ibm) == ("brun", "-m", "h1", "5")
    assert started([("h1", 1)], detail(), ibm=ibm, job="4[2]") == ("brun", "-m", "h1", "4[2]")


@pytest.mark.parametrize("ibm", [False, True])
@pytest.mark.parametrize(
    ("placement", "where"),
    [
        ([("h1", 4), ("h2", 4)], "h1 h2"),
        ([("h1", 4), ("h2", 1)], "h1 h2"),
        # The host that is not filled comes last.
        ([("h1", 1), ("h2", 4)], "h2 h1"),
        ([("h1", 3), ("h3", 2), ("h2", 4)], "h3 h2 h1"),
    ],
)
def test_hosts_are_named_so_that_filling_them_gives_what_was_decided(
    placement: list[tuple[str, int]], where: str, ibm: bool
) -> None:
    total = sum(count for _, count in placement)
    assert started(placement, detail(total), ibm=ibm) == ("brun", "-m", where, "5")


def test_ibms_brun_takes_the_slots_on_each_host() -> None:
    argv = started([("h1", 2), ("h2", 1)], detail(3), ibm=True)
    assert argv == ("brun", "-m", "h1#2 h2#1", "5")


def test_where_brun_cannot_say_the_slots_another_split_is_refused() -> None:
    with pytest.raises(writer.Unfit, match="cannot give 2 on h1, 1 on h2"):
        started([("h1", 2), ("h2", 1)], detail(3))
    # More than its CPUs, though it may have more slots.
    with pytest.raises(writer.Unfit, match="cannot give 3 on h3"):
        started([("h3", 3)], detail(3))


def test_from_so_many_to_so_many_slots_brun_takes_all_cpus() -> None:
    assert started([("h1", 4), ("h3", 2)], detail(2, 8)) == ("brun", "-m", "h1 h3", "5")
    assert started([("h1", 3)], detail(2, 8), ibm=True) == ("brun", "-m", "h1#3", "5")


@pytest.mark.parametrize(
    ("placement", "least", "most", "slots"),
    [([("h1", 3)], 2, 3, 3), ([("h1", 3)], 2, 8, 3), ([("h2", 1), ("h1", 4)], 2, 8, 5)],
)
def test_a_job_of_a_range_that_brun_would_give_more_is_made_one_of_what_it_gets(
    placement: list[tuple[str, int]], least: int, most: int, slots: int
) -> None:
    launching = writer.start(d.Start("5", tuple(placement)), detail(least, most), CPUS, ibm=False)
    assert launching.settle == ("bmod", "-n", str(slots), "5")
    assert launching.unsettle == ("bmod", "-n", f"{least},{most}", "5")
    full_first = sorted(placement, key=lambda part: -part[1])
    assert launching.brun == ("brun", "-m", " ".join(node for node, _ in full_first), "5")


@pytest.mark.parametrize("ibm", [False, True])
def test_a_job_of_a_range_that_has_its_host_to_itself_is_made_one_of_the_most(ibm: bool) -> None:
    alone = Detail(held=False, least=2, most=3, exclusive=True)
    launching = writer.start(d.Start("5", (("h1", 4),)), alone, CPUS, ibm=ibm)
    assert (launching.settle, launching.brun) == (("bmod", "-n", "3", "5"), ("brun", "-m", "h1", "5"))


def test_a_range_does_not_split_a_job_over_hosts_that_brun_fills() -> None:
    with pytest.raises(writer.Unfit, match="cannot give 3 on h1, 1 on h2"):
        started([("h1", 3), ("h2", 1)], detail(2, 8))


@given(st.lists(st.sampled_from(["h1", "h2", "h3"]), min_size=1, max_size=3, unique=True), st.data())
def test_whatever_is_written_for_openlava_gives_what_was_decided(
    names: list[str], data: st.DataObject
) -> None:
    placement = tuple((name, data.draw(st.integers(1, 5))) for name in names)
    total = sum(count for _, count in placement)
    try:
        _, _, where, _ = started(placement, detail(total))
    except writer.Unfit:
        return
    assert writer.fills(tuple(where.split()), CPUS, detail(total)) == dict(placement)


@pytest.mark.parametrize(
    ("start", "asked", "why"),
    [
        (d.Start("5", ()), 1, "must name hosts"),
        (d.Start("5", (("h1", 1), ("h1", 1))), 2, "named twice"),
        (d.Start("5", (("h1", 2),)), 1, "asks for 1 slots, not for 2"),
        (d.Start("5", (("h1", 0),)), 1, "asks for 1 slots"),
        (d.Start("5; reboot", (("h1", 1),)), 1, "not the id of an LSF job"),
        (d.Start("-l", (("h1", 1),)), 1, "not the id of an LSF job"),
        (d.Start("5", (("-h1", 1),)), 1, "not the name of a host"),
        (d.Start("5", (("h1 h2", 1),)), 1, "not the name of a host"),
        (d.Start("5", tuple((f"n{at}", 1) for at in range(513))), 513, "at most 512 hosts"),
    ],
)
def test_starts_that_cannot_be_written(start: d.Start, asked: int, why: str) -> None:
    with pytest.raises(writer.Unfit, match=why):
        writer.start(start, detail(asked), CPUS, ibm=True)


# ---------------------------------------------------------------------- everything else


@pytest.mark.parametrize(
    ("decision", "commands"),
    [
        (d.Hold("5"), ["bstop 5"]),
        (d.Release("4[2]"), ["bresume '4[2]'"]),
        (d.Suspend("5"), ["bstop 5"]),
        (d.Resume("5"), ["bresume 5"]),
        (d.Kill("5"), ["bkill 5"]),
        (d.Cancel("5"), ["bkill 5"]),
        (d.Requeue("5"), ["brequeue 5"]),
        (d.SetTimeLimit("5", 90.0), ["bmod -W 2 5"]),
        (d.SetTimeLimit("5", 3600.0), ["bmod -W 60 5"]),
        (d.Unreserve("r1"), ["brsvdel headway_r1"]),
        (d.Route("4[2]", "long"), ["bswitch long '4[2]'"]),
        (d.PowerDown(("h1", "h2")), ["badmin hpower suspend h1 h2"]),
        (d.PowerUp(("h1",)), ["badmin hpower resume h1"]),
    ],
)
def test_commands(decision: d.Decision, commands: list[str]) -> None:
    assert planned(decision) == commands


def test_a_note_stands_behind_the_description() -> None:
    note = d.Annotate("5", "protect", "a=B-1,c=D")
    plan = writer.plan(note, now=NOW, slots={}, pending=True, description="my own words headway-protect:old")
    assert plan.steps == (("bmod", "-Jd", "my own words headway-protect:a=B-1,c=D", "5"),)
    with pytest.raises(writer.Unfit, match="job 5: its comment has '>' in it"):
        writer.plan(note, now=NOW, slots={}, pending=True, description='"a"->"b"')
    with pytest.raises(writer.Unfit, match="no longer waits"):
        writer.plan(note, now=NOW, slots={}, pending=False)


def test_a_pending_job_is_resized_by_its_request() -> None:
    assert planned(d.Resize("5", 6), pending=True, ibm=False) == ["bmod -n 6 5"]


def test_a_running_job_gives_slots_back() -> None:
    had = (("h1", 4), ("h2", 4))
    kept = d.Resize("5", 5, (("h1", 4), ("h2", 1)))
    assert planned(kept, placement=had) == ["bresize release '3*h2' 5"]
    assert planned(d.Resize("5", 2, (("h1", 2),)), placement=had) == ["bresize release '2*h1 4*h2' 5"]
    with pytest.raises(writer.Unfit, match="only IBM Spectrum LSF has bresize"):
        planned(kept, placement=had, ibm=False)
    for wrong in [(("h2", 4),), (("h1", 4), ("h2", 5)), (("h1", 4), ("h3", 1)), (), had]:
        with pytest.raises(writer.Unfit):
            planned(d.Resize("5", 4, wrong), placement=had)


def reservation(**more: Any) -> Reservation:
    fields = {"id": "r1", "start": at(8, 0), "end": at(9, 0, 30), "nodes": ("h1", "h2"), **more}
    return Reservation(**fields)


def test_reservations() -> None:
    made = "brsvadd -N headway_r1 -n 8 -m 'h1 h2'"
    when = "-b 2026:11:21:08:00 -e 2026:11:21:09:01"
    assert planned(d.Reserve(reservation())) == [f"{made} -s {when}"]
    assert planned(d.Reserve(reservation(users=("alice",), accounts=("staff",)))) == [
        f"{made} -u 'alice staff' {when}"
    ]
    # One that exists is made anew.
    assert planned(d.Reserve(reservation()), reservation_exists=True) == [
        "brsvdel headway_r1", f"{made} -s {when}"
    ]  # fmt: skip
    # A start that has passed comes at the next minute.
    assert "-b 2026:11:21:06:41" in planned(d.Reserve(reservation(start=NOW - 60)))[0]


def test_a_pending_job_is_bound_to_a_reservation() -> None:
    assert planned(d.Bind("5", "r1"), pending=True, reservation_exists=True) == ["bmod -U headway_r1 5"]
    assert planned(d.Bind("5", "theirs"), pending=True) == ["bmod -U theirs 5"]
    assert planned(d.Bind("5", ""), pending=True) == ["bmod -Un 5"]
    with pytest.raises(writer.Unfit, match="no longer waits"):
        planned(d.Bind("5", "r1"))


@pytest.mark.parametrize(
    "decision",
    [
        d.Reserve(reservation(nodes=())),
        d.Reserve(reservation(end=NOW)),
        d.Reserve(reservation(id="a b")),
        d.Reserve(reservation(users=("-u",))),
        d.Reserve(reservation(nodes=("h9",))),
        d.PowerDown(()),
        d.SetTimeLimit("5", math.inf),
        d.SetTimeLimit("5", -1.0),
        d.SetTimeLimit("5", math.nan),
        d.Checkpoint("5"),
        d.Migrate("5", (("h1", 1),)),
        d.SwapTiers("5", "6"),
        d.SubmitSubjob("5", JobDescription("6", 0.0, Request(1, 60.0))),
    ],
)
def test_what_cannot_be_written_is_refused(decision: d.Decision) -> None:
    with pytest.raises(writer.Unfit):
        planned(decision)


@given(st.text(min_size=1, max_size=30))
def test_nothing_strange_ever_becomes_part_of_a_command(text: str) -> None:
    decisions: list[d.Decision] = [
        d.Hold(text), d.Kill(text), d.Requeue(text), d.SetTimeLimit(text, 60.0), d.Unreserve(text),
        d.PowerDown((text,)), d.Resize(text, 2), d.Route(text, "long"), d.Route("5", text),
        d.Bind(text, "r"), d.Bind("5", text),
    ]  # fmt: skip
    for decision in decisions:
        try:
            steps = writer.plan(decision, now=NOW, slots={text: 4}, pending=True).steps
        except writer.Unfit:
            continue
        for argv in steps:
            for word in argv[1:]:
                assert word.isascii() and word.isprintable() and " " not in word
                assert not word.startswith("-") or word in ("-W", "-n", "-U")


def test_hosts_are_closed_with_the_reason_and_opened() -> None:
    assert writer.drain("h1", "headway: asleep") == ("badmin", "hclose", "-C", "headway: asleep", "h1")
    assert writer.undrain("h1") == ("badmin", "hopen", "h1")


@pytest.mark.parametrize("ibm", [False, True])
def test_a_job_that_has_its_host_to_itself_is_started_there_whatever_slots_it_asks_for(ibm: bool) -> None:
    alone = Detail(held=False, least=1, most=1, exclusive=True)
    assert started([("h1", 4)], alone, ibm=ibm) == ("brun", "-m", "h1", "5")
