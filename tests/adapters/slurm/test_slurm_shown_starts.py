"""Planned starts that are shown as begin times: which are written when, and what is read of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from test_slurm_reader import NODES, NOW, PARTITIONS, SITE, components, only, pending, read

from headway import decisions as d
from headway.adapter import Given
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.look import Look
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import SlurmAdapter, marker, reader, together, writer
from headway_adapters.slurm.custody import _Round
from headway_adapters.slurm.give_back import SlurmGivingBack
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.shown_starts import Pacing, ShownStarts
from headway_adapters.transport import Result

LATER = int(NOW) + 3600
SHOWN = marker.Shown(LATER)


# ---------------------------------------------------------------------- the mark


MARKS = [
    marker.held(),
    marker.held(nodes_open=True),
    marker.held(came="north:17@1795721953"),
    marker.held(nodes_open=True, came="north:17@1795721953"),
    marker.Pin(nodes=(), restarts=2, came="north:17@1795721953", listed=("a", "b")).text(),
    marker.Pin(
        ("n1", "n2"), ("n1",), 1, 2, (("n1", 1), ("n2", 4)), reserved=True, excluded=((), ("n3",))
    ).text(),
]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("planned", [SHOWN, marker.Shown(LATER, LATER - 60)])
def test_a_planned_start_stands_in_every_mark_and_changes_nothing_else(
    mark: str, planned: marker.Shown
) -> None:
    text = marker.showing(mark, planned)
    assert marker.shown(text) == planned and marker.shown(mark) is None
    assert marker.showing(text, None) == mark
    assert marker.showing(text, SHOWN) == marker.showing(mark, SHOWN)
    assert marker.origin(text) == marker.origin(mark)
    assert marker.says_nodes_open(text) == marker.says_nodes_open(mark)
    pin, before = marker.parse(text), marker.parse(mark)
    assert (pin is None) == (before is None)
    if pin is not None and before is not None:
        assert (pin.shown, pin.nodes, pin.asked, pin.listed) == (
            planned, before.nodes, before.asked, before.listed
        )  # fmt: skip
        assert pin.text() == text


@pytest.mark.parametrize(
    "comment", ["", "hold;shown=1795721953", "x headway:held;shown=1", "headway:held;shown=x"]
)
def test_other_comments_say_nothing_of_a_planned_start(comment: str) -> None:
    assert marker.shown(comment) is None


# ---------------------------------------------------------------------- reading


def shown(begin: int, mark: marker.Shown = SHOWN, **fields: Any) -> dict[str, Any]:
    return pending(eligible_time=begin, admin_comment=marker.held(shown=mark), **fields)


def test_a_planned_start_is_no_begin_time() -> None:
    found = read(shown(LATER))
    (detail,) = found.details.values()
    assert only(found).job.begin_time is None and not only(found).job.held
    assert (detail.shown, detail.begin, detail.mark) == (SHOWN, 0, f"headway:held;shown={LATER}")


def test_the_user_s_begin_time_behind_it_counts() -> None:
    begin = int(NOW) + 1800
    found = read(shown(LATER, marker.Shown(LATER, begin)))
    assert only(found).job.begin_time == begin
    assert next(iter(found.details.values())).begin == begin
    # It has come, and the planned start has not.
    assert only(read(shown(LATER, marker.Shown(LATER, int(NOW) - 5)))).job.begin_time is None


def test_a_begin_time_that_a_user_gives_while_it_is_shown_counts() -> None:
    found = read(shown(LATER + 7))
    (detail,) = found.details.values()
    assert only(found).job.begin_time == LATER + 7
    assert detail.shown is None and detail.begin == LATER + 7
    assert only(read(shown(int(NOW) - 9, marker.Shown(LATER, LATER)))).job.begin_time is None


def test_words_of_a_user_s_comment_are_no_mark() -> None:
    theirs = pending(eligible_time=LATER, admin_comment="headway:held", comment=f"headway:held;shown={LATER}")
    assert only(read(theirs)).job.begin_time == LATER


def test_elements_of_an_array_have_their_user_s_begin_time() -> None:
    array = shown(LATER, job_id=40, array_job_id=40, array_task_string="1-3")
    found = read(array)
    assert [job.job.begin_time for job in found.jobs.values()] == [None, None, None]
    assert {detail.shown for detail in found.details.values()} == {SHOWN}


def test_a_heterogeneous_job_has_its_user_s_begin_time() -> None:
    mark = marker.held(shown=SHOWN)
    found = read(*[{**each, "eligible_time": LATER, "admin_comment": mark} for each in components()])
    assert only(found).job.begin_time is None and found.details["7"].shown == SHOWN


def test_a_dedicated_job_is_due_when_its_user_said() -> None:
    begin = int(NOW) + 60
    job = only(read(shown(LATER, marker.Shown(LATER, begin), comment="headway:dedicated")))
    assert job.job.attributes is not None and job.job.attributes["requested_start"] == begin


def test_a_job_that_went_back_to_the_queue_waits_as_slurm_says() -> None:
    pin = marker.Pin(("node1",), placement=(("node1", 1),), shown=SHOWN).text()
    job = only(read(pending(eligible_time=int(NOW) + 120, admin_comment=pin, restart_cnt=1)))
    assert job.job.begin_time == int(NOW) + 120


def test_a_listing_that_is_remembered_reads_what_was_written_since() -> None:
    remembered = reader.Remembered()

    def at(record: dict[str, Any], now: float) -> float | None:
        data = json.dumps({"errors": [], "jobs": [record]}).encode()
        found = reader.read_jobs(data, now, SITE, PARTITIONS, NODES, set(), remembered=remembered)
        return only(found).job.begin_time

    theirs = shown(LATER, marker.Shown(LATER, int(NOW) + 30))
    assert at(theirs, NOW) == int(NOW) + 30
    assert at(theirs, NOW + 31) is None
    assert at(shown(LATER + 9), NOW + 31) == LATER + 9


# ---------------------------------------------------------------------- commands


HELD = reader.Detail(held=True, mark="headway:held;nodes=any", record="7")


def words(argv: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in argv[2:])}


def test_one_command_shows_a_planned_start_and_one_takes_it_away() -> None:
    given_ = marker.Shown(LATER, LATER - 600)
    update = writer.show(HELD, given_)
    mark = f"headway:held;shown={LATER};begin={LATER - 600};nodes=any"
    assert words(update) == {"JobId": "7", "StartTime": writer.utc(LATER), "AdminComment": mark}
    showing = reader.Detail(held=True, mark=mark, shown=given_, record="7")
    back = writer.show_no_more(showing, given_, NOW)
    assert words(back) == {
        "JobId": "7", "StartTime": writer.utc(LATER - 600), "AdminComment": "headway:held;nodes=any",
    }  # fmt: skip
    assert words(writer.show_no_more(showing, given_, LATER))["StartTime"] == "now"


def test_the_update_that_pins_a_job_ends_it_and_keeps_the_mark() -> None:
    plan = writer.start(d.Start("7", (("n1", 1),)), HELD, "batch", shown=SHOWN)
    assert "StartTime=now" in plan.steps[0] and plan.pin is not None and plan.pin.shown == SHOWN
    # Slurm may have refused that, and the begin time be as before: what is restored knows it.
    back = words(writer.restore("7", plan.pin, mark=True))
    assert marker.shown(back["AdminComment"]) == SHOWN
    stated = writer.restore("7", marker.Pin(("n1",), least=1, most=1, shown=SHOWN), mark=True)
    assert words(stated)["AdminComment"] == f"headway:held;shown={LATER}"
    assert "StartTime=now" not in writer.start(d.Start("7", (("n1", 1),)), HELD, "batch").steps[0]


def test_a_hold_of_headway_s_ends_it() -> None:
    (step,) = writer.plan(d.Hold("7"), now=NOW, shown=SHOWN).steps
    assert words(step)["StartTime"] == "now" and words(step)["AdminComment"] == "hold: by headway"
    (step,) = writer.plan(d.Release("7"), now=NOW, shown=SHOWN).steps
    assert marker.shown(words(step)["AdminComment"]) == SHOWN


def test_all_components_of_a_heterogeneous_job_are_pinned_without_it() -> None:
    part = reader.Detail(held=True, record="7", mark="headway:held")
    whole = reader.Detail(held=True, record="7", parts=(("7", part), ("8", part)))
    placements = ((("n1", 1),), (("n2", 1),))
    start = d.Start("7", (("n1", 1), ("n2", 1)))
    steps, pins = together.start(start, whole, placements, ["n1", "n2"], reserved=False, shown=SHOWN)
    assert "StartTime=now" in steps.leader and pins[0].shown == SHOWN
    back = together.restore(whole, "7", pins, mark=True)
    assert f"AdminComment=headway:held;shown={LATER}" in back.leader


def test_what_is_given_back_has_its_user_s_begin_time() -> None:
    begin = int(NOW) + 10**8
    client = Client()
    list(Giving(client).waiting(read(shown(begin + 9, marker.Shown(begin + 9, begin), job_id=7))))
    assert client.ran == [
        {"JobId": "7", "AdminComment": "headway:held", "StartTime": writer.utc(begin)}, {"7": ""},
        {"JobId": "7", "AdminComment": ""},
    ]  # fmt: skip


# ---------------------------------------------------------------------- pacing


def test_the_next_to_start_are_written_first_and_so_many_a_second() -> None:
    pacing = Pacing(2.0)
    plan = {f"j{n}": NOW + 1000 + 10 * n for n in (3, 1, 2, 4)}
    first = pacing.due(plan, {}, NOW, 0.0)
    assert [key for key, _ in first] == ["j1", "j2"]
    shown = {key: target for key, target in first if target is not None}
    assert pacing.due(plan, shown, NOW, 0.0) == []
    assert [key for key, _ in pacing.due(plan, shown, NOW, 0.5)] == ["j3"]
    # A look that took long leaves three seconds' worth, no more.
    many = {f"j{n}": NOW + 1000 + 10 * n for n in range(9)}
    assert len(pacing.due(many, {}, NOW, 100.0)) == 6


def test_what_shows_no_time_or_a_wrong_one_is_not_kept_waiting_by_what_moves_a_little() -> None:
    plan = {"near": NOW + 600, "wrong": NOW + 5000, "none": NOW + 9000}
    shown = {"near": int(NOW) + 700, "wrong": int(NOW) + 6000}
    assert [key for key, _ in Pacing(10.0).due(plan, shown, NOW, 0.0)] == ["wrong", "none", "near"]


@pytest.mark.parametrize(
    ("wait", "moved", "again"),
    [
        (7200, 299, False), (7200, 301, True), (7200, -301, True),
        # A tenth of the wait.
        (1000, 99, False), (1000, 101, True),
        # A minute, at least.
        (300, 59, False), (300, 61, True),
    ],
)  # fmt: skip
def test_a_start_is_written_again_when_it_moved(wait: int, moved: int, again: bool) -> None:
    shown = {"j": int(NOW) + wait - moved}
    assert bool(Pacing(10.0).due({"j": int(NOW) + wait}, shown, NOW, 0.0)) is again


def test_what_starts_at_once_is_not_written_and_what_is_late_is() -> None:
    assert Pacing(10.0).due({"j": NOW + 30}, {}, NOW, 0.0) == []
    assert Pacing(10.0).due({"j": NOW}, {"j": int(NOW) - 400}, NOW, 0.0) == [("j", int(NOW) + 60)]


def test_a_job_without_a_planned_start_keeps_its_time_for_a_minute() -> None:
    pacing, shown = Pacing(10.0), {"j": LATER}
    assert pacing.due({}, shown, NOW, 0.0) == [] == pacing.due({}, shown, NOW, 59.0)
    assert pacing.due({"j": LATER}, shown, NOW, 61.0) == []
    assert pacing.due({}, shown, NOW, 70.0) == []
    assert pacing.due({}, shown, NOW, 130.0) == [("j", None)]
    assert Pacing(10.0).due({}, shown, NOW, 0.0, grace=0.0) == [("j", None)]


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e6)),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-(10**6), 10**6)),
    st.floats(0.1, 20),
)
def test_a_plan_that_stands_still_costs_no_command_once_it_is_written(
    waits: dict[str, float], before: dict[str, int], rate: float
) -> None:
    pacing = Pacing(rate)
    plan = {key: NOW + wait for key, wait in waits.items()}
    shown = {key: int(NOW) + moved for key, moved in before.items()}
    for moment in range(0, 1000, 10):
        for key, target in pacing.due(plan, shown, NOW, float(moment)):
            shown.pop(key, None)
            if target is not None:
                shown[key] = target
    assert pacing.due(plan, shown, NOW, 10_000.0) == []
    assert shown.keys() <= plan.keys()
    assert all(abs(shown[key] - plan[key]) <= 301 for key in shown)


# ---------------------------------------------------------------------- what a look brings about


class Client:
    """Takes commands; ``refuses``: with this complaint."""

    def __init__(self) -> None:
        self.ran: list[dict[str, str]] = []
        self.refuses = ""

    def change_all(self, argvs: Any) -> list[Result]:
        self.ran += [words(argv) for argv in argvs]
        rc = 1 if self.refuses else 0
        return [Result(tuple(argv), rc, b"", self.refuses, 0.0) for argv in argvs]

    def run(self, argv: Any) -> Result:
        (answer,) = self.change_all([argv])
        return answer


class Giving(SlurmGivingBack):
    """Gives back with the commands of a client that is pretended."""

    def __init__(self, client: Client) -> None:
        self._pretended = client
        super().__init__(SlurmOptions(partitions=("batch",)))

    def connect(self, options: SlurmOptions, *, read_only: bool) -> Any:
        super().connect(options, read_only=read_only)
        self._commands = Commands(self._pretended, "Slurm", structlog.get_logger())  # type: ignore[arg-type]
        return self._pretended

    def waiting(self, found: reader.Jobs) -> Iterator[Given]:
        return self._waiting(found, lambda: True)


@pytest.fixture
def client() -> Client:
    return Client()


def showing(client: Client, *, on: bool = True) -> ShownStarts:
    log = structlog.get_logger()
    commands = Commands(client, "Slurm", log)  # type: ignore[arg-type]
    return ShownStarts(commands, Notes("slurm", log), Pacing(100.0), on=on)


def look(*records: dict[str, Any]) -> Look[reader.Detail]:
    found = read(*records)
    return Look(Snapshot(NOW, found.jobs), found.details)


def held(**fields: Any) -> dict[str, Any]:
    return pending(**{"admin_comment": "headway:held", "eligible_time": 0, **fields})


def test_a_plan_is_written_once(client: Client) -> None:
    shown_, job = showing(client), held(job_id=15)
    shown_.tend(look(job), set())
    assert client.ran == []
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(job), set())
    (update,) = client.ran
    assert update["JobId"] == "15" and update["StartTime"] == writer.utc(LATER)
    after = {**job, "eligible_time": LATER, "admin_comment": update["AdminComment"]}
    shown_.tend(look(after), set())
    assert len(client.ran) == 1
    # The look may not show it yet, and the job is to start.
    assert shown_.of(look(job).details["15"]) == SHOWN


@pytest.mark.parametrize(
    "fields",
    [
        {"admin_comment": "hold: by Ann"}, {"admin_comment": "of Ann"}, {"admin_comment": ""},
        {"admin_comment": "headway:new", "state_reason": "JobHeldUser"},
        {"admin_comment": "headway:held", "state_reason": "JobHeldUser"},
        {"admin_comment": f"headway:asked={LATER}", "eligible_time": LATER},
        {"admin_comment": "headway:leaving=south:99"}, {"priority": 5, "state_reason": "None"},
        {"partition": "elsewhere"},
    ],
)  # fmt: skip
def test_only_what_headway_holds_shows_a_planned_start(client: Client, fields: dict[str, Any]) -> None:
    shown_ = showing(client)
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(held(job_id=15, **fields)), set())
    assert client.ran == []


def test_a_job_that_is_on_its_way_is_left_alone(client: Client) -> None:
    shown_ = showing(client)
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(held(job_id=15)), {"15"})
    assert client.ran == []


def test_an_array_shows_its_first_start_with_one_command(client: Client) -> None:
    shown_ = showing(client)
    shown_.plan([("40_3", LATER + 50.0), ("40_2", float(LATER)), ("40_1", LATER + 9.0)])
    shown_.tend(look(held(job_id=40, array_job_id=40, array_task_string="1-3")), set())
    assert [(each["JobId"], each["StartTime"]) for each in client.ran] == [("40", writer.utc(LATER))]


def test_no_planned_start_is_before_the_user_s_begin_time(client: Client) -> None:
    shown_, begin = showing(client), LATER + 500
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(held(job_id=15, eligible_time=begin)), set())
    (update,) = client.ran
    assert update["StartTime"] == writer.utc(begin)
    assert marker.shown(update["AdminComment"]) == marker.Shown(begin, begin)


def test_switched_off_all_times_are_taken_away(client: Client) -> None:
    shown_ = showing(client, on=False)
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(shown(LATER, job_id=15), held(job_id=16)), set())
    assert client.ran == [{"JobId": "15", "StartTime": "now", "AdminComment": "headway:held"}]


def test_a_job_that_its_user_holds_shows_none_after_a_while(client: Client) -> None:
    shown_ = showing(client, on=False)
    shown_.tend(look(shown(LATER, job_id=15, state_reason="JobHeldUser")), set())
    assert [each["StartTime"] for each in client.ran] == ["now"]


def test_words_that_an_administrator_writes_over_the_mark_leave_no_begin_time(client: Client) -> None:
    shown_ = showing(client)
    shown_.plan([("15", float(LATER))])
    shown_.tend(look(held(job_id=15)), set())
    shown_.plan([])
    over = look(held(job_id=15, eligible_time=LATER, admin_comment="hold: ask Ann"))
    shown_._pacing._without["15"] = -1e9
    shown_.tend(over, set())
    assert client.ran[1:] == [{"JobId": "15", "StartTime": "now"}]


def test_a_job_that_slurm_does_not_let_change_is_not_tried_at_each_look(client: Client) -> None:
    shown_, client.refuses = showing(client), "Invalid job id specified"
    shown_.plan([("15", float(LATER))])
    for _ in range(3):
        shown_.tend(look(held(job_id=15)), set())
    assert len(client.ran) == 1


def test_nothing_is_written_where_headway_only_watches() -> None:
    options = {"partitions": ["batch"], "show_starts": True}
    assert not SlurmAdapter(options, read_only=True).shows_starts
    assert SlurmAdapter(options).shows_starts


def test_a_job_that_an_administrator_released_is_taken_over_with_its_mark() -> None:
    free = look(shown(LATER, job_id=15, priority=5, state_reason="None"))
    due = _Round()
    due.add("15", free.snapshot.jobs["15"], free.details["15"])
    assert due.takes == {"15": f"headway:held;shown={LATER}"}


def test_control_is_handed_back_with_users_begin_times(client: Client) -> None:
    begin = int(NOW) + 10**8
    mark = marker.Shown(begin + 60, begin)
    user_s = shown(begin + 60, mark, job_id=15, state_reason="JobHeldUser")
    held_too = shown(LATER, job_id=16, comment="x headway:user-hold")
    parts = [{**each, "eligible_time": LATER} for each in components()]
    parts = [{**each, "admin_comment": marker.held(shown=SHOWN)} for each in parts]
    list(Giving(client).waiting(read(user_s, held_too, *parts)))
    ran = {each["JobId"]: each for each in client.ran if "StartTime" in each}
    assert ran["15"] == {
        "JobId": "15", "StartTime": writer.utc(begin), "AdminComment": "headway:held",
    }  # fmt: skip
    assert ran["16"]["AdminComment"] == "headway:held" and {"16": ""} in client.ran
    assert ran["7"] == {"JobId": "7", "StartTime": "now", "AdminComment": "headway:held"}
    assert {"JobId": "7", "AdminComment": ""} in client.ran
