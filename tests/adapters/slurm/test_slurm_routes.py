"""Jobs that go from one Slurm cluster to another: marks, labels, requests that are rebuilt, hostile users."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretended_slurm import PretendedSlurm

from headway import decisions as d
from headway.errors import Failure
from headway.model.sites import Intake
from headway_adapters.polling.resubmission import COPY, LEAVING, SEALED, Label, Mark, Parcel
from headway_adapters.polling.words import Unfit
from headway_adapters.slurm import SlurmAdapter, marker, writer
from headway_adapters.slurm.reader import Detail
from headway_adapters.slurm.resubmission import _options
from headway_adapters.transport import Result

LABEL = Label("north:17", "3f9a")
HERE = Mark(COPY, "north:17", "north:17", 1795721953)


# ---------------------------------------------------------------------- marks


@pytest.mark.parametrize("nodes_open", [False, True])
@pytest.mark.parametrize(
    "mark",
    [HERE, Mark(SEALED, "north:17", "west:3", 1), Mark(LEAVING, "south:99"), Mark(LEAVING, "x:9", "", 0, 2)],
)
def test_a_mark_is_read_as_it_was_written(mark: Mark, nodes_open: bool) -> None:
    text = marker.of_route(mark, nodes_open=nodes_open)
    assert marker.route(text) == mark and marker.says_nodes_open(text) == nodes_open
    assert marker.is_ours(text) and marker.parse(text) is None


def test_an_original_that_came_from_elsewhere_keeps_its_origin() -> None:
    text = marker.of_route(Mark(LEAVING, "south:99"), came="west:3@5", nodes_open=True)
    assert text == "headway:leaving=south:99;from=west:3@5;nodes=any"
    assert marker.route(text) == Mark(LEAVING, "south:99") and marker.origin(text) == "west:3@5"


@pytest.mark.parametrize("other", ["", "17", "north:", "a b:1", "north:1;as=x:1@1", "north:1\n", "-n:1;x"])
def test_what_is_no_place_becomes_no_mark(other: str) -> None:
    with pytest.raises(Unfit):
        marker.of_route(Mark(LEAVING, other))


@given(st.text())
def test_other_comments_are_no_marks(text: str) -> None:
    if not text.startswith("headway:"):
        assert marker.route(text) is None


CAME = "north:17@1795721953"


def comments(*argvs: Sequence[str]) -> list[str]:
    found = [word.partition("=")[2] for argv in argvs for word in argv if word.startswith("AdminComment=")]
    assert found
    return found


def test_every_later_mark_repeats_where_the_job_came_from() -> None:
    detail = Detail(held=True, came=CAME)
    plan = writer.start(d.Start("7", (("n1", 2),)), detail, "batch")
    assert plan.pin is not None and marker.parse(comments(plan.steps[0])[0]) == plan.pin
    for pin in (plan.pin, marker.Pin(("n1",), least=1, most=2, came=CAME)):
        (text,) = comments(writer.restore("7", pin, mark=True))
        assert marker.origin(text) == CAME
    for decision in (d.Hold("7"), d.Release("7")):
        (text,) = comments(*writer.plan(decision, now=0.0, came=CAME).steps)
        assert marker.origin(text) == CAME
    assert marker.origin(marker.held(nodes_open=True, came=CAME)) == CAME
    assert marker.says_nodes_open(marker.held(nodes_open=True, came=CAME))


# ---------------------------------------------------------------------- a pretended Slurm


class Slurm(PretendedSlurm):
    """Jobs as a test writes them, and what is asked of them."""

    def __init__(self, *jobs: dict[str, Any], script: bytes = b"#!/bin/sh\n#SBATCH -w n1\nsleep 1\n") -> None:
        super().__init__()
        self.records = [{**BASE, **job} for job in jobs]
        self.script = script
        self.fed: list[tuple[tuple[str, ...], bytes]] = []
        self.user = "headway"

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        if argv[:3] == ("scontrol", "write", "batch_script"):
            return Result(tuple(argv), 0, self.script, "", 0.0)
        return super().run(argv, timeout)

    def _stdout(self, argv: tuple[str, ...]) -> str:
        if argv[:2] == ("squeue", "--json"):
            return json.dumps({"jobs": self.records})
        return super()._stdout(argv)

    def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
        self.fed.append((tuple(argv), given))
        return Result(tuple(argv), 0, b"99\n", "", 0.0)


BASE = {
    "job_id": 17, "job_state": "PENDING", "partition": "batch", "user_name": "ann", "name": "a name",
    "account": "met", "qos": "normal", "priority": 0, "state_reason": "JobHeldAdmin",
    "admin_comment": "headway:held",
    "comment": "headway:movable=yes,data=era5 more words", "cpus": 4, "tasks": 2, "minimum_cpus_per_node": 2,
    "node_count": 1, "max_nodes": 0, "time_limit": 30, "submit_time": 1795721953, "nodes": "",
    "batch_flag": True, "current_working_directory": "/home/ann", "standard_output": "/home/ann/o",
}  # fmt: skip


def adapter(slurm: Slurm) -> SlurmAdapter:
    made = SlurmAdapter({"partitions": ["batch"]}, transport=slurm)
    made.tell_words(["movable", "came_from", "copy_of", "goes_to"])
    made.describe()
    made.wait(None)
    return made


def job_as_told(**fields: Any) -> Any:
    slurm = Slurm(fields)
    made = SlurmAdapter({"partitions": ["batch"]}, transport=slurm, read_only=True)
    made.tell_words(["movable", "came_from", "copy_of", "goes_to"])
    made.describe()
    told = made.wait(None)
    assert told is not None
    made.close()
    return next(event.job for event in told[1] if hasattr(event, "job"))


def routed(job: Any) -> dict[str, Any]:
    attributes = job.attributes or {}
    return {name: attributes[name] for name in ("copy_of", "goes_to", "came_from") if name in attributes}


@pytest.mark.parametrize(
    ("fields", "attributes", "held"),
    [
        ({"admin_comment": marker.of_route(HERE)}, {"copy_of": "north:17"}, True),
        ({"admin_comment": "headway:leaving=south:99"}, {"goes_to": "south:99"}, True),
        ({"admin_comment": "headway:held;from=north:5@100"}, {"came_from": "north:5"}, False),
        # A copy that was submitted just now; and the same once its user has released it.
        (
            {"admin_comment": "", "state_reason": "JobHeldUser", "comment": f"headway:{LABEL.word},movable"},
            {"copy_of": "north:17"}, True,
        ),
        ({"admin_comment": "", "comment": f"headway:{LABEL.word},movable"}, {}, False),
        # What a user writes into a comment stands for nothing, whatever words are configured.
        ({"comment": "headway:came_from=north:1,copy_of=north:2,goes_to=south:3"}, {}, False),
        ({"comment": "headway:held;from=north:5@100"}, {}, False),
    ],
)  # fmt: skip
def test_what_marks_and_labels_say(fields: dict[str, Any], attributes: dict[str, str], held: bool) -> None:
    job = job_as_told(**fields)
    assert routed(job) == attributes and job.held == held


def test_a_job_that_came_was_submitted_when_it_was_submitted_first() -> None:
    assert job_as_told(admin_comment="headway:held;from=north:5@100").submit_time == 100.0


def test_a_job_on_its_way_is_neither_started_nor_changed() -> None:
    slurm = Slurm({"admin_comment": "headway:leaving=south:99"})
    made = adapter(slurm)
    for decision in (d.Start("17", (("n1", 4),)), d.Hold("17"), d.Release("17"), d.Route("17", "batch")):
        (outcome,) = made.apply(1.0, [decision])
        assert not outcome.accepted
    made.close()


# ---------------------------------------------------------------------- what is sent


def test_a_job_is_sent_as_slurm_knows_it() -> None:
    made = adapter(slurm := Slurm({}))
    assert made.resubmission is not None
    parcel = made.resubmission.parcel("17")
    intake = Intake(("sudo", "-n", "-u", "{user}", "--"), "guests")
    assert made.resubmission.submit(parcel, "batch", LABEL, intake).accepted
    ((argv, script),) = slurm.fed
    assert argv[:6] == ("sudo", "-n", "-u", "ann", "--", "sbatch")
    assert set(argv[6:]) == {
        "--parsable", "--hold", "--export=NONE", "--partition=batch", "--job-name=a name", "--time=30",
        "--account=guests", "--ntasks=2", "--cpus-per-task=2", "--chdir=/home/ann", "--output=/home/ann/o",
        "--comment=headway:routed=north:17/3f9a,movable=yes,data=era5 more words",
    }  # fmt: skip
    # Nothing of it means a node, a job or a partition of the cluster that it leaves.
    assert script == b"#!/bin/sh\n# SBATCH -w n1\nsleep 1\n"
    made.close()


def test_what_a_script_writes_into_other_scripts_stays() -> None:
    script = b"#!/bin/sh\n\n#SBATCH -n 4\n  # more\n#PBS -l x\ncat > job <<END\n#SBATCH -n 8\nEND\n"
    made = adapter(slurm := Slurm({"user_name": "headway"}, script=script))
    assert made.resubmission is not None
    made.resubmission.submit(made.resubmission.parcel("17"), "batch", LABEL, Intake())
    ((argv, given),) = slurm.fed
    assert argv[0] == "sbatch"
    assert given == script.replace(b"#SBATCH -n 4", b"# SBATCH -n 4").replace(b"#PBS", b"# PBS")
    made.close()


def test_a_job_whose_start_is_on_its_way_stays() -> None:
    pin = marker.Pin(("n1",), placement=(("n1", 4),)).text()
    fields = {"admin_comment": pin, "required_nodes": "n1", "priority": 5, "state_reason": "None"}
    made = adapter(Slurm(fields))
    assert made.resubmission is not None
    with pytest.raises(Unfit, match="a start of it is on its way"):
        made.resubmission.parcel("17")
    made.close()


def test_an_earlier_label_does_not_go_with_it() -> None:
    made = adapter(Slurm({"comment": "headway:routed=west:1/00,movable=yes,routed=west:2/01 x"}))
    assert made.resubmission is not None
    options = list(_options(made.resubmission.parcel("17"), "batch", LABEL, ""))
    assert "--comment=headway:routed=north:17/3f9a,movable=yes, x" in options
    made.close()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"comment": "mine"}, "its user does not allow it"),
        ({"comment": "headway:movable=no I said"}, "its user does not allow it"),
        ({"comment": "words first headway:movable=yes"}, "its user does not allow it"),
        ({"dependency": "afterok:3"}, "it depends on other jobs"),
        ({"required_nodes": "n1"}, "it names nodes"),
        ({"excluded_nodes": "n1"}, "it names nodes"),
        ({"resv_name": "exam"}, "it is submitted to a reservation"),
        ({"batch_flag": False}, "it is interactive"),
        ({"restart_cnt": 1}, "it ran before"),
        ({"tres_per_job": "gres:gpu:2"}, "otherwise than by the node"),
        ({"eligible_time": 4000000000}, "it has a begin time"),
        ({"state_reason": "JobHeldUser", "admin_comment": ""}, "it is held"),
        ({"comment": "headway:movable=yes \u0007"}, "cannot be written again"),
    ],
)
def test_what_stays(fields: dict[str, Any], why: str) -> None:
    made = adapter(Slurm(fields))
    assert made.resubmission is not None
    with pytest.raises(Unfit, match=why):
        made.resubmission.parcel("17")
    made.close()


@pytest.mark.parametrize("word", ["restartable", "checkpoint=60", "saves=5"])
def test_a_job_that_ran_goes_if_its_user_says_how_it_goes_on(word: str) -> None:
    made = adapter(Slurm({"restart_cnt": 2, "comment": f"headway:movable=yes,{word}"}))
    assert made.resubmission is not None and made.resubmission.parcel("17").restarts == 2
    made.close()


@pytest.mark.parametrize(("runs", "ran"), [(2, False), (3, True)])
def test_an_original_ran_if_it_went_back_to_the_queue_since_its_copy_was_made(runs: int, ran: bool) -> None:
    made = adapter(Slurm({"restart_cnt": runs, "admin_comment": "headway:leaving=south:99;run=2"}))
    assert made.resubmission is not None and made.resubmission.standing(())["17"].ran is ran
    made.close()


def test_a_job_stays_that_others_wait_for() -> None:
    made = adapter(Slurm({}, {"job_id": 18, "dependency": "afterok:17(unfulfilled)"}))
    assert made.resubmission is not None
    with pytest.raises(Unfit, match="other jobs wait for it"):
        made.resubmission.parcel("17")
    made.close()


@pytest.mark.parametrize(
    ("user", "intake", "why"),
    [
        ("ann", Intake(), "need site.submit_as"),
        ("root", Intake(("sudo", "-u", "{user}")), "stay where they are"),
        ("-n", Intake(("sudo", "-u", "{user}")), "stay where they are"),
        ("ann -i", Intake(("sudo", "-u", "{user}")), "stay where they are"),
        ("", Intake(("sudo", "-u", "{user}")), "stay where they are"),
    ],
)
def test_as_whom_nothing_is_submitted(user: str, intake: Intake, why: str) -> None:
    made = adapter(slurm := Slurm({}))
    assert made.resubmission is not None
    parcel = made.resubmission.parcel("17")
    other = Parcel(type(parcel.job)("17", 0.0, parcel.job.request, user=user), b"#!/bin/sh\n", "")
    with pytest.raises(Unfit, match=why):
        made.resubmission.submit(other, "batch", LABEL, intake)
    assert slurm.fed == []
    made.close()


@given(st.text(), st.text(), st.text())
def test_no_text_of_a_user_becomes_an_option(name: str, comment: str, directory: str) -> None:
    from headway.model import JobDescription, Request

    job = JobDescription("17", 0.0, Request(4, 60.0), name=name, account="")
    parcel = Parcel(job, b"", comment, 2, 2, directory=directory, output=name, error=name)
    allowed = ("parsable", "hold", "export", "partition", "comment", "job-name", "time", "ntasks",
               "cpus-per-task", "chdir", "output", "error")  # fmt: skip
    for word in _options(parcel, "batch", LABEL, ""):
        assert word.startswith("--") and word[2:].partition("=")[0] in allowed


def test_a_run_that_only_looks_on_offers_nothing() -> None:
    made = SlurmAdapter({"partitions": ["batch"]}, transport=Slurm({}), read_only=True)
    assert made.resubmission is None
    made.close()


# ---------------------------------------------------------------------- what is done at both ends


def ran(slurm: Slurm, do: Any) -> list[str]:
    before = len(slurm.said)
    do()
    return [" ".join(argv) for argv in slurm.said[before:] if argv[0] == "scancel" or argv[1] == "update"]


def test_the_commands_of_the_steps() -> None:
    copy = {"job_id": 99, "admin_comment": "", "state_reason": "JobHeldUser"}
    made = adapter(slurm := Slurm({}, copy))
    there = made.resubmission
    assert there is not None
    assert ran(slurm, lambda: there.mark("99", HERE)) == [
        "scontrol update JobId=99 Priority=0 AdminComment=headway:copy=north:17;as=north:17@1795721953"
    ]
    assert ran(slurm, lambda: there.mark("17", Mark(LEAVING, "south:99"))) == [
        "scontrol update JobId=17 Priority=0 AdminComment=headway:leaving=south:99"
    ]
    assert ran(slurm, lambda: there.cancel("17")) == ["scancel --state=PENDING 17"]
    slurm.records[0] |= {"eligible_time": 1795721953, "admin_comment": "headway:held;shown=1795721953"}
    assert ran(slurm, lambda: there.mark("17", Mark(LEAVING, "south:99"))) == [
        "scontrol update JobId=17 Priority=0 StartTime=now AdminComment=headway:leaving=south:99"
    ]
    slurm.records[0]["admin_comment"] = "headway:leaving=south:99"
    assert ran(slurm, lambda: there.unmark("17")) == ["scontrol update JobId=17 AdminComment=headway:held"]
    slurm.records[1]["admin_comment"] = marker.of_route(Mark(SEALED, "north:17", "north:17", 5))
    slurm.records[1]["comment"] = "headway:routed=north:17/3f9a,movable headway:user-hold"
    assert ran(slurm, lambda: there.settle("99")) == [
        "scontrol update JobId=99 Priority=0 AdminComment=headway:held;from=north:17@5 "
        "Comment=headway:routed=north:17/3f9a,movable"
    ]
    slurm.records[1]["admin_comment"] = "hold: mine"
    assert not there.mark("99", HERE).accepted and not there.settle("99").accepted
    with pytest.raises(Failure):
        there.settle("100")
    made.close()


def test_what_stands_at_a_cluster() -> None:
    label = f"headway:{LABEL.word},movable"
    made = adapter(Slurm(
        {"job_id": 1, "admin_comment": "headway:leaving=south:99"},
        {"job_id": 2, "admin_comment": "", "state_reason": "JobHeldUser", "comment": label},
        # Released by its user, or run: no copy any more.
        {"job_id": 3, "admin_comment": "", "state_reason": "None", "priority": 5, "comment": label},
        {"job_id": 4, "job_state": "CANCELLED", "admin_comment": marker.of_route(HERE)},
        {"job_id": 5, "job_state": "RUNNING", "nodes": "n1", "admin_comment": "headway:held;from=north:5@1"},
        {"job_id": 6}, {"job_id": 7, "array_job_id": 7, "array_task_id": 1, "comment": label},
    ))  # fmt: skip
    assert made.resubmission is not None
    found = made.resubmission.standing(["6"])
    assert sorted(found) == ["1", "2", "4", "5", "6"]
    assert found["1"].mark == Mark(LEAVING, "south:99") and found["1"].state == "pending"
    assert found["2"].label == LABEL and found["2"].mark is None
    assert found["4"].state == "ended" and found["4"].cancelled and not found["4"].ran
    assert found["5"].state == "running" and found["5"].ran and found["5"].came == "north:5"
    made.close()
