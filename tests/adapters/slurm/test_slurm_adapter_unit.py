"""The adapter against a pretended Slurm: outages, nonsense, monitor mode, lost jobs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pretended import events, result
from pretended_slurm import FIXTURES, RECORDS, PretendedSlurm
from structlog.testing import capture_logs
from waiting import bound

from headway import decisions as d
from headway import events as ev
from headway.errors import Failure, UserError
from headway_adapters.slurm import SlurmAdapter, SlurmOptions
from headway_adapters.slurm.client import SlurmClient, only_reads
from headway_adapters.transport import Result


@pytest.fixture
def slurm() -> PretendedSlurm:
    return PretendedSlurm()


def adapter(slurm: PretendedSlurm, **fields: Any) -> SlurmAdapter:
    read_only = fields.pop("read_only", False)
    options = SlurmOptions(**{"partitions": ("batch",), "poll_interval": 0.05, "accounting": "no", **fields})
    return SlurmAdapter(options, read_only=read_only, transport=slurm)


def broken(what: str) -> Callable[[tuple[str, ...]], Result | None]:
    """squeue answers something else; job look-ups fail as well."""

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "squeue" and what == "refused":
            return result(argv, rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
        if argv[0] == "squeue" and what == "hangs":
            return Result(argv=argv, rc=124, stdout=b"", stderr="", seconds=15.0, timed_out=True)
        if argv[0] == "squeue" and what == "nonsense":
            return result(argv, "<html>Bad gateway</html>")
        if argv[0] == "squeue" and what == "status 0":
            recorded = json.loads((FIXTURES / "errors" / "ctld-down-squeue-json.json").read_text())
            return result(argv, recorded["stdout"])
        if argv[0] == "squeue" and what == "empty":
            return result(argv, json.dumps({"errors": [], "jobs": []}))
        if what == "empty" and "job" in argv:
            return result(argv, rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
        return None

    return answer


@pytest.mark.parametrize("what", ["refused", "hangs", "nonsense", "status 0", "empty"])
def test_an_outage_ends_no_job_and_is_logged_once(slurm: PretendedSlurm, what: str) -> None:
    with capture_logs() as logs, adapter(slurm) as one:
        one.describe()
        assert {e.job.id for e in events(one) if isinstance(e, ev.JobSubmitted)} == {"15", "7"}
        slurm.answer = broken(what)
        (silent,) = events(one, 0.6)
        assert isinstance(silent, ev.ClusterSilent) and silent.cluster == ""
        (outage,) = one.outages()
        assert (silent.time, silent.reason) == (outage.since, outage.message)
        slurm.answer = lambda argv: None
        news: list[ev.Event] = []
        end = time.time() + 60
        while one.outages() and time.time() < end:
            news += events(one)
        assert [type(event) for event in news] == [ev.ClusterAnswers]
    told = [log["event"] for log in logs if "answer" in log["event"]]
    assert told == ["slurm does not answer; waiting for it", "slurm answers again"]


def test_a_job_that_slurm_forgot_is_looked_up(slurm: PretendedSlurm) -> None:
    with adapter(slurm) as one:
        one.describe()
        events(one)
        slurm.jobs = []

        def answer(argv: tuple[str, ...]) -> Result | None:
            if "job" in argv and argv[-1] == "7":
                line = "JobId=7 JobName=x JobState=FAILED ExitCode=3:0 StartTime=2026-11-21T07:04:02 "
                return result(argv, line + "EndTime=2026-11-21T07:05:02 NodeList=node[1-2]")
            if "job" in argv:
                return result(argv, rc=1, stderr="slurm_load_jobs error: Invalid job id specified")
            return None

        slurm.answer = answer
        ended = {e.job_id: e for e in events(one) if isinstance(e, ev.JobEnded)}
    assert (ended["7"].outcome, ended["7"].exit_code, ended["7"].time) == ("failed", 3, 1795244702)
    assert ended["15"].outcome == "vanished"


def test_a_job_that_only_the_listing_forgot_goes_on(slurm: PretendedSlurm) -> None:
    with adapter(slurm) as one:
        one.describe()
        events(one)
        slurm.jobs = slurm.jobs[:1]
        line = "JobId=7 JobState=RUNNING ExitCode=0:0 StartTime=2026-11-21T07:04:02 NodeList=node[1-2]"
        slurm.answer = lambda argv: result(argv, line) if "job" in argv else None
        assert events(one) == []


def test_monitor_mode_runs_no_command_that_changes_anything(slurm: PretendedSlurm) -> None:
    slurm.jobs.append({**RECORDS[37], "state_reason": "Resources"})
    slurm.jobs.append({**RECORDS[16], "state_reason": "JobHeldUser", "admin_comment": "headway:new"})
    with adapter(slurm, read_only=True) as one:
        one.describe()
        events(one)
        for decision in (d.Start("15", (("node3", 4), ("node4", 4))), d.Kill("7"), d.PowerDown(("node1",))):
            assert not one.apply(time.time(), [decision])[0].accepted
        one.check()
    assert slurm.said and all(only_reads(argv) for argv in slurm.said)


@pytest.mark.parametrize(
    ("argv", "reads"),
    [
        (("scontrol", "-o", "show", "job", "1"), True),
        (("scontrol", "ping"), True),
        (("scontrol", "update", "JobId=1"), False),
        (("scontrol", "release", "1"), False),
        (("scontrol", "hold", "show"), False),
        (("scancel", "1"), False),
        (("scancel", "--version"), True),
        (("scancel", "--version", "1"), False),
        (("sacctmgr", "-n", "show", "user"), True),
        (("sacctmgr", "-i", "delete", "user", "x"), False),
        (("rm", "show"), False),
    ],
)
def test_what_counts_as_reading(slurm: PretendedSlurm, argv: tuple[str, ...], reads: bool) -> None:
    assert only_reads(argv) is reads
    if not reads:
        with pytest.raises(Failure, match="monitor mode"):
            SlurmClient(SlurmOptions(partitions=("batch",)), read_only=True, transport=slurm).run(argv)
        assert not slurm.said


@pytest.mark.parametrize(("refusals", "asked", "ok"), [(0, 1, True), (3, 4, True), (99, 16, False)])
def test_what_slurm_wants_to_be_asked_again_is_asked_again(
    slurm: PretendedSlurm, refusals: int, asked: int, ok: bool
) -> None:
    """Slurm 24.11 without accounting answers so to changes of a job's partition."""
    said: list[tuple[str, ...]] = []

    def answer(argv: tuple[str, ...]) -> Result | None:
        said.append(argv)
        if "Partition=b" in argv and said.count(argv) <= refusals:
            return result(argv, rc=1, stderr="Resource temporarily unavailable for job 15")
        return result(argv)

    slurm.answer = answer
    client = SlurmClient(SlurmOptions(partitions=("batch",)), read_only=False, transport=slurm)
    moved, held = ("scontrol", "update", "JobId=15", "Partition=b"), ("scontrol", "hold", "16")
    results = client.change_all([held, moved])
    assert [each is not None and each.ok for each in results] == [True, ok]
    assert (said.count(held), said.count(moved)) == (1, asked)


