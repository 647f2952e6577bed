"""The adapter against a pretended PBS: outages, nonsense, monitor mode, lost jobs, full vnodes."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pbs_recorded import FIXTURES, job
from pretended import events, result
from pretended_pbs import RUNS, Answer, PretendedPbs, adapter, listed, text_of
from structlog.testing import capture_logs
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, PoolDescription
from headway_adapters.pbs import PbsAdapter, PbsOptions
from headway_adapters.pbs.client import PbsClient, only_reads
from headway_adapters.pbs.give_back import PbsGivingBack
from headway_adapters.transport import Result


@pytest.fixture
def pbs() -> PretendedPbs:
    return PretendedPbs()


def started(one: PbsAdapter) -> None:
    one.describe()
    events(one, 0.1)


START = d.Start("1.pbshost", (("pbshost[1]", 8),))


def test_the_cluster_is_described(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        found = one.describe()
    assert (found.name, [pool.name for pool in found.pools]) == ("pbshost", ["workq"])
    assert [node.name for node in found.nodes] == [f"pbshost[{at}]" for at in range(4)]


def test_a_start_and_its_confirmation(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        assert one.apply(time.time(), [START])[0].accepted
        pbs.jobs["1.pbshost"].update(RUNS, exec_vnode="(pbshost[1]:ncpus=4)+(pbshost[1]:ncpus=4)")
        (told,) = [event for event in events(one) if isinstance(event, ev.JobStarted)]
    assert (told.job_id, told.placement) == ("1.pbshost", (("pbshost[1]", 8),))
    assert ("qrun", "-H", "(pbshost[1]:ncpus=4)+(pbshost[1]:ncpus=4)", "1.pbshost") in pbs.said


@pytest.mark.parametrize(
    ("placement", "says"),
    [
        ((("pbshost[0]", 8),), "vnode pbshost[0] has 2 processors free, not 8"),
        ((("pbshost[9]", 8),), "'pbshost[9]' is not a vnode of the managed queues"),
        ((("pbshost", 8),), "'pbshost' is not a vnode of the managed queues"),
        ((("pbshost[2]", 8),), "vnode pbshost[2] is not usable (offline)"),
        ((("pbshost[1]", 4),), "a chunk of 4 processors has no vnode"),
    ],
)
def test_what_qrun_would_do_without_a_word_is_refused_here(
    pbs: PretendedPbs, placement: Any, says: str
) -> None:
    pbs.nodes["nodes"]["pbshost[2]"]["state"] = "offline"
    with adapter(pbs) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [d.Start("1.pbshost", placement)])
        assert not outcome.accepted
        assert says in outcome.message
        assert [event.message for event in events(one) if isinstance(event, ev.DecisionFailed)]
    assert not [argv for argv in pbs.said if argv[0] == "qrun"]


def test_starts_of_one_moment_and_those_on_their_way_share_no_processor(pbs: PretendedPbs) -> None:
    pbs.jobs["3.pbshost"] = job(select="1:ncpus=2")
    pbs.jobs["4.pbshost"] = job(select="1:ncpus=1")
    with adapter(pbs, start_timeout=60) as one:
        started(one)
        outcomes = one.apply(
            time.time(),
            [START, d.Start("3.pbshost", (("pbshost[1]", 2),)), d.Start("3.pbshost", (("pbshost[0]", 2),))],
        )
        assert [outcome.accepted for outcome in outcomes] == [True, False, False]
        assert one.apply(time.time(), [d.Start("3.pbshost", (("pbshost[0]", 2),))])[0].accepted
        events(one, 0.1)
        for full in ("pbshost[0]", "pbshost[1]"):
            assert not one.apply(time.time(), [d.Start("4.pbshost", ((full, 1),))])[0].accepted


def agents(directory: Path) -> dict[str, str]:
    """Options of agents that never answer."""
    key = directory / "key"
    key.write_text("0" * 64)
    key.chmod(0o600)
    return {"key": str(key), "address": f"unix:{directory}/nobody"}


def behind(job_id: str, vnode: str, count: int) -> d.Start:
    return d.Start(job_id, ((vnode, count),), tier="background")


def test_each_tier_has_room_of_its_own(pbs: PretendedPbs, tmp_path: Path) -> None:
    pbs.jobs["3.pbshost"] = job(select="1:ncpus=8")
    pbs.jobs["4.pbshost"] = job(select="1:ncpus=1")
    with adapter(pbs, start_timeout=60, agents=agents(tmp_path)) as one:
        started(one)
        assert one.apply(time.time(), [START])[0].accepted
        assert one.apply(time.time(), [behind("3.pbshost", "pbshost[1]", 8)])[0].accepted
        events(one, 0.1)
        (outcome,) = one.apply(time.time(), [behind("4.pbshost", "pbshost[1]", 1)])
        assert "vnode pbshost[1] has 0 processors free in the background, not 1" in outcome.message
        (outcome,) = one.apply(time.time(), [d.Start("4.pbshost", (("pbshost[1]", 1),))])
        assert "vnode pbshost[1] has 0 processors free, not 1" in outcome.message
        # It is behind the job that runs there, which has six of eight.
        assert one.apply(time.time(), [behind("4.pbshost", "pbshost[0]", 1)])[0].accepted


def test_nobody_shares_a_vnode_that_somebody_has_whole(pbs: PretendedPbs, tmp_path: Path) -> None:
    pbs.jobs["3.pbshost"] = job(select="1:ncpus=8", place="excl")
    pbs.jobs["4.pbshost"] = job(select="1:ncpus=1")
    with adapter(pbs, start_timeout=60, agents=agents(tmp_path)) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [behind("3.pbshost", "pbshost[1]", 8)])
        assert "which would be shared in the background" in outcome.message
        assert one.apply(time.time(), [d.Start("3.pbshost", (("pbshost[1]", 8),))])[0].accepted
        (outcome,) = one.apply(time.time(), [behind("4.pbshost", "pbshost[1]", 1)])
        assert "belongs to a job that has all of it" in outcome.message


def test_without_agents_there_is_no_background(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [behind("1.pbshost", "pbshost[1]", 8)])
        assert "the background needs cluster.options.agents" in outcome.message


def test_memory_is_looked_at_too(pbs: PretendedPbs) -> None:
    pbs.jobs["3.pbshost"] = job(select="1:ncpus=1:mem=3gb")
    pbs.jobs["4.pbshost"] = job(select="1:ncpus=1:mem=2gb")
    with adapter(pbs) as one:
        started(one)
        both = [d.Start(key, (("pbshost[1]", 1),)) for key in ("3.pbshost", "4.pbshost")]
        outcomes = one.apply(time.time(), both)
    assert [outcome.accepted for outcome in outcomes] == [True, False]
    assert "too little memory" in outcomes[1].message


def test_a_host_that_is_to_be_had_whole_must_be_empty(pbs: PretendedPbs) -> None:
    pbs.jobs["3.pbshost"] = job(select="1:ncpus=1", place="exclhost")
    with adapter(pbs) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [d.Start("3.pbshost", (("pbshost[1]", 8),))])
    assert "vnode pbshost[0] would be shared, and the job asks for all of it" in outcome.message


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"job_state": "H", "Hold_Types": "u"}, "held by its user"),
        ({"job_state": "W", "Execution_Time": "Sat Nov 21 08:33:00 2099"}, "its begin time has not come"),
        ({"job_state": "H", "Hold_Types": "s", "depend": "afterok:2.pbshost@pbshost"}, "it is not queued"),
    ],
)
def test_a_job_that_qrun_would_start_against_its_owners_will_is_refused_here(
    pbs: PretendedPbs, fields: dict[str, Any], says: str
) -> None:
    pbs.jobs["1.pbshost"].update(fields)
    with adapter(pbs) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [START])
    assert not outcome.accepted
    assert says in outcome.message


@pytest.mark.parametrize(
    ("stderr", "accepted"),
    [
        ("qrun: Unknown Job Id 1.pbshost", False), ("qrun: Unauthorized Request  1.pbshost", False),
        ("qrun: Resource temporarily unavailable 1.pbshost", False),
        ("qrun: Unknown node  (v:ncpus=1)", False),
        # It runs already, perhaps because an answer was lost: the next look tells.
        ("qrun: Request invalid for state of job 1.pbshost", True),
        ("Connection refused\nqrun: cannot connect to server pbshost (errno=15010)", True),
    ],
)  # fmt: skip
def test_refusals_and_what_is_left_open(pbs: PretendedPbs, stderr: str, accepted: bool) -> None:
    pbs.answer = lambda argv: result(argv, rc=2, stderr=stderr) if argv[0] == "qrun" else None
    with adapter(pbs) as one:
        started(one)
        (outcome,) = one.apply(time.time(), [START])
        assert outcome.accepted is accepted


def test_an_element_that_ends_before_it_was_seen_has_run(pbs: PretendedPbs) -> None:
    pbs.jobs["5[].pbshost"] = job(job_state="B", array="True")
    pbs.jobs["5[1].pbshost"] = job()
    with adapter(pbs) as one:
        started(one)
        assert one.apply(time.time(), [d.Start("5[1].pbshost", (("pbshost[1]", 1),))])[0].accepted
        ended = {"job_state": "X", "Exit_status": 0, "obittime": "Sat Nov 21 06:33:10 2026"}
        pbs.jobs["5[1].pbshost"].update(RUNS, **{**ended, "substate": 92})
        told = [event for event in events(one) if getattr(event, "job_id", "") == "5[1].pbshost"]
    assert [type(event) for event in told] == [ev.JobStarted, ev.JobEnded]
    assert told[0].placement == (("pbshost[1]", 1),)
    assert told[0].time == 1795242780.0


def test_a_start_that_does_not_happen_is_told(pbs: PretendedPbs) -> None:
    with adapter(pbs, start_timeout=0.2) as one:
        started(one)
        assert one.apply(time.time(), [START])[0].accepted
        (told,) = [event for event in events(one, 0.8) if isinstance(event, ev.DecisionFailed)]
    assert told.decision == START
    assert "did not start within 0.2 s" in told.message


def test_a_start_that_bounced_before_it_was_seen_is_told(pbs: PretendedPbs) -> None:
    with adapter(pbs, start_timeout=60) as one:
        started(one)
        assert one.apply(time.time(), [START])[0].accepted
        pbs.jobs["1.pbshost"]["run_count"] = 1
        (told,) = [event for event in events(one) if isinstance(event, ev.DecisionFailed)]
    assert told.message == "it started and went back to the queue at once"


def test_a_start_at_the_very_second_is_repeated_once_pbs_has_seen_the_time(pbs: PretendedPbs) -> None:
    pbs.jobs["1.pbshost"].update(job_state="W", Execution_Time="Sat Nov 21 06:31:00 2020")
    early = "qrun: Resource temporarily unavailable 1.pbshost"

    def answer(argv: tuple[str, ...]) -> Result | None:
        waits = pbs.jobs["1.pbshost"]["job_state"] == "W"
        return result(argv, rc=2, stderr=early) if argv[0] == "qrun" and waits else None

    pbs.answer = answer
    with adapter(pbs, start_timeout=60) as one:
        started(one)
        assert one.apply(time.time(), [START])[0].accepted
        events(one, 0.2)
        pbs.jobs["1.pbshost"].update(job_state="Q")
        # That it may be started is no news: it is on its way.
        assert not [event for event in events(one) if isinstance(event, ev.DecisionFailed)]
    assert sum(argv[0] == "qrun" for argv in pbs.said) == 2


# ---------------------------------------------------------------------- no more commands than connections


def test_starts_beyond_the_budget_have_their_turn_later(
    pbs: PretendedPbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thirds of 30 are the starts', half of them at once; another may be run after each six seconds."""
    pbs.jobs = {f"{number}.pbshost": job() for number in range(100, 114)}
    placed = [d.Start(key, ((f"pbshost[{at % 3}]", 1 + at // 3),)) for at, key in enumerate(pbs.jobs)]
    for start in placed:
        pbs.jobs[start.job_id] = job(select=f"1:ncpus={start.placement[0][1]}")
    for vnode in pbs.nodes["nodes"].values():
        vnode["resources_available"]["ncpus"] = 100
    with adapter(pbs, commands_per_minute=30, start_timeout=1.0) as one:
        budget = one._client.budget
        clock = [time.monotonic()]
        monkeypatch.setattr(budget, "_clock", lambda: clock[0])
        monkeypatch.setattr(budget, "wait", lambda commands: None)
        started(one)
        with capture_logs() as logs:
            outcomes = one.apply(time.time(), placed)
        assert all(outcome.accepted for outcome in outcomes)
        waits = "the budget of commands, 30 a minute"
        assert [outcome.message for outcome in outcomes].count(f"it waits for {waits}") == 4
        assert [entry["starts"] for entry in logs if entry["event"] == f"starts wait for {waits}"] == [4]
        assert [wait.sentence for wait in one.starts_waiting()] == [f"4 starts wait for {waits}"]
        assert sum(argv[0] == "qrun" for argv in pbs.said) == 10
        for start in placed[:10]:
            vnode, count = start.placement[0]
            pbs.jobs[start.job_id].update(RUNS, exec_vnode=f"({vnode}:ncpus={count})")
        # Longer than start_timeout: the time to start begins with the command.
        with capture_logs() as logs:
            told = events(one, 1.5)
        assert not [event for event in told if isinstance(event, ev.DecisionFailed)]
        assert not [entry for entry in logs if "wait for" in entry["event"]], "it is told once"
        assert sum(argv[0] == "qrun" for argv in pbs.said) == 10
        # What became impossible meanwhile is not tried.
        pbs.jobs["113.pbshost"].update(job_state="H", Hold_Types="o")
        del pbs.jobs["112.pbshost"]
        clock[0] += 61.0
        told = events(one)
        assert not one.starts_waiting()
    assert [argv[-1] for argv in pbs.said if argv[0] == "qrun"][10:] == ["110.pbshost", "111.pbshost"]
    (failed,) = [event for event in told if isinstance(event, ev.DecisionFailed)]
    assert failed.decision.job_id == "113.pbshost"


def test_starts_on_the_same_vnodes_are_one_command_and_fail_alone(pbs: PretendedPbs) -> None:
    pbs.jobs = {f"{number}.pbshost": job() for number in range(100, 106)}
    refusal = "qrun: Resource temporarily unavailable 102.pbshost"

    def answer(argv: tuple[str, ...]) -> Result | None:
        return result(argv, rc=2, stderr=f"{refusal}\n") if "102.pbshost" in argv else None

    pbs.answer = answer
    with adapter(pbs) as one:
        started(one)
        starts = [d.Start(key, ((f"pbshost[{at % 2}]", 1),)) for at, key in enumerate(pbs.jobs)]
        outcomes = one.apply(time.time(), starts)
    assert [argv[2:] for argv in pbs.said if argv[0] == "qrun"] == [
        ("(pbshost[0]:ncpus=1)", "100.pbshost", "102.pbshost", "104.pbshost"),
        ("(pbshost[1]:ncpus=1)", "101.pbshost", "103.pbshost", "105.pbshost"),
    ]
    assert [outcome.message for outcome in outcomes if not outcome.accepted] == [refusal]


def test_a_look_takes_two_commands_and_now_and_then_two_more(pbs: PretendedPbs) -> None:
    del pbs.nodes["nodes"]["pbshost[3]"]["resv"]
    with adapter(pbs, poll_interval=60.0) as one:
        one.describe()
        pbs.said.clear()
        one.look(None)
        assert [argv[0] for argv in pbs.said] == ["qstat", "pbsnodes"]


# ---------------------------------------------------------------------- outages, lost jobs


def silent(argv: tuple[str, ...]) -> Result:
    said = "Connection refused\nqstat: cannot connect to server pbshost (errno=15010)"
    return result(argv, rc=255, stderr=said)


def cut(argv: tuple[str, ...]) -> Result | None:
    if argv[0] == "qstat" and "-t" in argv and "-x" not in argv:
        return result(argv, listed(json.loads(text_of("qstat_full_json"))["Jobs"], argv)[:2000])
    return None


BROKEN: dict[str, Answer] = {
    "refused": silent,
    "hangs": lambda argv: Result(argv, 124, b"", "", 15.0, timed_out=True),
    "connection cut": lambda argv: Result(argv, 255, b"", "", 15.0, cut=True),
    "nonsense": lambda argv: result(argv, "<html>Bad gateway</html>\n"),
    "nothing at all": result,
    "wrong bytes": lambda argv: Result(argv, 0, b"\xff\xfe\x00", "", 0.01),
    "cut in the middle": cut,
    "history refused": lambda argv: silent(argv) if "-x" in argv else result(argv) if "-t" in argv else None,
    "no vnodes": lambda argv: result(argv, '{"nodes": {}}') if argv[0] == "pbsnodes" else None,
    "no queues": lambda argv: result(argv, "{}") if "-Q" in argv else None,
    "no reservations": lambda argv: silent(argv) if argv[0] == "pbs_rstat" else None,
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_outage_is_no_news_and_is_logged_once(pbs: PretendedPbs, what: str) -> None:
    with capture_logs() as logs, adapter(pbs) as one:
        one.describe()
        assert {e.job.id for e in events(one) if isinstance(e, ev.JobSubmitted)} == {"1.pbshost", "2.pbshost"}
        news: list[ev.Event] = []

        def looked() -> list[str]:
            news.extend(events(one, 0.1))
            return said(logs)

        pbs.answer = BROKEN[what]
        until(lambda: len(looked()) == 1, "the outage is logged", pause=0.0)
        news += events(one, 0.5)
        pbs.answer = lambda argv: None
        until(lambda: len(looked()) == 2, "its end is logged", pause=0.0)
        news += events(one, 0.5)
    assert [type(event) for event in news] == [ev.ClusterSilent, ev.ClusterAnswers]
    assert said(logs) == ["pbs does not answer; waiting for it", "pbs answers again"]


def said(logs: Sequence[Any]) -> list[str]:
    return [log["event"] for log in logs if "answer" in log["event"]]


def test_a_server_that_is_down_at_first_is_a_failure(pbs: PretendedPbs) -> None:
    pbs.answer = silent
    with adapter(pbs) as one, pytest.raises(Failure, match="cannot connect to server"):
        one.describe()


def test_how_a_job_ended_is_in_pbss_history(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        ended = {"job_state": "F", "substate": 92, "Exit_status": 3, "obittime": "Sat Nov 21 06:40:00 2026"}
        pbs.gone["2.pbshost"] = {**pbs.jobs["2.pbshost"], **ended}
        pbs.jobs = {}
        told = {e.job_id: e for e in events(one) if isinstance(e, ev.JobEnded)}
    assert (told["2.pbshost"].outcome, told["2.pbshost"].exit_code) == ("failed", 3)
    assert told["2.pbshost"].time == 1795243200.0
    assert told["1.pbshost"].outcome == "vanished"


def test_a_job_that_only_the_listing_forgot_goes_on(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        pbs.gone, pbs.jobs = pbs.jobs, {}
        assert events(one) == []


@pytest.mark.parametrize(
    ("rc", "stderr", "told"),
    [
        (159, "qstat: Unauthorized Request 2.pbshost", {"1.pbshost": "vanished"}),
        (1, "", {}),
        (153, "qstat: Unknown Job Id 1.pbshost\nqstat: what nobody foresaw 2.pbshost", {}),
        (0, "", {}),
    ],
)
def test_an_answer_that_is_not_understood_costs_its_job_a_look(
    pbs: PretendedPbs, rc: int, stderr: str, told: dict[str, str]
) -> None:
    """Nothing is told of a job about which PBS says what we do not know; the looks go on."""

    def answer(argv: tuple[str, ...]) -> Result | None:
        if "2.pbshost" not in argv:
            return None
        if "1.pbshost" in argv and told:
            return result(argv, "", rc, f"qstat: Unknown Job Id 1.pbshost\n{stderr}")
        return result(argv, "", rc, stderr)

    with capture_logs() as logs, adapter(pbs) as one:
        started(one)
        pbs.answer = answer
        pbs.jobs = {"5.pbshost": job()}
        told_of = events(one)
        assert [e.job.id for e in told_of if isinstance(e, ev.JobSubmitted)] == ["5.pbshost"]
        assert not [e for e in told_of if isinstance(e, ev.JobEnded)]
        pbs.answer = lambda argv: None
        ended = {e.job_id: e.outcome for e in events(one) if isinstance(e, ev.JobEnded)}
    assert ended == {"1.pbshost": "vanished", "2.pbshost": "vanished"}
    assert not [log for log in logs if "does not answer" in log["event"]]


@given(st.data())
@settings(deadline=None)
def test_whatever_a_command_answers_the_next_good_look_is_as_ever(data: st.DataObject) -> None:
    """Each command's answer, damaged somewhere: an outage at the worst, never a wrong word about a job
    that the next look does not set right, and never another exception."""
    pbs = PretendedPbs()
    spoilt = data.draw(st.sampled_from(["-t", "-x", "-Q", "-B", "pbsnodes", "pbs_rstat"]))
    at, junk = data.draw(st.floats(0, 1)), data.draw(st.binary(max_size=8))
    rc, length = data.draw(st.sampled_from([0, 0, 1, 2, 153, 255])), data.draw(st.integers(0, 60))

    def answer(argv: tuple[str, ...]) -> Result | None:
        if spoilt not in argv:
            return None
        good = pbs.listed(argv)
        where = int(at * len(good.stdout))
        return msgspec.structs.replace(
            good, rc=rc, stdout=good.stdout[:where] + junk + good.stdout[where + length :]
        )

    with capture_logs(), adapter(pbs) as one:
        before = one.look(None).snapshot
        pbs.answer = answer
        with contextlib.suppress(Failure):
            one.look(before)
        pbs.answer = lambda argv: None
        again = one.look(before).snapshot
    # The vnodes may be read from the text form for a while, which is another recording.
    assert (again.jobs, again.pools) == (before.jobs, before.pools)


def test_without_a_history_ends_are_asked_all_the_same(pbs: PretendedPbs) -> None:
    off = text_of("qstat_server_json").replace(
        '"job_history_enable":\t"True"', '"job_history_enable":\t"False"'
    )
    pbs.answer = lambda argv: result(argv, off) if "-B" in argv else None
    with adapter(pbs) as one:
        started(one)
        pbs.jobs = {}
        told = [e.outcome for e in events(one) if isinstance(e, ev.JobEnded)]
    assert told == ["vanished", "vanished"]
    assert not [argv for argv in pbs.said if argv[0] == "qstat" and "-x" in argv]


def test_vnodes_are_read_from_text_where_their_json_is_unusable(pbs: PretendedPbs) -> None:
    pbs.answer = lambda argv: (
        result(argv, '{"nodes": {"a": 007}}') if argv[0] == "pbsnodes" and "-F" in argv else None
    )
    with adapter(pbs) as one:
        assert len(one.describe().nodes) == 4


def test_a_job_of_another_queue_is_load(pbs: PretendedPbs) -> None:
    pbs.jobs["7.pbshost"] = job(queue="R5", **RUNS, exec_vnode="(pbshost[1]:ncpus=8)")
    with adapter(pbs) as one:
        one.describe()
        told = [e for e in events(one) if isinstance(e, ev.JobStarted) and e.job_id == "7.pbshost"]
        assert [e.placement for e in told] == [(("pbshost[1]", 8),)]
        assert not one.apply(time.time(), [START])[0].accepted


def pools_told(one: PbsAdapter) -> list[tuple[str, bool]]:
    return [(e.pool.name, e.pool.open) for e in events(one) if isinstance(e, ev.PoolChanged)]


def test_a_queue_that_is_created_opened_and_deleted_is_told(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        pbs.queues["late"] = {"queue_type": "Execution", "started": "True"}
        assert pools_told(one) == [("late", False)]
        pbs.queues["workq"]["started"] = "False"
        assert pools_told(one) == [("workq", False)]
        pbs.queues["workq"]["started"] = "True"
        assert pools_told(one) == [("workq", True)]
        # It was closed to headway as it was.
        del pbs.queues["late"]
        assert pools_told(one) == []


def test_a_queue_of_headways_that_is_deleted_is_named_in_the_log(pbs: PretendedPbs) -> None:
    pbs.queues["late"] = {"queue_type": "Execution", "started": "True"}
    with capture_logs() as logs, adapter(pbs) as one:
        started(one)
        # That is nobody's.
        del pbs.queues["late"]
        assert pools_told(one) == []
        del pbs.queues["workq"]
        assert pools_told(one) == [("workq", False)]
        assert pools_told(one) == []
    assert [entry["pool"] for entry in logs if entry["event"] == "a pool is gone"] == ["workq"]


def test_a_new_queue_is_known_as_soon_as_it_has_a_job(pbs: PretendedPbs) -> None:
    with adapter(pbs, poll_interval=3600.0) as one:
        one.describe()
        pbs.queues["late"] = {"queue_type": "Execution", "started": "True"}
        pbs.jobs["7.pbshost"] = job(queue="late", **RUNS, exec_vnode="(pbshost[1]:ncpus=8)")
        told = events(one)
    assert told[0] == ev.PoolChanged(told[0].time, PoolDescription("late", open=False))
    assert "7.pbshost" in {event.job_id for event in told if isinstance(event, ev.JobStarted)}


def test_a_queue_that_is_not_listed_is_asked_for_once(pbs: PretendedPbs) -> None:
    pbs.jobs["7.pbshost"] = job(queue="hidden", **RUNS, exec_vnode="(pbshost[1]:ncpus=8)")
    with adapter(pbs, poll_interval=3600.0) as one:
        assert PoolDescription("hidden", open=False) in one.describe().pools
        pbs.said.clear()
        one.look(None)
        assert not [argv for argv in pbs.said if "-Q" in argv]


def test_times_are_read_right_where_the_zone_is_not_passed_on(pbs: PretendedPbs) -> None:
    later = text_of("pbsnodes_text").replace(" 06:", " 08:")
    pbs.answer = lambda argv: result(argv, later) if argv == ("pbsnodes", "-av") else None
    with adapter(pbs) as one:
        one.describe()
        told = {e.job.id: e.job for e in events(one) if isinstance(e, ev.JobSubmitted)}
    assert told["1.pbshost"].submit_time == 1795242600.0 - 7200


# ---------------------------------------------------------------------- everything else


def test_monitor_mode_runs_no_command_that_changes_anything(pbs: PretendedPbs) -> None:
    with adapter(pbs, read_only=True) as one:
        started(one)
        for decision in (START, d.Kill("2.pbshost"), d.Hold("1.pbshost"), d.SetTimeLimit("1.pbshost", 60)):
            assert not one.apply(time.time(), [decision])[0].accepted
        one.check()
    assert pbs.said
    assert all(only_reads(argv) for argv in pbs.said)


def test_the_servers_own_scheduling_is_noticed(pbs: PretendedPbs) -> None:
    on = text_of("qstat_server_json").replace('"scheduling":\t"False"', '"scheduling":\t"True"')
    pbs.answer = lambda argv: result(argv, on) if "-B" in argv else None
    with capture_logs() as logs, adapter(pbs) as one:
        started(one)
        events(one)
        (scheduling,) = [check for check in one.check() if check.subject == "server scheduling"]
    (note,) = [log["what"] for log in logs if log["event"] == "odd in pbs's output"]
    assert "scheduling is on" in note
    assert not scheduling.ok
    assert "scheduling = False" in scheduling.remedy


def test_ending_a_job_that_has_ended_is_done_already(pbs: PretendedPbs) -> None:
    pbs.answer = lambda argv: (
        result(argv, rc=153, stderr=f"{argv[0]}: Unknown Job Id {argv[-1]}")
        if argv[0] in ("qdel", "qhold")
        else None
    )
    with adapter(pbs) as one:
        started(one)
        assert one.apply(time.time(), [d.Kill("2.pbshost")])[0].accepted
        assert not one.apply(time.time(), [d.Hold("1.pbshost")])[0].accepted


def test_what_is_so_already_needs_no_command(pbs: PretendedPbs) -> None:
    pbs.jobs["3.pbshost"] = job(**{**RUNS, "job_state": "S"}, exec_vnode="(pbshost[1]:ncpus=1)")
    with adapter(pbs) as one:
        started(one)
        asked = [d.Suspend("3.pbshost"), d.Resume("2.pbshost")]
        assert [outcome.accepted for outcome in one.apply(time.time(), asked)] == [True, True]
    assert not [argv for argv in pbs.said if argv[0] == "qsig"]


def test_missing_capabilities_are_said_clearly(pbs: PretendedPbs) -> None:
    with adapter(pbs) as one:
        started(one)
        outcomes = one.apply(time.time(), [d.SetFrequency("2.pbshost", 2e9), d.PowerDown(("pbshost[0]",))])
    assert [outcome.message for outcome in outcomes] == [
        "SetFrequency cannot be carried out on this PBS", "PowerDown cannot be carried out on this PBS",
    ]  # fmt: skip


def test_options_add_and_torque_takes_capabilities() -> None:
    def capabilities(**options: Any) -> set[str]:
        with PbsAdapter({"queues": ["q"], **options}) as one:
            return {kind.__name__ for kind in one.capabilities}

    plain = capabilities()
    actuators = {
        "power_down": ["ipmi", "{node}"], "power_up": ["ipmi", "{node}"],
        "set_frequency": ["clock", "{node}", "{hertz}"],
    }  # fmt: skip
    assert capabilities(actuators=actuators, reservations=True) - plain == {
        "PowerDown", "PowerUp", "Reserve", "Unreserve", "Bind", "SetFrequency",
    }  # fmt: skip
    able = PbsAdapter.capable_of(ClusterDescription.flat(1), {"queues": ["q"], "reservations": True})
    assert {kind.__name__ for kind in able} - plain == {"Reserve", "Unreserve", "Bind"}
    assert plain - capabilities(flavour="torque", reservations=True) == {"Resize"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["cluster.options: queues", "expected a value, found none"]),
        ({"queues": ["workq"], "pollinterval": 3}, ["cluster.options: pollinterval", "unknown key"]),
        ({"queues": ["-Q"]}, ["cluster.options: queues", "'-Q'"]),
        ({"queues": ["a", "a"]}, ["cluster.options: queues", "once"]),
        ({"queues": ["a"], "flavour": "slurm"}, ["cluster.options: flavour", "'slurm'"]),
        ({"queues": ["a"], "server": "-x"}, ["cluster.options: server"]),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        PbsAdapter(options)
    assert all(word in str(raised.value) for word in words)


def test_an_unknown_queue_is_the_users_mistake(pbs: PretendedPbs) -> None:
    with adapter(pbs, queues=("wrokq",)) as one, pytest.raises(UserError, match=r"wrokq.*Known: workq"):
        one.describe()


def checks(pbs: PretendedPbs, **fields: Any) -> dict[str, Any]:
    with adapter(pbs, read_only=True, **fields) as one:
        return {check.subject: check for check in one.check()}


def test_a_cluster_that_is_in_order(pbs: PretendedPbs) -> None:
    found = checks(pbs)
    assert list(found) == [
        "pbs's commands", "pbs server", "server scheduling", "planned starts", "privilege", "job history",
        "queue workq", "vnodes", "fence", "clock",
    ]  # fmt: skip
    assert {subject for subject, check in found.items() if not check.ok} == {"clock"}


@pytest.mark.parametrize("reservations", [False, True])
def test_watching_can_do_without_history_and_whatever_the_queue_is(
    pbs: PretendedPbs, reservations: bool
) -> None:
    described = text_of("qstat_server_json").replace(
        '"job_history_enable":\t"True"', '"job_history_enable":\t"False"'
    )
    pbs.answer = lambda argv: result(argv, described) if "-B" in argv else None
    pbs.queues["workq"]["started"] = str(reservations)
    found = checks(pbs, reservations=reservations)
    for subject in ("job history", "queue workq"):
        assert not found[subject].ok and found[subject].driving, subject
    unknown = checks(pbs, queues=("workq", "nihgt"))["queue nihgt"]
    assert not unknown.ok and not unknown.driving


@pytest.mark.parametrize(
    ("server", "ok"),
    [
        ({"managers": "headway@*"}, True),
        ({"operators": "headway@*"}, False),
        ({"managers": "eve@*"}, False),
        ({}, False),
    ],
)
def test_only_a_manager_may_drive(pbs: PretendedPbs, server: dict[str, str], ok: bool) -> None:
    pbs.user = "headway"
    described = json.loads(text_of("qstat_server_json"))
    described["Server"]["pbshost"].update(server)
    pbs.answer = lambda argv: result(argv, json.dumps(described)) if "-B" in argv else None
    found = checks(pbs)["privilege"]
    assert found.ok is ok
    assert ok or "managers += headway@" in found.remedy


@pytest.mark.parametrize("trusted", [True, False])
def test_root_is_a_manager_where_the_server_is_and_not_elsewhere(pbs: PretendedPbs, trusted: bool) -> None:
    """It shows the version of each vnode to operators and managers alone."""
    pbs.user = "root"
    described = json.loads(text_of("qstat_server_json"))
    described["Server"]["pbshost"]["managers"] = "headway@*"
    shown = text_of("pbsnodes_text")
    if not trusted:
        shown = re.sub(r"(?m)^\s+pbs_version = .*\n", "", shown)

    def answer(argv: Sequence[str]) -> Any:
        if "-B" in argv:
            return result(argv, json.dumps(described))
        return result(argv, shown) if tuple(argv) == ("pbsnodes", "-av") else None

    pbs.answer = answer
    found = checks(pbs)["privilege"]
    assert found.ok is trusted
    assert trusted or ("on pbshost only" in found.detail and "managers += root@" in found.remedy)


def test_a_silent_server_is_named_by_the_check(pbs: PretendedPbs) -> None:
    pbs.answer = lambda argv: None if "--version" in argv else silent(argv)
    found = checks(pbs)
    assert list(found) == ["pbs's commands", "pbs server"]
    assert "cannot connect to server" in found["pbs server"].detail


def test_check_without_pbs_names_what_is_missing() -> None:
    with PbsAdapter({"queues": ["workq"], "bin_dir": "/nowhere"}) as one:
        (check,) = one.check()
    assert not check.ok
    assert "'qstat' is not installed" in check.detail
    assert "nor are pbsnodes, qrun" in check.detail
    assert "cluster.options.bin_dir" in check.remedy


@pytest.mark.parametrize(
    ("version", "flavour"),
    [("pbs_version = 23.06.06", "openpbs"), ("Version: 6.1.3\nCommit: 1", "torque"), ("", "openpbs")],
)
def test_the_flavour_is_found_out(version: str, flavour: str) -> None:
    from headway_adapters.pbs import checks as lines

    options = PbsOptions(queues=("q",))
    assert lines.flavour_of(result(("qstat", "--version"), version), options) == flavour
    assert lines.flavour_of(result(("qstat", "--version"), stderr=version), options) == flavour


def test_torque_is_read_and_started_in_its_own_way(pbs: PretendedPbs) -> None:
    from test_pbs_documents import TORQUE_JOBS, TORQUE_NODES

    def answer(argv: tuple[str, ...]) -> Result | None:
        if "--version" in argv:
            return result(argv, stderr="Version: 6.1.3\nCommit: 1")
        if argv[0] == "pbsnodes":
            free = TORQUE_NODES.replace(b"<state>down,offline", b"<state>free")
            return result(argv, free.decode())
        if "-Q" in argv:
            return result(argv, "Queue: batch\n    queue_type = Execution\n    started = True\n\n")
        if "-B" in argv:
            return result(argv, "Server: head\n    server_state = Idle\n    scheduling = False\n\n")
        if argv[0] == "qstat":
            return result(argv, TORQUE_JOBS.replace(b"+n2/0-3", b"").decode())
        return None

    pbs.answer = answer
    with adapter(pbs, queues=("batch",)) as one:
        started(one)
        assert one.apply(time.time(), [d.Start("8[2].head", (("n2", 1),)), d.Suspend("7.head")])[0].accepted
    assert ("qrun", "-H", "n2:ppn=1", "8[2].head") in pbs.said
    assert ("qsig", "-s", "suspend", "7.head") in pbs.said


def test_control_is_given_back_and_what_waits_is_listed(pbs: PretendedPbs) -> None:
    pbs.jobs = json.loads(text_of("qstat_full_json"))["Jobs"]
    giving = PbsGivingBack(PbsOptions(queues=("workq",)))
    giving.client = PbsClient(PbsOptions(queues=("workq",)), read_only=False, transport=pbs)
    given = [one.line for one in giving.give_back(("workq",), lambda: True)]
    assert [argv for argv in pbs.said if argv[0] == "qmgr"] == [
        ("qmgr", "-c", "set server scheduling = True")
    ]
    assert given == [
        "server scheduling: on", "job 1.pbshost: suspended: qsig -s admin-resume 1.pbshost",
    ]  # fmt: skip


def test_fixtures_are_all_there() -> None:
    assert len(list(FIXTURES.glob("*.json"))) == 13
