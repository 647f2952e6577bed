"""``--dependency``: what is judged on the listing that shows it, and what is left to wait for."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from pretended import events
from pretended_slurm import PretendedSlurm
from test_slurm_adapter_unit import adapter
from test_slurm_reader import NOW, RECORDS, pending, read

from headway import decisions as d
from headway import events as ev
from headway.model import Dependency
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm import SlurmOptions, marker, reader, writer
from headway_adapters.slurm.asking import Asking
from headway_adapters.slurm.client import SlurmClient, only_reads
from headway_adapters.slurm.give_back import SlurmGivingBack

#: Two elements that have a record each, and the rest of their array.
ARRAY = (RECORDS[29], RECORDS[30], RECORDS[9])
#: The same array when all of it is over, and one element failed.
OVER = (
    {**RECORDS[29], "job_state": "COMPLETED"},
    {**RECORDS[30], "job_state": "FAILED"},
    {**RECORDS[9], "job_state": "COMPLETED", "array_task_id": 3, "array_task_string": ""},
)
WELL = tuple({**record, "job_state": "COMPLETED"} for record in OVER)


def waiting(text: str, *others: dict[str, Any], **fields: Any) -> SnapshotJob:
    """A job with this dependency, in a listing with ``others``."""
    job_id = fields.setdefault("job_id", 50)
    return read(*others, pending(dependency=text, **fields)).jobs[str(job_id)]


def left(job: SnapshotJob) -> set[tuple[str, str]]:
    assert not job.job.held, job.reason
    return {(each.kind, each.job_id) for each in job.job.dependencies}


RUNS, WAITS = RECORDS[7], RECORDS[21]
FAILED, DONE, CANCELLED = RECORDS[2], RECORDS[3], RECORDS[6]


@pytest.mark.parametrize(
    ("text", "expected", "either"),
    [
        ("afterok:7(unfulfilled)", {("completed", "7")}, False),
        ("afternotok:7(unfulfilled)", {("failed", "7")}, False),
        ("afterany:7(unfulfilled),after:21(unfulfilled)", {("ended", "7"), ("started", "21")}, False),
        ("afternotok:7(unfulfilled)?afterok:21(failed)", {("failed", "7")}, True),
        ("afterok:21(unfulfilled)?afterany:7(unfulfilled)", {("completed", "21"), ("ended", "7")}, True),
        ("afterok:7(fulfilled)", set(), False),
        # It runs.
        ("after:7(unfulfilled)", set(), False),
        # Met at the end that the same listing shows.
        ("afterok:3(unfulfilled),afternotok:2(unfulfilled),afterany:2(unfulfilled)", set(), False),
        ("afternotok:6(unfulfilled),after:6(unfulfilled)", set(), False),
        ("afterok:2(unfulfilled)?afterok:3(unfulfilled)", set(), True),
        ("afterok:2(unfulfilled)?afterok:7(unfulfilled)", {("completed", "7")}, True),
        # Slurm has forgotten it, and lifts the condition.
        ("afterok:4711(unfulfilled)", set(), False),
    ],
)
def test_what_is_met_falls_away(text: str, expected: set[tuple[str, str]], either: bool) -> None:
    job = waiting(text, RUNS, WAITS, FAILED, DONE, CANCELLED)
    assert left(job) == expected
    assert job.job.any_dependency is either


@pytest.mark.parametrize(
    "text",
    [
        "afterok:2(failed)", "afterok:2(unfulfilled)", "afternotok:3(unfulfilled)", "afterok:6(unfulfilled)",
        "afterok:2(unfulfilled),afterany:7(unfulfilled)", "afterok:2(failed)?afternotok:3(unfulfilled)",
        "aftercorr:2(unfulfilled)",
    ],
)  # fmt: skip
def test_what_can_never_be_met_is_said(text: str) -> None:
    job = waiting(text, RUNS, FAILED, DONE, CANCELLED)
    assert job.job.held and "never" in job.reason


@pytest.mark.parametrize("text", ["afterburstbuffer:7(unfulfilled)", "expand:7(unfulfilled)", "what?!"])
def test_a_dependency_that_we_cannot_judge_keeps_the_job_from_starting(text: str) -> None:
    job = waiting(text, RUNS)
    assert job.job.held and "left to Slurm" in job.reason


@pytest.mark.parametrize(
    ("kind", "ours"),
    [("afterok", "completed"), ("afternotok", "failed"), ("afterany", "ended"), ("after", "started")],
)
def test_a_dependency_on_an_array_is_one_on_all_of_it(kind: str, ours: str) -> None:
    assert left(waiting(f"{kind}:9_*(unfulfilled)", *ARRAY)) == {(ours, "9")}


@pytest.mark.parametrize(
    ("text", "others", "met"),
    [
        ("afterok:9_*(unfulfilled)", OVER, False), ("afterok:9_*(unfulfilled)", WELL, True),
        ("afternotok:9_*(unfulfilled)", OVER, True), ("afternotok:9_*(unfulfilled)", WELL, False),
        ("afterany:9_*(unfulfilled)", OVER, True), ("after:9_*(unfulfilled)", OVER, True),
        ("afterok:9_1(unfulfilled)", OVER, True), ("afterok:9_2(unfulfilled)", OVER, False),
        ("afternotok:9_2(unfulfilled)", OVER, True),
        ("afterok:9_*(unfulfilled)?afterany:9_*(unfulfilled)", OVER, True),
    ],
)  # fmt: skip
def test_an_arrays_outcome_is_put_together_from_its_elements(
    text: str, others: tuple[dict[str, Any], ...], met: bool
) -> None:
    job = waiting(text, *others)
    assert job.job.dependencies == () and job.job.held is not met


def test_one_failure_says_nothing_of_an_array_as_long_as_elements_are_left() -> None:
    others = (RECORDS[29], OVER[1], RECORDS[9])
    assert left(waiting("afternotok:9_*(unfulfilled)", *others)) == {("failed", "9")}
    assert left(waiting("afterok:9_*(unfulfilled)", *others)) == {("completed", "9")}


def test_an_element_without_a_record_of_its_own_waits_with_the_rest() -> None:
    assert left(waiting("afterany:9_5(unfulfilled)", *ARRAY)) == {("ended", "9_5")}
    assert left(waiting("afterany:9_7(unfulfilled)", *ARRAY)) == set()


def test_an_array_is_known_by_the_elements_that_are_left_of_it() -> None:
    """The element whose own number is the array's is forgotten."""
    assert left(waiting("afterok:9_*(unfulfilled)", RECORDS[29])) == {("completed", "9")}
    assert left(waiting("afterok:9_3(unfulfilled)", RECORDS[29])) == set()