def test_a_failed_pin_releases_nothing(slurm: PretendedSlurm) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[:2] == ("scontrol", "update"):
            return result(argv, rc=1, stderr="Invalid node name specified for job 15")
        return None

    slurm.answer = answer
    with adapter(slurm) as one:
        one.describe()
        events(one)
        start = d.Start("15", (("node3", 4), ("node4", 4)))
        (outcome,) = one.apply(time.time(), [start])
        assert not outcome.accepted
        assert [e.decision for e in events(one) if isinstance(e, ev.DecisionFailed)] == [start]
    assert ("scontrol", "release", "15") not in slurm.said


@pytest.fixture
def tiers(tmp_path: Path) -> dict[str, Any]:
    """The options of two tiers, whose agents nobody reaches."""
    key = tmp_path / "key"
    key.write_text("0" * 64)
    key.chmod(0o600)
    return {"background": {"batch": "bg"}, "agents": {"key": str(key), "address": f"unix:{tmp_path}/nobody"}}


def test_a_pin_that_slurm_refuses_leaves_no_job_in_the_partition_of_background_jobs(
    slurm: PretendedSlurm, tiers: dict[str, Any]
) -> None:
    """Slurm refuses the update as a whole, and yet the job is in that partition from then on."""

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[:2] == ("scontrol", "update") and "Partition=bg" in argv:
            return result(argv, rc=1, stderr="Requested partition configuration not available now for job 15")
        return None

    slurm.answer = answer
    with adapter(slurm, **tiers) as one:
        one.describe()
        events(one)
        start = d.Start("15", (("node3", 4), ("node4", 4)), tier="background")
        (outcome,) = one.apply(time.time(), [start])
        assert not outcome.accepted
    updates = [argv for argv in slurm.said if argv[:3] == ("scontrol", "update", "JobId=15")]
    assert ["Partition=bg" in argv for argv in updates] == [True, False]
    assert "Partition=batch" in updates[1] and "ReqNodeList=" in updates[1]


