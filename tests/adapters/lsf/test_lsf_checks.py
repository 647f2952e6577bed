"""What ``headway check`` finds on an LSF, and what it says to do."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from recorded_lsf import at, output

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.lsf import LsfAdapter
from headway_adapters.transport import Result, Transport

USER = getpass.getuser()
Answer = Callable[[tuple[str, ...]], Result | str | None]


class RecordedLsf(Transport):
    """The recorded volclava, with some answers different."""

    user = USER

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        words = tuple(argv)
        said = self.answer(words)
        if isinstance(said, Result):
            return said
        if said is None:
            names = {
                "lsid": "lsid",
                "bqueues": "bqueues_long",
                "bhosts": "bhosts_wide",
                "bjobs": "bjobs_all_wide",
            }
            said = output(names[words[0]]) if words[0] in names and words[1:] != ("-V",) else ""
        whole = said if not said or said.endswith("\n") else said + "\n"
        return Result(argv=words, rc=0, stdout=whole.encode(), stderr="", seconds=0.01)


def checked(answer: Answer = lambda argv: None, **options: Any) -> dict[str, Check]:
    transport = RecordedLsf(answer)
    settings = {"queues": ("normal",), **options}
    with LsfAdapter(settings, read_only=True, transport=transport, clock=lambda: at(6, 39, 10)) as one:
        return {check.subject: check for check in one.check()}


def fails(found: dict[str, Check]) -> dict[str, tuple[str, str]]:
    return {subject: (check.detail, check.remedy) for subject, check in found.items() if not check.ok}


def silence(argv: tuple[str, ...]) -> Result:
    return Result(argv=argv, rc=124, stdout=b"", stderr="", seconds=15.0, timed_out=True)


def test_the_recorded_cluster_is_in_order() -> None:
    found = checked(lambda argv: f"LSF administrators: root {USER}\n" if argv[0] == "lsclusters" else None)
    assert fails(found) == {}
    assert list(found) == [
        "lsf's commands", "lsf", "this LSF can", "planned starts", "queue normal", "privilege",
        "all users' jobs", "clock",
    ]  # fmt: skip
    assert found["planned starts"].detail.startswith("bjobs shows none")
    assert found["lsf"].detail == "volclava 2.2, cluster volclava"
    assert found["queue normal"].detail == "Open:Inact_Adm, hosts all"
    assert "Reserve: brsvadd is IBM Spectrum LSF's" in found["this LSF can"].detail
    assert found["clock"].detail == "the newest job was submitted 70 s ago by LSF's clock"


def test_no_commands() -> None:
    def answer(argv: tuple[str, ...]) -> None:
        raise Failure("the program 'lsid' is not installed (looked in /opt/lsf/bin)")

    detail, remedy = fails(checked(answer))["lsf's commands"]
    assert "looked in /opt/lsf/bin" in detail
    assert "cluster.options.bin_dir" in remedy and "cluster.options.environment" in remedy


def test_a_lim_that_is_down() -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv == ("lsid",):
            return Result(argv=argv, rc=255, stdout=b"", stderr="ls_getclustername: LIM is down", seconds=0.1)
        return None

    found = checked(answer)
    assert list(fails(found)) == ["lsf"] and len(found) == 2
    assert found["lsf"].detail == "lsid: ls_getclustername: LIM is down"
    assert "LSF_ENVDIR" in found["lsf"].remedy


def test_an_mbatchd_that_is_down() -> None:
    found = checked(
        lambda argv: silence(argv) if argv[0] in ("bqueues", "bjobs") and argv[1:] != ("-V",) else None
    )
    assert fails(found) == {
        "mbatchd": (
            "bqueues -l: bqueues did not answer within 15 s",
            "start mbatchd (badmin mbdrestart), or wait for it",
        )
    }


@pytest.mark.parametrize(
    ("status", "detail", "remedy"),
    [
        ("Open:Active", "LSF starts the queue's jobs by itself", "badmin qinact normal"),
        ("Open:Inact_Win", "its run window is closed", "badmin qinact normal"),
    ],
)
def test_a_queue_that_lsf_starts_jobs_of(status: str, detail: str, remedy: str) -> None:
    text = output("bqueues_long").replace("Open:Inact_Adm", status)
    found = checked(lambda argv: text if argv == ("bqueues", "-l") else None)
    said = fails(found)["queue normal"]
    assert detail in said[0] and remedy in said[1]
    assert found["queue normal"].driving, "to watch, LSF keeps its queues"


def test_limits_of_slots_that_brun_does_not_keep_are_said() -> None:
    """The row is a volclava 2.2's, of a queue with QJOB_LIMIT=20 and UJOB_LIMIT=2."""
    text = output("bqueues_long").replace("Open:Inact_Adm    -    -", "Open:Inact_Adm   20    2")
    queue = checked(lambda argv: text if argv == ("bqueues", "-l") else None)["queue normal"]
    assert queue.ok
    assert queue.detail.endswith(
        "brun does not keep the queue's limits (MAX 20, JL/U 2): enable the plugin limits"
    )