def test_elements_that_correspond() -> None:
    """Each element of 50 waits for that of 9 and, where 9 has no such element, for all of 9."""
    rest = {"array_job_id": 50, "array_task_string": "1-3,8", "array_task_id": None}
    waits = pending(job_id=50, dependency="aftercorr:9_*(unfulfilled)", **rest)
    jobs = read(*OVER[:2], RECORDS[9], waits).jobs
    assert left(jobs["50_1"]) == set()
    assert jobs["50_2"].job.held and "never" in jobs["50_2"].reason
    assert left(jobs["50_3"]) == {("completed", "9_3")}
    assert left(jobs["50_8"]) == {("completed", "9")}


def test_a_delay_counts_from_the_start() -> None:
    waits = waiting("after:21+2(unfulfilled)", WAITS).job
    assert waits.dependencies == (Dependency("started", "21", 120.0),) and waits.begin_time is None
    runs = {**RUNS, "start_time": int(NOW) - 30}
    counted = waiting("after:7+2(unfulfilled)", runs).job
    # Whole seconds: what Slurm calls NOW - 30 may have been almost a second later.
    assert counted.dependencies == () and counted.begin_time == int(NOW) - 30 + 120 + 1
    over = waiting("after:7+2(unfulfilled)", {**runs, "start_time": int(NOW) - 122}).job
    assert over.dependencies == () and over.begin_time is None
    assert waiting("after:7+2(unfulfilled)?afterok:2(unfulfilled)", runs, FAILED).job.held


def test_of_an_array_the_last_start_counts() -> None:
    started = [{**record, "start_time": int(NOW) - at} for at, record in zip((90, 40, 70), OVER, strict=True)]
    assert waiting("after:9_*+1(unfulfilled)", *started).job.begin_time == int(NOW) - 40 + 60 + 1


SINGLE = "singleton(unfulfilled)"
NAMED = {"name": "x", "user_name": "alice"}


def namesake(job_id: int, state: str, **fields: Any) -> dict[str, Any]:
    return pending(job_id=job_id, job_state=state, **{**NAMED, **fields})


@pytest.mark.parametrize(
    ("other", "waits"),
    [
        (namesake(40, "PENDING"), True), (namesake(60, "PENDING"), False), (namesake(60, "RUNNING"), True),
        (namesake(40, "COMPLETED"), False), (namesake(40, "PENDING", user_name="bob"), False),
        (namesake(40, "PENDING", name="y"), False),
    ],
)  # fmt: skip
def test_a_singleton_waits_for_what_came_before_and_what_runs(other: dict[str, Any], waits: bool) -> None:
    assert left(waiting(SINGLE, other, **NAMED)) == ({("singleton", "")} if waits else set())


