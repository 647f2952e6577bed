"""Copies between real stores by the site's commands: what is told, whatever the commands do."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from directory_stores import DATA, Stores, gone, last, refused, told
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.adapter import KnownReplica
from headway.model import JobDescription, Request
from headway.model.transfers import Transfers
from headway_adapters.federation import live_commands

TO_B = d.Copy("era5", "b", "a")
THERE = KnownReplica("era5", "b", "there")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    one = Stores(tmp_path)
    yield one
    one.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_commands, "GRACE", 0.2)


# ---------------------------------------------------------------------- copies


def test_a_copy_is_told_from_its_beginning_to_its_end(stores: Stores) -> None:
    copies = stores.copies()
    assert copies.capabilities == {d.Copy, d.Drop}
    assert copies.takes(TO_B)
    events = told(copies, ev.DatasetCopied)
    assert events[0] == ev.DatasetCopying(5.0, "era5", "b", "a", 0)
    copied = last(events, ev.DatasetCopied)
    assert (copied.dataset, copied.site, copied.source) == ("era5", "b", "a")
    assert 0 < copied.seconds < 20
    assert stores.path("b").read_bytes() == DATA
    assert [one for one in stores.called() if one != "size"] == ["copy", "check", "check"]


def test_how_far_it_is_is_told_while_it_goes_on(stores: Stores) -> None:
    stores.breaks("copy", "half")
    copies = stores.copies()
    copies.takes(TO_B)
    stores.reached("copy-half")
    found: list[ev.Event] = []
    until(lambda: found.extend(copies.take(1.0)) or len(found) >= 2, what="half of it is told")
    assert found[1] == ev.DatasetCopying(1.0, "era5", "b", "a", len(DATA) // 2)
    stores.go_on()
    told(copies, ev.DatasetCopied)


WRONG = [
    # What breaks and how, what the reason says, how many bytes had arrived (None: it does not matter).
    ("copy", "fail", "sh: the copy is broken (exit code 1)", 0),
    ("copy", "full", "write failed: No space left on device (exit code 11)", 3),
    ("copy", "dies1", "connection reset (exit code 12)", 1),
    ("copy", "rubbish", "�[31mred (exit code 3)", 0),
    ("copy", "wrong", "the checksum at b is", len(DATA) + 1),
    ("check", "fail", "the check at a failed: sh: the check is broken (exit code 1)", len(DATA)),
    ("check", "nothing", "the check at a failed: sh printed nothing", len(DATA)),
    ("check", "megabytes", "the check at a failed: sh printed more than 65536 bytes", len(DATA)),
]


@pytest.mark.parametrize(("action", "mode", "reason", "done"), WRONG)
def test_a_copy_that_fails_is_removed_and_told_with_the_reason(
    stores: Stores, action: str, mode: str, reason: str, done: int
) -> None:
    stores.breaks(action, mode)
    copies = stores.copies()
    copies.takes(TO_B)
    failed = last(told(copies, ev.CopyFailed), ev.CopyFailed)
    assert (failed.dataset, failed.site, failed.source, failed.done) == ("era5", "b", "a", done)
    assert reason in failed.reason
    assert failed.reason.isprintable() and len(failed.reason) < 800
    assert not stores.path("b").exists()
    assert stores.path("a").read_bytes() == DATA
    # It is not repeated, and can be decided anew.
    stores.breaks(action, "")
    assert refused(copies, TO_B) == ""
    told(copies, ev.DatasetCopied)
    assert stores.called().count("copy") == 2


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(DATA)))
def test_a_transfer_that_breaks_at_any_byte_leaves_nothing(stores: Stores, at: int) -> None:
    stores.breaks("copy", f"dies{at}")
    copies = stores.copies()
    copies.takes(TO_B)
    failed = last(told(copies, ev.CopyFailed), ev.CopyFailed)
    assert failed.done == at
    assert not stores.path("b").exists()
    copies.close()


def test_a_copy_that_hangs_is_ended_with_all_its_processes(stores: Stores) -> None:
    stores.breaks("copy", "hang")
    copies = stores.copies(stores.transfers(timeout=0.5))
    copies.takes(TO_B)
    pid = stores.reached("copy")
    failed = last(told(copies, ev.CopyFailed), ev.CopyFailed)
    assert failed.reason == "sh was ended after 0.5 s"
    until(gone(pid), what="the command is gone")


def test_what_a_command_leaves_in_the_background_does_not_hold_the_copy(stores: Stores) -> None:
    stores.breaks("copy", "background")
    copies = stores.copies()
    began = time.monotonic()
    copies.takes(TO_B)
    left = stores.reached("copy")
    told(copies, ev.DatasetCopied)
    assert time.monotonic() - began < 15
    live_commands.os.kill(left, 9)


def test_what_cannot_be_removed_is_said_and_counted(stores: Stores) -> None:
    stores.breaks("copy", "dies7")
    stores.breaks("remove", "fail")
    copies = stores.copies()
    copies.takes(TO_B)
    failed = last(told(copies, ev.CopyFailed), ev.CopyFailed)
    assert "; what is left could not be removed: sh: the remove is broken" in failed.reason
    (odd,) = copies.oddities()
    assert (odd.cluster, odd.count) == ("transfers", 1)
    assert odd.detail.startswith("era5 at b: ")


def test_the_end_of_the_daemon_ends_its_commands(stores: Stores) -> None:
    stores.breaks("copy", "hang")
    copies = stores.copies()
    copies.takes(TO_B)
    pid = stores.reached("copy")
    copies.close()
    assert gone(pid)()
    assert "remove" not in stores.called()


def test_a_command_that_is_not_there_fails_the_copy(stores: Stores) -> None:
    copies = stores.copies(stores.transfers(copy=("no-such-program", "{source}", "{target}")))
    copies.takes(TO_B)
    assert "no-such-program" in last(told(copies, ev.CopyFailed), ev.CopyFailed).reason


def test_without_a_check_the_end_of_the_command_counts(stores: Stores) -> None:
    stores.breaks("copy", "wrong")
    copies = stores.copies(stores.transfers("check", "size"))
    copies.takes(TO_B)
    events = told(copies, ev.DatasetCopied)
    assert [type(event) for event in events] == [ev.DatasetCopying, ev.DatasetCopied]


def test_copies_beyond_the_parallel_ones_wait_for_their_turn(stores: Stores) -> None:
    stores.breaks("copy", "half")
    sites = stores.sites(datasets=3)
    copies = stores.copies(stores.transfers("size", parallel=1), sites)
    for name in ("era5", "grid1", "grid2"):
        assert copies.takes(d.Copy(name, "b", "a"))
    stores.reached("copy-half")
    time.sleep(0.2)
    assert [event.dataset for event in copies.take(1.0)] == ["era5"]
    stores.go_on()
    found: list[ev.Event] = []
    until(
        lambda: found.extend(copies.take(2.0)) or sum(isinstance(e, ev.DatasetCopied) for e in found) == 3,
        what="all arrive",
    )


@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_rsync_copies_a_folder(stores: Stores) -> None:
    original = stores.path("a")
    original.unlink()
    (original / "deep").mkdir(parents=True)
    (original / "deep" / "one").write_bytes(DATA)
    copies = stores.copies(stores.transfers("check", "size", copy=("rsync", "-a", "{source}/", "{target}/")))
    copies.takes(TO_B)
    told(copies, ev.DatasetCopied)
    assert (stores.path("b") / "deep" / "one").read_bytes() == DATA


# ---------------------------------------------------------------------- refusals


REFUSED = [
    (d.Copy("nothing", "b", "a"), "there is no dataset 'nothing'"),
    (d.Copy("$(reboot)", "b", "a"), "there is no dataset '$(reboot)'"),
    (d.Copy("../era5", "b", "a"), "there is no dataset '../era5'"),
    (d.Copy("era5", "nowhere", "a"), "there is no store at 'nowhere'"),
    (d.Copy("era5", "b", "c"), "c does not have dataset era5"),
    (d.Copy("era5", "a", "a"), "a has dataset era5 already"),
    (d.Drop("era5", "b"), "b does not have dataset era5"),
    (d.Drop("nothing", "b"), "b does not have dataset nothing"),
    (d.Drop("era5", "a"), "dataset era5 was at a from the beginning and stays there"),
]


@pytest.mark.parametrize(("decision", "why"), REFUSED)
def test_what_cannot_be_is_refused_and_no_command_runs(
    stores: Stores, decision: d.Decision, why: str
) -> None:
    copies = stores.copies()
    assert refused(copies, decision) == why
    assert stores.called() == []


def test_the_room_and_the_copies_of_a_store_are_bounded(stores: Stores) -> None:
    stores.breaks("copy", "half")
    sites = stores.sites(datasets=4, copies=2, capacity=len(DATA) * 5)
    copies = stores.copies(sites=sites)
    assert refused(copies, d.Copy("era5", "b", "a")) == ""
    assert refused(copies, d.Copy("era5", "b", "a")) == "dataset era5 is on its way to b already"
    assert refused(copies, d.Copy("grid1", "b", "a")) == ""
    assert refused(copies, d.Copy("grid2", "b", "a")) == "2 copies are on their way to b, as many as may be"
    assert refused(copies, d.Copy("grid2", "c", "a")) == ""


def test_a_full_store_takes_no_more(stores: Stores) -> None:
    stores.breaks("copy", "half")
    size = len(DATA)
    copies = stores.copies(sites=stores.sites(datasets=2, capacity=size * 3 // 2))
    assert refused(copies, TO_B) == ""
    why = f"the store of b has room for {size * 3 // 2 - size} bytes, and dataset grid1 has {size}"
    assert refused(copies, d.Copy("grid1", "b", "a")) == why


def test_without_commands_or_paths_nothing_is_copied(stores: Stores) -> None:
    none = stores.copies(Transfers())
    assert none.capabilities == frozenset()
    assert "expected transfers.copy and sites with stores" in refused(none, TO_B)
    no_path = stores.copies(stores.transfers(stores={"a": str(stores.root / "a"), "b": ""}))
    assert refused(no_path, TO_B) == "b has no path: clusters.b.site.store.path"
    stays = stores.copies(stores.transfers("remove"))
    assert stays.capabilities == {d.Copy}


# ---------------------------------------------------------------------- removals


def with_copy(stores: Stores, **more: object) -> object:
    copies = stores.copies(**more)  # type: ignore[arg-type]
    copies.takes(TO_B)
    told(copies, ev.DatasetCopied)
    return copies


def reads(job: str) -> ev.JobSubmitted:
    return ev.JobSubmitted(0.0, JobDescription(job, 0.0, Request(1, 60), attributes={"data": "era5"}))


def test_a_copy_is_removed_and_told_as_lost(stores: Stores) -> None:
    copies = with_copy(stores)
    assert copies.takes(d.Drop("era5", "b", "room is needed"))
    assert last(told(copies, ev.DatasetLost), ev.DatasetLost).reason == "room is needed"
    assert not stores.path("b").exists()
    assert refused(copies, TO_B) == ""


def test_a_copy_that_a_job_reads_or_another_copy_comes_from_stays(stores: Stores) -> None:
    copies = with_copy(stores)
    copies.note([reads("b:1"), reads("c:2")])
    start = d.Start("b:1", ())
    assert refused(copies, start) == ""
    assert refused(copies, d.Drop("era5", "b")) == "job b:1 reads dataset era5 at b"
    copies.note([ev.JobStarted(1.0, "b:1", ()), ev.JobEnded(2.0, "b:1", "completed")])
    stores.breaks("copy", "half")
    copies.takes(d.Copy("era5", "c", "b"))
    assert refused(copies, d.Drop("era5", "b")) == "dataset era5 is being copied from b"


def test_no_job_starts_and_no_copy_is_made_where_data_is_being_removed(stores: Stores) -> None:
    copies = with_copy(stores)
    stores.breaks("remove", "gate")
    copies.note([reads("b:1"), reads("a:2")])
    copies.takes(d.Drop("era5", "b"))
    stores.reached("remove")
    assert refused(copies, d.Start("b:1", ())) == "job b:1 reads era5, which is being removed from b"
    assert refused(copies, d.Start("a:2", ())) == ""
    assert refused(copies, d.Copy("era5", "c", "b")) == "dataset era5 is being removed from b"
    assert refused(copies, d.Drop("era5", "b")) == "dataset era5 is being removed from b already"
    stores.go_on()
    told(copies, ev.DatasetLost)


@pytest.mark.parametrize("check", [True, False])
def test_a_removal_that_fails_keeps_only_what_is_whole(stores: Stores, check: bool) -> None:
    copies = with_copy(stores, transfers=stores.transfers() if check else stores.transfers("check"))
    stores.breaks("remove", "fail")
    copies.takes(d.Drop("era5", "b"))
    if check:
        failed = last(told(copies, ev.DecisionFailed), ev.DecisionFailed)
        assert failed.message.startswith("it could not be removed: sh: the remove is broken")
        assert refused(copies, TO_B) == "b has dataset era5 already"
    else:
        lost = last(told(copies, ev.DatasetLost), ev.DatasetLost)
        assert lost.reason.startswith("it could not be removed: ")
    assert copies.oddities()[0].what == "a copy could not be removed"


# ---------------------------------------------------------------------- what earlier runs left


def test_a_copy_of_an_earlier_run_is_checked_and_told_again(stores: Stores) -> None:
    stores.path("b").write_bytes(DATA)
    copies = stores.copies(known=[THERE])
    assert copies.recovering
    (copied,) = told(copies, ev.DatasetCopied)
    assert copied == ev.DatasetCopied(5.0, "era5", "b")
    assert not copies.recovering
    assert refused(copies, TO_B) == "b has dataset era5 already"
    assert stores.called() == ["check", "check"]


@pytest.mark.parametrize("found", [None, b"", DATA[:-1], DATA + b"x"])
@pytest.mark.parametrize("checked", ["check", "size", "neither"])
def test_a_copy_that_is_not_there_any_more_is_not_told(
    stores: Stores, found: bytes | None, checked: str
) -> None:
    if found is not None:
        stores.path("b").write_bytes(found)
    without = {"check": (), "size": ("check",), "neither": ("check", "size")}[checked]
    copies = stores.copies(stores.transfers(*without), known=[THERE])
    (event,) = _first(copies)
    believed = checked == "neither" or (checked == "size" and bool(found))
    assert isinstance(event, ev.DatasetCopied if believed else ev.DatasetLost)
    assert believed or not stores.path("b").exists()


def _first(copies: object) -> list[ev.Event]:
    found: list[ev.Event] = []
    until(lambda: found.extend(copies.take(5.0)) or bool(found), what="something is told")  # type: ignore
    return found


@pytest.mark.parametrize("state", ["copying", "dropping"])
@pytest.mark.parametrize("arrived", [None, DATA[:9], DATA])
def test_what_was_on_its_way_is_removed(stores: Stores, state: str, arrived: bytes | None) -> None:
    if arrived is not None:
        stores.path("b").write_bytes(arrived)
    copies = stores.copies(known=[KnownReplica("era5", "b", state, "a")])  # type: ignore[arg-type]
    copies.take(1.0)
    assert refused(copies, TO_B) in ("dataset era5 is on its way to b already", "")
    (event,) = _first(copies)
    if state == "copying":
        why = "headway ended while the copy was on its way"
        assert event == ev.CopyFailed(5.0, "era5", "b", "a", len(arrived or b""), why)
    else:
        assert event == ev.DatasetLost(5.0, "era5", "b", "its removal is completed")
    assert not stores.path("b").exists()
    assert refused(copies, TO_B) == ""


@pytest.mark.parametrize(
    "known",
    [
        KnownReplica("gone", "b", "there"), KnownReplica("era5", "gone", "copying", "a"),
        KnownReplica("era5", "a", "copying", "b"), KnownReplica("era5", "a", "dropping"),
    ],
)  # fmt: skip
def test_originals_and_what_is_not_configured_any_more_stay(stores: Stores, known: KnownReplica) -> None:
    stores.path("b", "gone").write_bytes(DATA)
    copies = stores.copies(known=[known])
    assert copies.take(1.0) == []
    assert not copies.recovering
    assert stores.called() == []
    assert stores.path("a").exists() and stores.path("b", "gone").exists()


def test_while_the_original_cannot_be_checked_its_copy_is_kept_and_not_told(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway_adapters.federation import live_copies

    monkeypatch.setattr(live_copies, "_FIRST_PAUSE", 0.05)
    stores.path("b").write_bytes(DATA)
    stores.breaks("check", "fail")
    copies = stores.copies(known=[THERE])
    until(lambda: copies.take(1.0) or stores.called().count("check") >= 3, what="it is tried again")
    assert stores.path("b").exists() and copies.recovering
    assert refused(copies, TO_B) == "dataset era5 is on its way to b already"
    stores.breaks("check", "")
    told(copies, ev.DatasetCopied)


def test_a_run_that_only_watches_changes_nothing(stores: Stores) -> None:
    stores.path("b").write_bytes(DATA[:5])
    stores.path("c").write_bytes(DATA[:5])
    known = [KnownReplica("era5", "b", "copying", "a"), KnownReplica("era5", "c", "there")]
    copies = stores.copies(stores.transfers(read_only=True), known=known)
    found: list[ev.Event] = []
    until(lambda: found.extend(copies.take(5.0)) or not copies.recovering, what="all is looked at")
    assert found == []
    assert stores.path("b").exists() and stores.path("c").exists()
    assert "remove" not in stores.called()
