"""The rule book on one run and on one workload: rules kept and broken, on small workloads and real logs."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.emulation import emulate
from headway.experiment.facts import WorkloadFacts, facts_of, facts_of_trace
from headway.experiment.rulebook import Judged, Outcome
from headway.experiment.single import One, Trusted, trusted_workload
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import Trace, Workload, read_trace, trace_jobs
from headway.workload.trace import WIDTH, Column

CATALOGUE = Catalogue()
MACHINE = 16
#: The header of a log that leaves nothing open.
HEADER = ("; Information: CLEANED",)
BAD = (Outcome.REFUSED, Outcome.BROKEN, Outcome.NOT_STATED)


def log(
    count: int = 400, *, header: tuple[str, ...] = HEADER, machine: int | None = MACHINE, **columns: Any
) -> Trace:
    """Bursts of five jobs of powers of two, each of about half of its estimate; ``columns``: other values."""
    number = np.arange(count)
    records = np.full((count, WIDTH), -1.0)
    usual = {
        "NUMBER": number + 1, "SUBMIT": 3600.0 * (number // 5) + number % 5,
        "RUNTIME": 100.0 + 7 * (number % 90), "ESTIMATE": 1000.0 + 100 * (number % 7),
        "REQUESTED": 2.0 ** (number % 4), "ALLOCATED": 2.0 ** (number % 4),
        "USER": 1 + number % 9, "QUEUE": 1,
    }  # fmt: skip
    for name, values in {**usual, **columns}.items():
        records[:, Column[name]] = values
    fields = {} if machine is None else {"MaxProcs": str(machine)}
    return Trace("log.swf", header=header, fields=fields, records=records, line_numbers=number + 2)


def on_workload(trace: Trace, processors: int | None = MACHINE, **more: Any) -> dict[str, Judged]:
    facts = facts_of_trace(trace, processors, **more)
    return {one.rule.name: one for one in trusted_workload(facts, {}).judged}


FLURRY = np.where(np.arange(1200) >= 300, 1, 1 + np.arange(1200) % 50)
WEEKS = np.concatenate((np.repeat(np.arange(3), 100) * 604800.0 + np.tile(np.arange(100) * 60.0, 3),
                        3 * 604800.0 + np.arange(900) * 60.0))  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "trace", "more", "outcome", "says"),
    [
        ("2", log(SUBMIT=0.0), {}, Outcome.REFUSED, "only makespan"),
        ("5", log(header=()), {}, Outcome.NOT_STATED, "CLEANED"),
        ("5", log(1200, SUBMIT=WEEKS, USER=FLURRY), {}, Outcome.BROKEN, "submitted 900 of the 900 jobs"),
        ("12", log(REQUESTED_MEMORY=1024.0), {}, Outcome.NOTED, "memory is known of 100%"),
        ("14", log(QUEUE=0), {}, Outcome.NOT_STATED, "100% of jobs are of the interactive queue"),
        ("15", log(ESTIMATE=-1.0), {}, Outcome.BROKEN, "no job has an estimate"),
        ("15", log(ESTIMATE=100.0 + 7 * (np.arange(400) % 90)), {}, Outcome.BROKEN, "100% exact"),
        ("15", log(ESTIMATE=200.0 + 14 * (np.arange(400) % 90)), {}, Outcome.BROKEN, "one multiple"),
        ("17", log(machine=None), {}, Outcome.NOT_STATED, "names no machine size"),
        ("17", log(machine=32), {}, Outcome.BROKEN, "16 processors, recorded on 32"),
        ("17", log(REQUESTED=np.where(np.arange(400) % 3, 4, 32)), {}, Outcome.REFUSED, "larger than 16"),
        ("18", log(), {"scaled": {"sizes": 1.1}}, Outcome.BROKEN, "sizes x 1.1"),
        ("18", log(), {"scaled": {"times between submissions": 0.5}}, Outcome.BROKEN, "far from"),
        ("18", log(), {"scaled": {"runtimes": 1.1}}, Outcome.NOTED, "response times change"),
        ("1", log(REQUESTED=3.0), {"recorded": False}, Outcome.BROKEN, "0% of sizes are powers of two"),
        ("1", log(SUBMIT=60.0 * np.arange(400)), {"recorded": False}, Outcome.BROKEN, "drawn by Poisson"),
        ("4", log(), {"recorded": False}, Outcome.BROKEN, "calmer than any of five logs"),
    ],
)  # fmt: skip
def test_a_workload_that_breaks_a_rule(rule, trace, more, outcome, says) -> None:
    found = on_workload(trace, **more)[rule]
    assert found.outcome is outcome
    assert says in str(found)


@pytest.mark.parametrize("rule", ["2", "5", "14", "15", "17", "G3"])
def test_a_log_as_it_should_be_keeps(rule: str) -> None:
    assert on_workload(log())[rule].outcome is Outcome.KEPT


def test_a_little_less_time_between_submissions_keeps_18() -> None:
    assert on_workload(log(), scaled={"times between submissions": 0.9})["18"].outcome is Outcome.KEPT


def test_a_model_as_bursty_as_logs_keeps_1_and_4() -> None:
    # Days of 200 jobs, all in one hour of one day of four.
    day, at = np.divmod(np.arange(2000), 200)
    found = on_workload(log(2000, SUBMIT=86400.0 * 4 * day + 10.0 * at), recorded=False)
    assert {found[name].outcome for name in ("1", "4")} == {Outcome.KEPT}


def test_of_a_machine_that_nobody_knows_the_header_is_asked_for() -> None:
    found = on_workload(log(machine=None), None)
    assert found["17"].outcome is Outcome.NOT_STATED


def test_rules_of_runs_and_comparisons_do_not_apply_to_a_workload() -> None:
    assert not on_workload(log()).keys() & {"3", "25", "27", "28", "31", "E2"}


def test_the_facts_of_a_trace_are_those_of_its_jobs() -> None:
    trace = log(
        REQUESTED=np.where(np.arange(400) % 40, 4, 32), ESTIMATE=np.where(np.arange(400) % 7, 900, -1),
        QUEUE=np.arange(400) % 3, REQUESTED_MEMORY=np.where(np.arange(400) % 2, 1024, -1),
    )  # fmt: skip
    jobs, refused = trace_jobs(trace, MACHINE, limit=300)
    from_jobs = facts_of("", 1.0, 0, Workload(jobs), MACHINE, trace=trace, refused=refused)
    assert facts_of_trace(trace, MACHINE, limit=300) == from_jobs


# ------------------------------------------------------------------------------------------ runs


def run(trace: Trace, policy: str = "easy", accept: dict[str, str] | None = None) -> Trusted:
    jobs, refused = trace_jobs(trace, MACHINE)
    plugins = (PluginConfig(policy),)
    result = emulate(
        ClusterDescription.flat(MACHINE), jobs, list(plugins), CATALOGUE, label=policy, refused=refused
    )
    return One(policy, plugins, facts_of_trace(trace, MACHINE), accept or {}).after(result, CATALOGUE)


def outcome_of(found: Trusted, rule: str) -> Judged:
    return next(one for one in found.judged if one.rule.name == rule)


def test_25_what_the_machine_keeps_up_with_is_kept() -> None:
    found = outcome_of(run(log()), "25")
    assert found.outcome is Outcome.KEPT
    assert found.findings[0].numbers["queued deficit"] < 0.01


def test_25_what_it_does_not_is_broken_with_its_numbers() -> None:
    # One job a 10 s of 11 s on all processors: a tenth of the capacity waits at the end (vector 4.4).
    trace = log(100, SUBMIT=10.0 * np.arange(100), RUNTIME=11.0, REQUESTED=16.0, ESTIMATE=30.0)
    found = outcome_of(run(trace, "fcfs"), "25")
    assert found.outcome is Outcome.BROKEN
    assert found.findings[0].numbers["queued deficit"] == pytest.approx(0.1)
    assert "offered load 1.111, achieved 1.000" in str(found)


def test_26_what_is_held_is_what_was_asked_for() -> None:
    assert outcome_of(run(log()), "26").outcome is Outcome.KEPT


def test_27_few_jobs_are_too_few() -> None:
    found = outcome_of(run(log()), "27")
    assert found.outcome is Outcome.BROKEN
    assert "378 jobs measured, expected 5000" in str(found)


def test_27_many_jobs_of_even_waits_are_enough() -> None:
    # Each 30th of the run is like the next: the interval is narrow and valid.
    count = 6000
    trace = log(count, SUBMIT=1000.0 * (np.arange(count) // 5) + np.arange(count) % 5)
    assert outcome_of(run(trace), "27").outcome is Outcome.KEPT


def test_28_and_29_the_ends_are_left_out() -> None:
    found = run(log())
    assert found.window is not None and found.window.first >= 20
    assert {outcome_of(found, name).outcome for name in ("28", "29")} == {Outcome.KEPT}


def test_28_waits_that_drift_upwards_are_warned_of() -> None:
    # The longer it runs, the longer the second of each pair waits, and both have ended before the next.
    at = np.arange(600)
    trace = log(
        600, SUBMIT=5000.0 * (at // 2), RUNTIME=np.where(at % 2, 10, 10 + 6 * (at // 2)), REQUESTED=16.0
    )
    found = outcome_of(run(trace, "fcfs"), "28")
    assert found.outcome is Outcome.BROKEN


def test_12_jobs_of_which_none_says_how_small_it_may_be_are_not_made_smaller() -> None:
    facts = facts_of_trace(log(), MACHINE)
    resizing = One("m", (PluginConfig("easy"), PluginConfig("scopred-sizing")), facts, {})
    plain = One("m", (PluginConfig("easy"),), facts, {})
    assert outcome_of(resizing.before(CATALOGUE), "12").outcome is Outcome.REFUSED
    assert outcome_of(plain.before(CATALOGUE), "12").outcome is Outcome.OTHER


def test_a_rule_is_accepted_with_its_reason() -> None:
    found = outcome_of(run(log(), accept={"27": "a sketch"}), "27")
    assert found.outcome is Outcome.ACCEPTED
    assert "accepted: a sketch" in str(found)


def test_what_is_written_has_every_rule_with_its_numbers() -> None:
    data = run(log()).data()
    assert (data["measured"]["jobs"], data["measured"]["first"], data["measured"]["last"]) == (378, 20, 398)
    (saturated,) = [one for one in data["rules"] if one["rule"] == "25"]
    assert set(saturated["findings"][0]["numbers"]) == {"queued deficit", "offered load", "achieved load"}


# ------------------------------------------------------------------------------------- real logs

LOGS = {"KTH-SP2": 100, "CTC-SP2": 338, "SDSC-SP2": 128, "SDSC-BLUE": 1152, "HPC2N": 240}
#: What each whole log breaks by itself.
BROKEN = {"KTH-SP2": set(), "CTC-SP2": set(), "SDSC-SP2": set(), "SDSC-BLUE": {"14"}, "HPC2N": set()}


def real(trace_dir: Path, name: str) -> Path:
    found = sorted(trace_dir.glob(f"{name}*"))
    if not found:
        pytest.skip(f"needs the trace {name} in {trace_dir}")
    return found[0]


def broken(found: Trusted) -> set[str]:
    return {one.rule.name for one in found.judged if one.outcome in BAD}


@pytest.mark.parametrize("name", LOGS)
def test_the_cleaned_logs_keep_the_rules_on_workloads(trace_dir: Path, name: str) -> None:
    facts: WorkloadFacts = facts_of_trace(read_trace(real(trace_dir, name)), LOGS[name])
    assert broken(trusted_workload(facts, {})) == BROKEN[name]


def test_a_trace_that_comes_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    """Nobody writes into it a second time, so whoever opened it again would wait for ever."""
    pipe = tmp_path / "log.swf"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=lambda: pipe.write_text("; MaxProcs: 8\n1 0 -1 9 4 -1 -1 4 20 -1 1 1 1 -1 1 -1 -1 -1\n")
    )
    writer.start()
    trace = read_trace(pipe)
    writer.join()
    found: list[WorkloadFacts] = []
    looker = threading.Thread(target=lambda: found.append(facts_of_trace(trace, 8)), daemon=True)
    looker.start()
    looker.join(20)
    assert [(facts.jobs, facts.digest) for facts in found] == [(1, "")]
