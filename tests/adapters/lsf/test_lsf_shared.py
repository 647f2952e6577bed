"""LSF's shared resources: how much there is, who asks for it, when it comes back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from structlog.testing import capture_logs
from test_lsf_adapter_unit import PretendedLsf, Told, adapter, done, events
from waiting import HANG

from headway import events as ev
from headway_adapters.lsf import LsfAdapter
from headway_adapters.lsf.resreq import Host, Requirements
from headway_adapters.lsf.shared import Instance, Shared, instances, shared
from headway_adapters.transport import Result

ALL = frozenset({"lsfa", "lsfb", "lsfc"})
#: As volclava 2.2 writes them.
STATIC = """RESOURCE                                VALUE       LOCATION
matlab                                      3       lsfa lsfb lsfc
half                                      2.0       lsfa lsfb
disk                                        5       lsfa
disk                                        5       lsfb
disk                                        4       lsfc
pair                                        1       lsfa lsfb
pair                                        1       lsfc
licence                                   yes       lsfa
"""
DYNAMIC = """RESOURCE                                VALUE       LOCATION
fluent                                    4.7       lsfa lsfb
                                                    lsfc
"""
HERE = shared(STATIC, DYNAMIC)
HOSTS = {name: Host(name, "linux", "", 4) for name in sorted(ALL)}


def test_the_listings() -> None:
    found = instances(STATIC)
    assert found["half"] == [Instance(2, frozenset({"lsfa", "lsfb"}))]
    assert [one.amount for one in found["disk"]] == [5, 5, 4]
    assert "licence" not in found
    assert instances("ls_sharedresourceinfo: No shared resources\n") == {}
    assert instances("  lsfa lsfb\nnonsense\nz 1e999 lsfa\n") == {
        "z": [Instance(1 << 53, frozenset({"lsfa"}))]
    }


@pytest.mark.parametrize("value", ["-", "nan", "-1"])
def test_of_an_instance_without_a_number_there_is_nothing(value: str) -> None:
    assert instances(f"x {value} lsfa\n") == {"x": [Instance(0, frozenset({"lsfa"}))]}
    assert shared("", f"x {value} lsfa lsfb\n").licences["x"].amount == 0


def test_one_instance_of_two_is_not_the_clusters_because_the_other_has_no_number() -> None:
    assert shared("", "pair 4 lsfa lsfb\npair - lsfc\n") == Shared()
    disk = shared("disk 5 lsfa\ndisk - lsfb\n", "")
    assert (disk.licences, disk.at("lsfa"), disk.at("lsfb")) == ({}, (("disk", 5),), ())
    assert Requirements(HOSTS, disk).read("rusage[disk=1]").gres == (("disk", 1),)
    # What an elim measures on each host is not the hosts', however the other listing shows it.
    assert shared("load - lsfa\nload - lsfb\n", "load 1 lsfa\nload 2 lsfb\n") == Shared()


def test_what_is_not_listed_any_more_is_known_with_nothing() -> None:
    gone = shared("", "", HERE)
    assert gone.licences["matlab"] == Instance(0, ALL)
    assert gone.at("lsfa") == ()
    asked = Requirements(HOSTS, gone).read("rusage[matlab=1:disk=2]")
    assert (asked.licences, asked.gres, asked.notes) == ((("matlab", 1, 0.0),), (("disk", 2),), ())
    assert shared(STATIC, DYNAMIC, gone) == HERE
    assert "matlab" not in shared("matlab 1 lsfa lsfb\nmatlab 2 lsfc\n", "", HERE).licences


def test_what_is_counted_for_the_cluster_and_what_for_a_host() -> None:
    assert {name: one.amount for name, one in HERE.licences.items()} == {"matlab": 3, "half": 2, "fluent": 4}
    assert HERE.licences["fluent"].hosts == ALL
    assert HERE.at("lsfc") == (("disk", 4),)
    assert shared("", "") == Shared()


@pytest.mark.parametrize(
    ("text", "licences", "gres", "excluded"),
    [
        ("rusage[matlab=2]", (("matlab", 2, 0.0),), (), ()),
        ("rusage[matlab=1.5]", (("matlab", 2, 0.0),), (), ()),
        ("rusage[matlab=0]", (), (), ()),
        ("rusage[matlab=1:fluent=3]", (("fluent", 3, 0.0), ("matlab", 1, 0.0)), (), ()),
        ("rusage[mem=20,matlab=1:duration=2h:decay=1]", (("matlab", 1, 7200.0),), (), ()),
        ("rusage[matlab=1:duration=5]", (("matlab", 1, 300.0),), (), ()),
        ("rusage[half=1]", (("half", 1, 0.0),), (), ("lsfc",)),
        ("select[matlab>0] rusage[disk=3]", (), (("disk", 3),), ()),
        ("rusage[matlab=99999999999999999999]", (("matlab", 1 << 53, 0.0),), (), ()),
    ],
)
def test_what_is_asked_for(
    text: str,
    licences: tuple[tuple[str, int, float], ...],
    gres: tuple[tuple[str, int], ...],
    excluded: tuple[str, ...],
) -> None:
    asked = Requirements(HOSTS, HERE).read(text)
    assert (asked.licences, asked.gres, asked.excluded) == (licences, gres, excluded)
    assert (asked.notes, asked.unfit) == ((), "")


def test_what_cannot_be_kept_is_said() -> None:
    assert Requirements(HOSTS, HERE).read("rusage[pair=1]").notes == (
        "requirement rusage[pair=1] is not kept by headway",
    )


class WithShared(PretendedLsf):
    """``lists`` is what it answers about shared resources."""

    def share(self, **lists: str | None) -> None:
        def answer(argv: tuple[str, ...]) -> Result | None:
            if argv[1:] != ("-s",):
                return None
            listed = lists.get(argv[0], "")
            if listed is None:
                return done(argv, rc=1, stderr="something broke")
            return done(argv, listed) if listed else done(argv, rc=255, stderr="x: No shared resources")

        self.answer = answer


def row(name: str, amount: int | str) -> str:
    return f"RESOURCE VALUE LOCATION\n{name} {amount} h1 h2\n"


def asks(words: str, **more: str) -> Told:
    return Told(asked=f", Requested Resources <rusage[{words}]>", **more)


def told_until(one: LsfAdapter, kind: type[ev.Event]) -> list[Any]:
    """What is told until one of this kind is."""
    told: list[Any] = []
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        told += events(one, 0.1)
        if any(isinstance(event, kind) for event in told):
            return told
    raise AssertionError(f"no {kind.__name__} is told; told were {told}")


def totals(told: list[Any]) -> dict[str, int]:
    return {event.licence: event.total for event in told if isinstance(event, ev.LicencesChanged)}


def next_total(one: LsfAdapter) -> int:
    return next(iter(totals(told_until(one, ev.LicencesChanged)).values()))


def test_a_job_takes_its_licences_and_others_have_some_of_them() -> None:
    far = asks("matlab=2", stat="RUN", hosts="h1", queue="elsewhere")
    lsf = WithShared({"5": asks("matlab=1"), "6": far})
    lsf.share(lshosts=row("matlab", 5))
    with adapter(lsf) as one:
        assert dict(one.describe().licences) == {"matlab": 3}
        (came,) = [e.job for e in events(one) if isinstance(e, ev.JobSubmitted) and e.job.id == "5"]
        assert came.request.licences == (("matlab", 1),)
        lsf.share(lshosts=row("matlab", 4))
        assert next_total(one) == 2


def test_silence_is_no_news_of_licences() -> None:
    lsf = WithShared({"5": asks("matlab=1")})
    lsf.share(lshosts=row("matlab", 5))
    with capture_logs() as logs, adapter(lsf) as one:
        one.describe()
        lsf.share(lshosts=None)
        assert not [e for e in events(one) if isinstance(e, ev.LicencesChanged)]
        lsf.share()
        assert next_total(one) == 0
    assert any("stay as they were" in str(log.get("what")) for log in logs)


@pytest.mark.parametrize(("lasts", "total"), [("duration=2h", 1), ("duration=1s", 4)])
def test_what_a_job_gave_back_while_it_runs_is_there_again(lasts: str, total: int) -> None:
    lsf = WithShared({"6": asks(f"fluent=3:{lasts}", stat="RUN", hosts="h1")})
    lsf.share(lsload=row("fluent", 1))
    with adapter(lsf) as one:
        assert dict(one.describe().licences) == {"fluent": total}


@pytest.mark.parametrize(
    "listed", [row("fluent", "-"), row("other", 1), ""], ids=["dash", "not listed", "none"]
)
def test_who_asks_for_what_has_no_number_now_keeps_waiting(listed: str) -> None:
    lsf = WithShared({"5": asks("fluent=1")})
    lsf.share(lsload=row("fluent", 1))
    with adapter(lsf) as one:
        one.describe()
        told_until(one, ev.JobSubmitted)
        lsf.share(lsload=listed)
        told = told_until(one, ev.LicencesChanged)
    assert totals(told)["fluent"] == 0
    assert not [event for event in told if isinstance(event, ev.JobChanged)]


def test_of_what_nobody_asks_for_nothing_is_told() -> None:
    lsf = WithShared({"5": asks("matlab=1")})
    lsf.share(lshosts=row("matlab", 5), lsload=row("scratch", 1))
    with adapter(lsf) as one:
        assert dict(one.describe().licences) == {"matlab": 5}
        lsf.share(lshosts=row("matlab", 4), lsload=row("scratch", 2))
        told = told_until(one, ev.LicencesChanged)
        assert totals(told) == {"matlab": 4}
        lsf.jobs["6"] = asks("scratch=1")
        told = told_until(one, ev.LicencesChanged)
    assert totals(told) == {"scratch": 2}
    assert [event.job.id for event in told if isinstance(event, ev.JobSubmitted)] == ["6"]


def test_what_was_told_before_is_told_on_when_nobody_asks_any_more() -> None:
    lsf = WithShared({"5": asks("matlab=1")})
    lsf.share(lshosts=row("matlab", 5))
    with adapter(lsf) as one:
        one.describe()
        told_until(one, ev.JobSubmitted)
        del lsf.jobs["5"]
        told_until(one, ev.JobEnded)
        lsf.share(lshosts=row("matlab", 4))
        assert next_total(one) == 4