def test_a_queue_that_is_not_there() -> None:
    found = checked(queues=("normal", "night"))
    assert not found["queue night"].driving
    said = fails(found)
    assert said == {"queue night": ("does not exist; known: normal", "correct cluster.options.queues")}


def of_queue(names: str, queue: str = "normal") -> str:
    """The recorded queue with these administrators, and another that everybody here administers."""
    other = f"\nQUEUE: other\nPRIO NICE STATUS\n 30 20 Open:Active\nADMINISTRATORS:  {USER} \n"
    return output("bqueues_long") + (f"ADMINISTRATORS:  {names} \n" if names else "") + other


def privilege(queue: str, cluster: str | None = None, groups: str = "") -> Check:
    """What is said of a user who is not root; ``cluster``: what lsclusters says, None: there is none."""

    def answer(argv: tuple[str, ...]) -> Result | str | None:
        if argv[0] == "lsclusters":
            if cluster is None:
                raise Failure("the program 'lsclusters' is not installed")
            return cluster
        return {("bqueues", "-l"): queue, ("bugroup", "-w"): groups}.get(argv)

    return checked(answer)["privilege"]


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    """This test's user is not root."""
    monkeypatch.setattr(RecordedLsf, "user", "headway", raising=False)
    monkeypatch.setitem(globals(), "USER", "headway")


@pytest.mark.usefixtures("ordinary")
def test_an_ordinary_user_is_told_what_to_do() -> None:
    found = privilege(of_queue("boss"), "LSF administrators: lsfadmin\n")
    assert (found.ok, found.known) == (False, True)
    assert found.detail == "headway is not among the administrators of normal (boss, lsfadmin)"
    assert "lsb.queues" in found.remedy
    # Another queue's administrators are of no use.
    assert not privilege(of_queue(""), "LSF administrators: lsfadmin\n").ok


@pytest.mark.usefixtures("ordinary")
def test_a_privilege_that_cannot_be_known_is_not_said_to_be_there() -> None:
    for queue in (of_queue(""), of_queue("boss")):
        found = privilege(queue)
        assert (found.ok, found.known) == (True, False)
        assert found.detail.endswith("the administrators of the cluster are not known here")
        assert "ADMINISTRATORS = headway" in found.remedy


@pytest.mark.usefixtures("ordinary")
def test_an_administrator_of_the_queue_of_the_cluster_or_by_a_group() -> None:
    of_the_queue = privilege(of_queue("boss headway"))
    assert (of_the_queue.ok, of_the_queue.known, of_the_queue.detail) == (
        True, True, "headway administers normal"
    )  # fmt: skip
    assert privilege(of_queue("boss"), "LSF administrators: a headway\n").known
    by_group = privilege(of_queue("ops"), groups="GROUP_NAME USERS\nops boss headway\n")
    assert by_group.known and by_group.ok


def test_jobs_that_one_is_not_shown() -> None:
    head = output("bjobs_all_wide").splitlines()[0]
    detail, remedy = fails(
        checked(lambda argv: head if argv == ("bjobs", "-u", "all", "-a", "-w") else None)
    )["all users' jobs"]
    assert detail == "0 slots by the jobs listed, 2 by the hosts"
    assert "LSB_SECURE_JOBINFO_USERS" in remedy


def test_a_clock_that_goes_ahead() -> None:
    text = output("bjobs_all_wide").replace("Nov 21 06:38", "Nov 21 07:38")
    detail, remedy = fails(
        checked(lambda argv: text if argv == ("bjobs", "-u", "all", "-a", "-w") else None)
    )["clock"]
    assert detail == "the newest job was submitted 3530 s from now by LSF's clock"
    assert "TZ=UTC" in remedy


def test_a_cluster_without_jobs() -> None:
    def answer(argv: tuple[str, ...]) -> Result | str | None:
        if argv[0] == "bjobs" and argv[1:] != ("-V",):
            return Result(argv=argv, rc=255, stdout=b"", stderr="No job found\n", seconds=0.01)
        if argv == ("bhosts", "-w"):
            return output("bhosts_wide").replace(
                "     2      2      1      0      1", "     2      0      0      0      0"
            )
        return None

    assert fails(checked(answer)) == {}