def test_what_the_scheduler_does_not_see_is_waited_for_here() -> None:
    """A partition that shares no node with ours: its jobs are not told to the scheduler."""
    elsewhere = namesake(40, "RUNNING", partition="elsewhere")
    for text in (SINGLE, "afterany:40(unfulfilled)"):
        job = waiting(text, elsewhere, **NAMED)
        assert job.job.held and "40" in job.reason
    over = {**elsewhere, "job_state": "COMPLETED"}
    assert left(waiting("afterok:40(unfulfilled)", over)) == set()


REST = {"array_job_id": 50, "array_task_string": "1-3", "array_task_id": None}


def test_elements_of_a_singleton_wait_for_slurms_word() -> None:
    """A record that is split off counts the rest among its namesakes, so Slurm would refuse its start."""
    jobs = read(pending(job_id=50, dependency=SINGLE, admin_comment="headway:held", **NAMED, **REST))
    assert all(job.job.held for job in jobs.jobs.values())
    assert jobs.details["50_1"].unsaid and not jobs.details["50_1"].asked
    behind = read(namesake(40, "RUNNING"), pending(job_id=50, dependency=SINGLE, **NAMED, **REST))
    assert left(behind.jobs["50_2"]) == {("singleton", "")} and not behind.details["50_2"].unsaid
    free = read(pending(job_id=50, dependency="", **NAMED, **REST))
    assert left(free.jobs["50_3"]) == set()


BEGINS_FOR_US = {
    "admin_comment": f"headway:asked={int(NOW) + 600};nodes=any", "eligible_time": int(NOW) + 600,
}  # fmt: skip


def test_an_array_that_slurm_is_asked_about_does_not_begin_and_has_no_begin_time() -> None:
    asked = {"priority": 100, "state_reason": "BeginTime", **BEGINS_FOR_US}
    for text in (SINGLE, ""):
        jobs = read(pending(job_id=50, dependency=text, **NAMED, **REST, **asked))
        job, detail = jobs.jobs["50_1"], jobs.details["50_1"]
        assert job.job.held and job.job.begin_time is None
        assert detail.asked and detail.unsaid is bool(text)
    other = {**asked, "eligible_time": int(NOW) + 30}
    changed = read(pending(job_id=50, dependency=SINGLE, **NAMED, **REST, **other))
    assert changed.jobs["50_1"].job.begin_time == int(NOW) + 30


def test_a_split_off_element_waits_for_the_rest_of_its_array() -> None:
    rest = pending(job_id=50, dependency=SINGLE, **NAMED, **{**REST, "array_task_string": "2-3"})
    element = pending(job_id=51, dependency=SINGLE, **NAMED, array_job_id=50, array_task_id=1)
    jobs = read(rest, element).jobs
    assert jobs["50_1"].job.held and "50" in jobs["50_1"].reason


def test_slurms_word_about_a_released_job_is_read() -> None:
    text = "afterok:7(unfulfilled)"
    released = read(RUNS, pending(job_id=50, dependency=text, priority=5, state_reason="Dependency"))
    assert released.details["50"].unmet and released.details["50"].dependency == text
    held = read(RUNS, pending(job_id=50, dependency=text, priority=0, state_reason="Dependency"))
    assert not held.details["50"].unmet


# ---------------------------------------------------------------- what Slurm says when it is asked


class Asked(PretendedSlurm):
    """Holds, releases and comments as Slurm does; ``unmet``: it says so of what is released."""

    def __init__(self, record: dict[str, Any], *others: dict[str, Any]) -> None:
        super().__init__()
        self.unmet = True
        self.job = record
        self.jobs = [self.job, *others]
        self.answer = self._obeyed

    def _obeyed(self, argv: tuple[str, ...]) -> None:
        if argv[:2] == ("scontrol", "release"):
            self.job.update(priority=9, state_reason="Dependency" if self.unmet else "None")
        if argv[:2] == ("scontrol", "hold") or "Priority=0" in argv:
            self.job.update(priority=0, state_reason="JobHeldAdmin")
        for word in argv:
            key, _, value = word.partition("=")
            if key == "AdminComment":
                self.job.update(admin_comment=value)
            elif key == "ReqNodeList":
                self.job.update(required_nodes=value)

    def changes(self) -> list[tuple[str, ...]]:
        return [argv for argv in self.said if not only_reads(argv)]


