"""Licences on Slurm: what there is of them, who has them, and what others have whom we do not see."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pretended import events, result
from pretended_slurm import FIXTURES, RECORDS, PretendedSlurm
from structlog.testing import capture_logs
from waiting import HANG

from headway import events as ev
from headway_adapters.slurm import SlurmAdapter, SlurmOptions, reader
from headway_adapters.transport import Result

RECORDED = (FIXTURES / "show-licenses-oneline.txt").read_text()
ASKED = ("scontrol", "-o", "show", "licenses")
HELD = {**RECORDS[15], "state_reason": "JobHeldAdmin", "admin_comment": "headway:held"}


class WithLicences(PretendedSlurm):
    """``says`` is what Slurm answers about licences."""

    def __init__(self, *jobs: dict[str, Any], says: str = RECORDED) -> None:
        super().__init__()
        self.jobs = list(jobs)
        self.says: Result | str = says

    def listed(self, argv: tuple[str, ...]) -> Result:
        if argv[-1] == "licenses":
            return result(argv, self.says) if isinstance(self.says, str) else self.says
        return super().listed(argv)


def changes(one: SlurmAdapter) -> dict[str, int]:
    """The next amounts that are told."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        told = [event for event in events(one) if isinstance(event, ev.LicencesChanged)]
        if told:
            return {event.licence: event.total for event in told}
    raise AssertionError("no other amounts are told")


def watching(slurm: PretendedSlurm) -> SlurmAdapter:
    options = SlurmOptions(partitions=("batch",), poll_interval=0.05, accounting="no")
    return SlurmAdapter(options, read_only=True, transport=slurm)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("matlab", (("matlab", 1),)),
        ("matlab:2,fluent", (("fluent", 1), ("matlab", 2))),
        ("fluent:1,matlab:1;matlab:2", (("fluent", 1), ("matlab", 3))),
        ("matlab@flex:3", (("matlab@flex", 3),)),
        ("matlab*2", (("matlab", 2),)),
        ("matlab:0", ()),
        ("matlab:1|fluent:1", None),
        ("matlab:-1", None),
        (":3", None),
    ],
)
def test_what_is_asked_for(text: str, found: tuple[tuple[str, int], ...] | None) -> None:
    assert reader.licences(text) == found


def test_what_there_is() -> None:
    assert reader.read_licences(RECORDED) == (
        {"fluent": 2, "matlab": 1, "new": 5}, {"fluent": 1, "matlab": 3, "new": 0},
    )  # fmt: skip
    assert reader.read_licences("No licenses configured in Slurm.\n") == ({}, {})
    remote = (
        "LicenseName=matlab@flex Total=10 Used=2 Free=5 Reserved=0 Remote=yes LastConsumed=5 LastDeficit=3 "
        "LastUpdate=2026-11-23T01:00:00\nLicenseName=odd Total=many Used=0\n"
    )
    assert reader.read_licences(remote) == ({"matlab@flex": 7}, {"matlab@flex": 2})


def test_a_job_takes_its_licences_and_one_that_leaves_a_choice_waits() -> None:
    slurm = WithLicences({**HELD, "licenses": "new:2,fluent"}, says=RECORDED)
    with watching(slurm) as one:
        assert dict(one.describe().licences) == {"fluent": 2, "matlab": 1, "new": 5}
        (came,) = (e for e in events(one) if isinstance(e, ev.JobSubmitted))
        assert came.job.request.licences == (("fluent", 1), ("new", 2)) and not came.job.held
        slurm.jobs = [{**HELD, "licenses": "new:2|fluent:1"}]
        held: list[ev.JobHeld] = []
        end = time.monotonic() + HANG
        while not held and time.monotonic() < end:
            held = [e for e in events(one) if isinstance(e, ev.JobHeld)]
    assert held[0].reason == "its licences 'new:2|fluent:1' cannot be expressed in headway"


def test_what_others_have_is_not_there_for_us() -> None:
    """A job that runs in a partition that shares no node with ours, and one in ours."""
    ours = {**RECORDS[7], "licenses": "new:1"}
    far = {**RECORDS[7], "job_id": 900, "partition": "fg", "licenses": "new:2,fluent:5"}
    slurm = WithLicences(ours, far)
    with watching(slurm) as one:
        assert dict(one.describe().licences) == {"fluent": 0, "matlab": 1, "new": 3}
        events(one)
        slurm.jobs = [ours]
        assert changes(one) == {"fluent": 2, "new": 5}


def test_other_amounts_are_told_and_silence_is_not() -> None:
    slurm = WithLicences(HELD)
    with capture_logs() as logs, watching(slurm) as one:
        one.describe()
        events(one)
        slurm.says = result(("scontrol",), rc=1, stderr="slurm_load_licenses error")
        asked = len(slurm.said)
        end = time.monotonic() + HANG
        while slurm.said[asked:].count(ASKED) < 3 and time.monotonic() < end:
            assert events(one) == []
        slurm.says = "LicenseName=matlab Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"
        assert changes(one) == {"fluent": 0, "matlab": 4, "new": 0}
        slurm.says = "No licenses configured in Slurm.\n"
        assert changes(one) == {"matlab": 0}
    odd = [str(log.get("what")) for log in logs]
    assert sum("'matlab': 3 are in use and there are only 1" in what for what in odd) == 1
    assert sum("licences stay as they were" in what for what in odd) == 1


def test_a_reservation_keeps_what_others_do_not_have_of_it_yet() -> None:
    far = {**RECORDS[7], "job_id": 900, "partition": "fg", "licenses": "matlab:1", "resv_name": "lic1"}
    slurm = WithLicences(far, says="LicenseName=matlab Total=4 Used=1 Free=3 Reserved=2 Remote=no\n")
    with watching(slurm) as one:
        told = one.describe()
    assert told.licences == (("matlab", 3),)
    (kept,) = (r for r in told.reservations if r.id == "lic1")
    assert (kept.licences, kept.nodes, kept.users) == ((("matlab", 1),), (), ("bob",))