@pytest.mark.parametrize(
    ("front", "behind", "ok", "says"),
    [
        ("", "AllowGroups=nobody", False, "Slurm refuses jobs of fg in bg: AllowGroups=nobody"),
        ("", "RootOnly=YES", False, "RootOnly=YES"),
        ("MaxTime=INFINITE", "MaxTime=01:00:00", False, "MaxTime of 60 minutes"),
        ("AllowGroups=all-of-us", "AllowGroups=all-of-us AllowQos=ALL", True, "share processors"),
        ("AllocNodes=login1", "AllocNodes=ALL", True, "share processors"),
    ],
)
def test_a_partition_of_background_jobs_that_keeps_jobs_out_is_told(
    slurm: PretendedSlurm, tiers: dict[str, Any], front: str, behind: str, ok: bool, says: str
) -> None:
    words = {"fg": front, "bg": behind}
    lines = [
        f"PartitionName={n} Nodes=node[9-10] State=UP OverSubscribe=FORCE:2 {w}" for n, w in words.items()
    ]
    slurm.answer = lambda argv: result(argv, "\n".join(lines) + "\n") if "partition" in argv else None
    options = {**tiers, "background": {"fg": "bg"}}
    with adapter(slurm, read_only=True, partitions=("fg",), **options) as one:
        (found,) = [check for check in one.check() if check.subject == "two tiers"]
    assert found.ok is ok and says in found.detail
    assert ok or "BEHIND" in found.remedy


def test_what_slurm_refuses_is_in_the_log(slurm: PretendedSlurm) -> None:
    said = "Access/permission denied for job 15"
    slurm.answer = lambda argv: result(argv, rc=1, stderr=said) if "update" in argv else None
    with capture_logs() as logs, adapter(slurm) as one:
        one.describe()
        events(one)
        one.apply(time.time(), [d.Start("15", (("node1", 1),))])
    (entry,) = [entry for entry in logs if entry["event"] == "slurm refused"]
    assert (entry["log_level"], entry["decision"], entry["job"]) == ("warning", "Start", "15")
    assert said in entry["error"]


def test_a_start_is_idempotent(slurm: PretendedSlurm) -> None:
    with adapter(slurm) as one:
        one.describe()
        events(one)
        start = d.Start("15", (("node3", 4), ("node4", 4)))
        assert [o.accepted for o in one.apply(time.time(), [start, start])] == [True, True]
        assert one.apply(time.time(), [start])[0].accepted
    assert slurm.said.count(("scontrol", "release", "15")) == 1


def test_a_start_that_slurm_forgot_together_with_the_take_over_leaves_the_job_ours(
    slurm: PretendedSlurm,
) -> None:
    """slurmctld was killed before it had saved either: the hold is the filter's again."""

    def answer(argv: tuple[str, ...]) -> Result | None:
        mine = slurm.jobs[0]
        for word in argv if argv[:3] == ("scontrol", "update", "JobId=15") else ():
            if word == "Priority=0":
                mine.update(state_reason="JobHeldAdmin")
            elif word.startswith("AdminComment="):
                mine.update(admin_comment=word.partition("=")[2])
        return None

    slurm.answer = answer
    with adapter(slurm) as one:
        one.describe()
        events(one)
        assert one.apply(time.time(), [d.Start("15", (("node3", 4), ("node4", 4)))])[0].accepted
        slurm.jobs[0].update(state_reason="JobHeldUser", admin_comment="headway:new")
        told = events(one, 1.0)
        assert any(isinstance(event, ev.DecisionFailed) for event in told)
        assert not any(isinstance(event, ev.JobHeld) for event in told), "it counts as held by its user"
    assert slurm.jobs[0]["state_reason"] == "JobHeldAdmin"