def test_a_start_that_slurm_does_not_hold_to_be_met_is_taken_back_and_not_repeated() -> None:
    text = "afterok:4711(unfulfilled)"
    slurm = Asked(pending(priority=0, dependency=text))
    with adapter(slurm) as one:
        one.describe()
        events(one)
        assert one.apply(time.time(), [d.Start("15", (("node3", 4), ("node4", 4)))])[0].accepted
        told = events(one, 1.0)
        (failed,) = [event for event in told if isinstance(event, ev.DecisionFailed)]
        assert text in failed.message
        held = [event.job.held for event in told if isinstance(event, ev.JobChanged)]
        assert held[-1:] == [True] or any(isinstance(event, ev.JobHeld) for event in told)
        assert ("scontrol", "hold", "15") in slurm.said and slurm.job["priority"] == 0
        assert not slurm.job["required_nodes"] and slurm.job["admin_comment"].startswith("headway:")
        # Slurm writes it anew.
        slurm.job["dependency"] = ""
        assert any(isinstance(event, ev.JobReleased) for event in events(one, 1.0))


def test_slurm_is_asked_about_a_singleton_and_the_array_is_held_again() -> None:
    record = pending(job_id=50, priority=0, dependency=SINGLE, **NAMED, **REST)
    slurm = Asked({**record, "admin_comment": "headway:held"})
    with adapter(slurm) as one:
        one.describe()
        events(one, 1.0)
        update, release = slurm.changes()
        begin = marker.begin_of_asked(slurm.job["admin_comment"])
        assert begin is not None and time.time() < begin
        assert update == (
            "scontrol", "update", "JobId=50", f"StartTime={writer.utc(begin)}",
            f"AdminComment=headway:asked={begin}",
        )  # fmt: skip
        assert release == ("scontrol", "release", "50")
        assert one.overlay.known("50_1").job.held
        slurm.job.update(dependency="", eligible_time=begin)
        events(one, 1.0)
        assert slurm.changes()[2:] == [
            ("scontrol", "update", "JobId=50", "StartTime=now", "Priority=0", "AdminComment=headway:held")
        ]
        assert not one.overlay.known("50_1").job.held


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"priority": 9}, ("StartTime=now", "Priority=0")),
        ({"priority": 0}, ("StartTime=now",)),
        # The begin time is another since: somebody asked for that.
        ({"priority": 9, "eligible_time": int(NOW) + 30}, ("Priority=0",)),
    ],
)
def test_what_a_killed_run_asked_is_ended_by_the_next_one(
    changed: dict[str, Any], words: tuple[str, ...]
) -> None:
    record = pending(job_id=50, dependency=SINGLE, **NAMED, **REST)
    slurm = Asked({**record, **BEGINS_FOR_US, **changed})
    with adapter(slurm) as one:
        one.describe()
        events(one)
    update = ("scontrol", "update", "JobId=50", *words, "AdminComment=headway:held;nodes=any")
    assert slurm.changes()[0] == update


def test_an_array_is_not_asked_about_again_and_again() -> None:
    asking, detail = Asking(), reader.Detail(held=True, unsaid=True, record="50")
    released = replace(detail, held=False, asked=True, begins_for_us=True)

    def steps(detail: reader.Detail, now: float) -> int:
        return len(asking.steps({"50_1": detail, "50_2": detail}, now, NOW))

    assert [steps(detail, 100.0), steps(released, 101.0), steps(released, 106.0)] == [2, 0, 1]
    assert [steps(detail, 107.0), steps(detail, 161.0)] == [0, 2]


@pytest.mark.parametrize("held", [True, False])
def test_giving_back_leaves_no_begin_time_of_ours(held: bool) -> None:
    record = pending(job_id=50, priority=0 if held else 9, dependency=SINGLE, **NAMED, **REST)
    slurm = Asked({**record, **BEGINS_FOR_US})
    giving = SlurmGivingBack(SlurmOptions(partitions=("batch",)))
    giving.client = SlurmClient(SlurmOptions(partitions=("batch",)), read_only=False, transport=slurm)
    assert [one.line for one in giving.give_back(("batch",), lambda: True)] == ["job 50: released"]
    # An interruption leaves a mark by which it is found again.
    mark = "headway:held;nodes=any"
    assert slurm.changes() == [
        ("scontrol", "update", "JobId=50", f"AdminComment={mark}", "StartTime=now"),
        ("scontrol", "release", "50"), ("scontrol", "update", "JobId=50", "AdminComment="),
    ]  # fmt: skip
