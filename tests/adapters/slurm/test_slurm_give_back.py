"""Giving back to Slurm, command by command: few for many jobs; an interruption anywhere loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pretended import result
from pretended_slurm import PretendedSlurm
from test_slurm_reader import NOW, pending

from headway.adapter import Given
from headway_adapters.slurm import SlurmOptions, marker
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.give_back import SlurmGivingBack
from headway_adapters.transport import Result


class Slurm(PretendedSlurm):
    """Slurm, in which a change does what is told to it; it goes away after so many changes."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        super().__init__()
        self.jobs = [dict(job) for job in jobs]
        self.ran: list[tuple[str, ...]] = []
        self.left = 10**9

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        if argv[1] not in ("update", "release", "uhold"):
            return super().run(argv, timeout)
        if self.left <= 0:
            return Result(tuple(argv), 1, b"", "Unable to contact slurm controller", 0.0)
        self.left -= 1
        self.ran.append(tuple(argv))
        words = dict(word.partition("=")[::2] for word in argv[2:])
        named = words.pop("JobId") if argv[1] == "update" else argv[2]
        for job in self.jobs:
            if str(job["job_id"]) in named.split(","):
                self._change(job, argv[1], words)
        return result(tuple(argv), "")

    def _change(self, job: dict[str, Any], verb: str, words: dict[str, str]) -> None:
        if verb == "release":
            job |= {"priority": 5, "state_reason": "None"}
        if "Priority" in words:
            job |= {"priority": 0, "state_reason": "JobHeldAdmin"}
        if "AdminComment" in words:
            job["admin_comment"] = words["AdminComment"]
        if "ReqNodeList" in words:
            job["required_nodes"] = words["ReqNodeList"]


def give_back(slurm: Slurm, *, dry_run: bool = False) -> list[Given]:
    giving = SlurmGivingBack(SlurmOptions(partitions=("batch",)), dry_run=dry_run)
    giving.client = SlurmClient(SlurmOptions(partitions=("batch",)), read_only=dry_run, transport=slurm)
    giving._commands._client = giving.client
    return list(giving.give_back(("batch",), lambda: True))


def held(number: int, **fields: Any) -> dict[str, Any]:
    return pending(**{"job_id": number, "admin_comment": "headway:held;nodes=any", "priority": 0, **fields})


def new(number: int) -> dict[str, Any]:
    """As the submit filter lets a job in."""
    return held(number, admin_comment="headway:new;nodes=any", state_reason="JobHeldUser")


def pinned(number: int, **fields: Any) -> dict[str, Any]:
    pin = marker.Pin(nodes=("node1",), placement=(("node1", 1),))
    return held(number, admin_comment=pin.text(), required_nodes="node1", **fields)


def test_many_jobs_take_few_commands() -> None:
    slurm = Slurm(*(held(number) for number in range(100, 200)), *(new(number) for number in range(200, 210)))
    given = give_back(slurm)
    assert len(given) == 110 and {one.result for one in given} == {"given back"}
    assert len(slurm.ran) <= 6
    assert {(job["priority"], job["admin_comment"]) for job in slurm.jobs} == {(5, "")}


def test_jobs_are_released_in_the_order_of_their_numbers() -> None:
    """With priority/basic Slurm starts jobs in the order in which they were released."""
    first, second = pinned(99), pinned(102)
    slurm = Slurm(held(103), second, new(101), held(100), first, held(1000))
    give_back(slurm)
    released = [job for argv in slurm.ran if argv[1] == "release" for job in argv[2].split(",")]
    assert released == ["99", "100", "101", "102", "103", "1000"]


def test_a_dry_run_changes_nothing_and_says_the_same() -> None:
    jobs = [held(100), new(101), pinned(102)]
    slurm = Slurm(*jobs)
    said = give_back(slurm, dry_run=True)
    assert not slurm.ran
    assert said == give_back(slurm) and len(said) == 3


@pytest.mark.parametrize("after", range(12))
def test_wherever_it_is_interrupted_the_next_time_gives_back_the_rest(after: int) -> None:
    """slurmctld may go away between any two commands, or the command may be killed."""
    slurm = Slurm(held(100), new(101), pinned(102), pinned(103, priority=5, state_reason="Resources"))
    slurm.left = after
    give_back(slurm)
    slurm.left = 10**9
    give_back(slurm)
    for job in slurm.jobs:
        assert (job["priority"], job["admin_comment"]) == (5, ""), job["job_id"]
        assert not job["required_nodes"]
    assert give_back(slurm) == []


def test_holds_of_users_and_administrators_stay() -> None:
    theirs = held(100, admin_comment="", state_reason="JobHeldUser")
    admins = held(101, admin_comment="hold: ask Ann")
    users = held(102, comment="mine headway:user-hold")
    slurm = Slurm(theirs, admins, users)
    assert give_back(slurm) == []
    assert [argv for argv in slurm.ran] == [("scontrol", "uhold", "102")]
    assert NOW and {job["priority"] for job in slurm.jobs} == {0}


def test_what_slurm_does_not_do_is_said() -> None:
    class Refuses(Slurm):
        def run(self, argv: Sequence[str], timeout: float) -> Result:
            if argv[1] == "release":
                said = f"Access/permission denied for job {argv[2]}"
                return Result(tuple(argv), 1, b"", said, 0.0)
            return super().run(argv, timeout)

    (one,) = give_back(Refuses(held(100)))
    assert one.result == "failed" and "permission denied" in one.said