def test_a_job_is_held_once_it_has_run_for_a_while(
    slurm: PretendedSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold after a launch that failed makes Slurm forget that, and the job would be started again."""
    hold = ("scontrol", "hold", "7")
    with adapter(slurm) as one:
        one.describe()
        events(one)
        assert hold not in slurm.said
        monkeypatch.setattr("headway_adapters.slurm.custody._LAUNCHED", 0.0)
        slurm.jobs[1] = {**slurm.jobs[1], "job_id": 8}
        events(one)
    assert ("scontrol", "hold", "8") in slurm.said and hold not in slurm.said


@pytest.mark.parametrize("gone", [False, True])
def test_a_dedicated_job_starts_in_its_reservation_or_beside_it_if_slurm_refuses(
    slurm: PretendedSlurm, gone: bool
) -> None:
    shown = (FIXTURES / "show-reservations-oneline.txt").read_text().splitlines()[0]

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[-1] == "reservation":
            return result(argv, shown.replace("ReservationName=ded1", "ReservationName=headway_job_15"))
        if gone and any(word.startswith("ReservationName=") for word in argv):
            return result(argv, rc=1, stderr="Requested reservation is invalid for job 15")
        return None

    slurm.answer = answer
    with capture_logs() as logs, adapter(slurm) as one:
        one.describe()
        events(one)
        (outcome,) = one.apply(time.time(), [d.Start("15", (("node3", 4), ("node4", 4)))])
        assert outcome.accepted
    updates = [argv for argv in slurm.said if argv[1] == "update"]
    assert ["ReservationName=headway_job_15" in argv for argv in updates] == [True, *([False] * gone)]
    assert slurm.said.count(("scontrol", "release", "15")) == 1
    assert gone == any(entry["event"] == "a job could not enter its reservation" for entry in logs)


@pytest.mark.parametrize(
    ("said", "accepted"),
    [("Requested reservation is invalid", True), ("Requested reservation is in use", False)],
)
def test_removing_a_reservation_that_is_gone_is_no_failure(
    slurm: PretendedSlurm, said: str, accepted: bool
) -> None:
    slurm.answer = lambda argv: result(argv, rc=1, stderr=said) if "delete" in argv else None
    with adapter(slurm) as one:
        one.describe()
        (outcome,) = one.apply(time.time(), [d.Unreserve("job_15")])
        assert outcome.accepted is accepted


def test_after_silence_the_rest_of_the_starts_is_not_tried(slurm: PretendedSlurm) -> None:
    slurm.jobs = [
        {**RECORDS[16], "job_id": n, "admin_comment": "headway:held"} for n in range(1, 301)
    ]  # fmt: skip
    slurm.answer = lambda argv: (
        Result(argv=argv, rc=124, stdout=b"", stderr="", seconds=15.0, timed_out=True)
        if argv[1] == "update"
        else None
    )
    with adapter(slurm) as one:
        one.describe()
        events(one)
        outcomes = one.apply(time.time(), [d.Start(str(n), (("node3", 1),)) for n in range(1, 301)])
        assert len(outcomes) == 300 and not any(o.accepted for o in outcomes)
    assert sum(argv[1] == "update" for argv in slurm.said) <= 64


def test_a_release_that_slurmctld_hung_up_on_is_not_refused(slurm: PretendedSlurm) -> None:
    """It may have had its effect: the next look tells."""
    slurm.jobs = [{**RECORDS[16], "job_id": 1, "admin_comment": "headway:held"}]
    hung_up = "slurm_update error: Connection reset by peer"
    slurm.answer = lambda argv: result(argv, rc=1, stderr=hung_up) if argv[1] == "release" else None
    with adapter(slurm) as one:
        one.describe()
        events(one)
        (outcome,) = one.apply(time.time(), [d.Start("1", (("node3", 1),))])
        assert outcome.accepted


def test_wake_ends_a_wait(slurm: PretendedSlurm) -> None:
    with adapter(slurm, poll_interval=60.0) as one:
        one.describe()
        one.wait(time.time())
        threading.Timer(0.2, one.wake).start()
        began = time.time()
        assert one.wait(None) is not None
        assert time.time() - began < bound(5.0)


def test_nodes_are_read_from_text_where_their_json_is_unusable(slurm: PretendedSlurm) -> None:
    slurm.answer = lambda argv: result(argv, '{"sinfo": []}') if argv[0] == "sinfo" else None
    with capture_logs() as logs, adapter(slurm) as one:
        assert len(one.describe().nodes) == 8
    assert [log["event"] for log in logs] == ["odd in slurm's output"] * len(logs) and logs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["cluster.options: partitions", "expected a value, found none"]),
        ({"partitions": ["batch"], "pollinterval": 3}, ["cluster.options: pollinterval", "unknown key"]),
        ({"partitions": ["batch"], "poll_interval": -1}, ["cluster.options: poll_interval", "-1"]),
        ({"partitions": ["-p"]}, ["cluster.options: partitions", "'-p'"]),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        SlurmAdapter(options)
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize(("written", "meant"), [(False, "no"), (True, "yes"), ("no", "no"), ("auto", "auto")])
def test_yes_and_no_may_be_written_as_yaml_has_them(written: Any, meant: str) -> None:
    with SlurmAdapter({"partitions": ["batch"], "accounting": written}) as one:
        assert one.options.accounting == meant


def test_an_unknown_partition_is_the_users_mistake(slurm: PretendedSlurm) -> None:
    with adapter(slurm, partitions=("btach",)) as one, pytest.raises(UserError, match=r"btach.*Known: batch"):
        one.describe()


@pytest.mark.parametrize(
    ("level", "ok"), [("Administrator", True), ("Operator", False), ("None", False), ("", False)]
)
def test_only_an_administrator_may_drive(slurm: PretendedSlurm, level: str, ok: bool) -> None:
    """An operator may not write AdminComment, without which nothing is known after a crash."""
    slurm.user = "headway"
    slurm.answer = lambda argv: result(argv, f"headway|{level}\n") if argv[0] == "sacctmgr" else None
    with adapter(slurm, read_only=True) as one:
        (found,) = [check for check in one.check() if check.subject == "privilege"]
    assert found.ok is ok
    assert "AdminLevel=Administrator" in found.remedy


@pytest.mark.parametrize(
    ("shared", "ok", "says"),
    [
        ({"fg": "FORCE:2", "bg": "FORCE:2"}, True, "jobs share processors in fg, bg"),
        ({"fg": "FORCE", "bg": "FORCE:3"}, True, "jobs share processors in fg, bg"),
        ({"fg": "FORCE:1", "bg": "FORCE:2"}, False, "jobs do not share processors in fg"),
        ({"fg": "FORCE:2", "bg": "YES:4"}, False, "jobs do not share processors in bg"),
        ({"fg": "NO", "bg": "EXCLUSIVE"}, False, "jobs do not share processors in fg, bg"),
    ],
)
def test_partitions_that_do_not_share_processors_have_no_two_tiers(
    slurm: PretendedSlurm, tiers: dict[str, Any], shared: dict[str, str], ok: bool, says: str
) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if "partition" not in argv:
            return None
        lines = [
            f"PartitionName={name} Nodes=node[9-10] State=UP OverSubscribe={word}"
            for name, word in shared.items()
        ]
        return result(argv, "\n".join(lines) + "\n")

    slurm.answer = answer
    options = {**tiers, "background": {"fg": "bg"}}
    with adapter(slurm, read_only=True, partitions=("fg",), **options) as one:
        (found,) = [check for check in one.check() if check.subject == "two tiers"]
    assert (found.ok, found.detail) == (ok, says)
    assert ok or "OverSubscribe=FORCE:2" in found.remedy


def test_check_without_slurm_names_what_is_missing() -> None:
    with SlurmAdapter({"partitions": ["batch"], "bin_dir": "/nowhere"}) as one:
        (check,) = one.check()
    assert not check.ok and "'squeue' is not installed" in check.detail and check.remedy


def test_starts_whose_layout_slurm_decides_are_released_after_what_is_planned_beside_them(
    slurm: PretendedSlurm,
) -> None:
    plain = {**RECORDS[16], "admin_comment": "headway:held", "state_reason": "JobHeldAdmin"}
    slurm.jobs = [{**plain, "job_id": n} for n in range(1, 5)]
    with adapter(slurm) as one:
        one.describe()
        events(one)
        starts = [
            d.Start("1", (("node1", 1), ("node2", 2))),
            d.Start("2", (("node2", 1),)),
            d.Start("3", (("node3", 2), ("node4", 1))),
            d.Start("4", (("node5", 1), ("node6", 1))),
        ]
        assert all(outcome.accepted for outcome in one.apply(time.time(), starts))
    assert [argv[2] for argv in slurm.said if argv[:2] == ("scontrol", "release")] == ["2,4,1,3"]


@pytest.mark.parametrize("read_only", [True, False])
def test_who_only_reads_looks_once_to_describe_and_to_begin(slurm: PretendedSlurm, read_only: bool) -> None:
    with adapter(slurm, read_only=read_only) as one:
        nodes = one.describe().nodes
        moment = one.wait(time.time() + 60)
    assert moment is not None and {e.job.id for e in moment[1] if isinstance(e, ev.JobSubmitted)} >= {"15"}
    assert nodes and not any(isinstance(e, ev.NodeUp | ev.NodeDown) for e in moment[1])
    assert sum(argv[0] == "squeue" and "--version" not in argv for argv in slurm.said) == 2 - read_only


def test_nobody_waits_for_the_pins_of_a_hundred_others(slurm: PretendedSlurm) -> None:
    plain = {**RECORDS[16], "admin_comment": "headway:held", "state_reason": "JobHeldAdmin"}
    slurm.jobs = [{**plain, "job_id": n} for n in range(1, 101)]
    with adapter(slurm) as one:
        one.describe()
        events(one)
        # The layout of every tenth is Slurm's to decide: these come last, in the order of the plan.
        starts = [
            d.Start(str(n), (("node1", 1), ("node2", 2)) if n % 10 == 0 else (("node1", 1),))
            for n in range(1, 101)
        ]
        assert all(outcome.accepted for outcome in one.apply(time.time(), starts))
    said = [argv for argv in slurm.said if argv[:2] in (("scontrol", "update"), ("scontrol", "release"))]
    pinned: set[str] = set()
    released: list[str] = []
    for argv in said:
        if argv[1] == "update":
            pinned.add(argv[2].removeprefix("JobId="))
            # No more pins than belong to one release are ahead of it.
            assert len(pinned) - len(released) <= 16
        else:
            released += argv[2].split(",")
            assert set(released) <= pinned
    closed = [str(n) for n in range(1, 101) if n % 10]
    assert released == [*closed, *(str(n) for n in range(10, 101, 10))]


@pytest.mark.parametrize(
    "said", ["Invalid job id specified for job 2", "2: Invalid job id specified", "unclear"]
)
def test_one_release_that_fails_is_that_jobs_alone(slurm: PretendedSlurm, said: str) -> None:
    plain = {**RECORDS[16], "admin_comment": "headway:held", "state_reason": "JobHeldAdmin"}
    slurm.jobs = [{**plain, "job_id": n} for n in range(1, 4)]
    slurm.answer = lambda argv: (
        result(argv, rc=1, stderr=said) if argv[1] == "release" and "2" in argv[2].split(",") else None
    )
    with adapter(slurm) as one:
        one.describe()
        events(one)
        outcomes = one.apply(time.time(), [d.Start(str(n), (("node1", 1),)) for n in range(1, 4)])
    assert [outcome.accepted for outcome in outcomes] == [True, False, True]


def test_nodes_that_slurm_drained_because_a_job_was_there_twice_are_told(slurm: PretendedSlurm) -> None:
    nodes = json.loads((FIXTURES / "sinfo.json").read_text())
    for node in nodes["nodes"][:2]:
        node.update(state="idle", state_flags=["DRAIN"], reason="Duplicate jobid")
    mended = json.dumps(nodes).replace("Duplicate jobid", "repair")
    drained = [node["name"] for node in nodes["nodes"][:2]]
    answers = {"now": json.dumps(nodes)}
    slurm.answer = lambda argv: result(argv, answers["now"]) if argv[0] == "sinfo" else None
    with adapter(slurm) as one:
        one.describe()
        events(one)
        (odd,) = one.oddities()
        assert (odd.count, odd.detail) == (2, ", ".join(drained))
        assert odd.what == (
            "nodes that Slurm drained because a job was started twice on them (Duplicate jobid)"
        )
        answers["now"] = mended
        events(one, 1.0)
        assert one.oddities() == (), "an administrator has mended it"


@pytest.mark.parametrize(
    ("given", "full"), [("36_[0-2]", "36"), ("36_[5,7%1]", "36"), ("36_2", "36_2"), ("36", "36")]
)
def test_an_array_is_named_as_squeue_shows_it(given: str, full: str) -> None:
    assert SlurmAdapter.full_job_id(given, "box") == full
