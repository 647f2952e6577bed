"""The comparison: figures by hand, which jobs are compared, intervals, and the page."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC
from pathlib import Path

import msgspec
import numpy as np
import pytest
from watched_journals import EPOCH as T
from watched_journals import came, cluster, drawn, info, over, plan, record, told, watched_run

from headway.events import JobHeld, JobStarted, NodeDown
from headway.experiment.statistics import batch_interval, batch_means
from headway.model import Request
from headway.shadow.comparing import MOST_ROWS, compare
from headway.shadow.findings import Delay, Findings, Grouping, Row
from headway.shadow.intervals import BATCHES, Compared, Estimate, compared, estimate, over_time, spread
from headway.shadow.page import render_page
from headway.shadow.sentences import summary

NO_DELAY = Delay(0.0, 0.0, 0, 0, "nothing")
HOSTILE = "<script>alert(1)</script>"


def one_node(place: Path) -> Path:
    """A node that the batch system gives to C before B; headway's `fcfs` gives it to B first."""

    def began(name: str, at: float) -> JobStarted:
        return JobStarted(at, name, (("n1", 8),))

    told(
        place,
        (T, []),
        (T + 1, [came("A", T + 1), began("A", T + 1)]),
        (T + 10, [came("B", T + 10, account=HOSTILE, qos="high", user="anna")]),
        (T + 20, [came("C", T + 20, account="y", user="ben"), JobHeld(T + 20, "X")]),
        (T + 25, [came("D", T + 25)]),
        (T + 60, [over("D", T + 60, "cancelled")]),
        (T + 100, [over("A", T + 100), began("C", T + 100)]),
        (T + 150, [over("C", T + 150), began("B", T + 150)]),
        (T + 250, [over("B", T + 250)]),
        ended=T + 400,
        about=info(described=cluster(nodes=1)),
    )
    return place


def found(place: Path, policy: str = "fcfs", **more: object) -> Findings:
    return compare(record(place), plan(policy), NO_DELAY, draws=2, zone=UTC, **more)[0]  # type: ignore[arg-type]


def means(of: Compared) -> tuple[float | None, float | None, float | None]:
    return of.system.mean, of.headway.mean, of.difference.mean


def rows(findings: Findings, by: str) -> dict[str, Row]:
    (table,) = [one for one in findings.tables if one.by == by]
    return {row.name: row for row in table.rows}


def test_figures_by_hand(tmp_path: Path) -> None:
    findings = found(one_node(tmp_path / "j.sqlite"), users=True)
    # B waits 140 s and C 80 s; under fcfs B waits 90 s and C 180 s. They run 100 s and 50 s.
    assert findings.jobs == 2
    assert means(findings.wait) == (110, 135, 25)
    assert means(findings.slowdown) == pytest.approx((2.5, 3.25, 0.75))
    assert findings.median_wait == (110, 135)
    # From B's submission to the end of the record; the node is busy until T + 250 either way.
    assert means(findings.use)[:2] == pytest.approx((240 / 390, 240 / 390))
    accounts = rows(findings, "account")
    assert set(accounts) == {HOSTILE, "y"} and accounts["y"].jobs == 1
    assert means(accounts["y"].wait) == (80, 180, 100)
    assert means(accounts[HOSTILE].use)[:2] == pytest.approx((100 / 390, 100 / 390))
    assert set(rows(findings, "user")) == {"anna", "ben"} and set(rows(findings, "QOS")) == {"high", "(none)"}
    assert set(rows(findings, "size")) == {"5–16"} and set(rows(findings, "GPU")) == {"no GPU"}
    assert means(rows(findings, "pool")["batch"].wait) == (110, 135, 25)
    hours = rows(findings, "hour")
    assert set(hours) == {"22:00"} and hours["22:00"].jobs == 2
    assert means(hours["22:00"].use)[:2] == pytest.approx((240 / 390, 240 / 390))
    # A is the first twentieth of the jobs.
    assert {one.what: one.jobs for one in findings.left_out} == {
        "came in the first 5 % of a stretch (warm-up)": 1,
        "were cancelled while they waited": 1,
    }
    assert all(row.wait.system.low is None for row in accounts.values())


def test_the_policy_that_made_the_record_makes_no_difference(tmp_path: Path) -> None:
    watched_run(tmp_path / "j.sqlite", drawn(1, 300), "easy")
    same = found(tmp_path / "j.sqlite", "easy")
    assert same.jobs > 200
    for one in (same.wait, same.slowdown, same.use):
        assert one.difference.mean == pytest.approx(0, abs=1e-3)
        assert one.difference.low == pytest.approx(0, abs=1e-3)
        assert one.difference.high == pytest.approx(0, abs=1e-3)
    for table in same.tables:
        assert all(row.use.difference.mean == pytest.approx(0, abs=1e-6) for row in table.rows)
    watched_run(tmp_path / "fcfs.sqlite", drawn(1, 300), "fcfs")
    other = found(tmp_path / "fcfs.sqlite", "easy")
    assert other.wait.difference.high is not None and other.wait.difference.high < 0
    assert "headway would have made the wait shorter" in " ".join(summary(other))


def test_each_job_is_compared_or_left_out_once(tmp_path: Path) -> None:
    jobs = drawn(2, 200)
    watched_run(tmp_path / "j.sqlite", jobs, "fcfs")
    part = record(tmp_path / "j.sqlite", jobs[60].job.submit_time, jobs[150].job.submit_time)
    findings, _ = compare(part, plan("fcfs"), NO_DELAY, draws=2, zone=UTC)
    assert findings.jobs + sum(one.jobs for one in findings.left_out) == len(part.stretches[0].courses)
    kinds = {one.what for one in findings.left_out}
    assert {"ran when the record began", "waited when the record began"} <= kinds
    assert any("cool-down" in what for what in kinds) and any("warm-up" in what for what in kinds)


def test_jobs_that_headway_would_not_have_started_are_named(tmp_path: Path) -> None:
    place = one_node(tmp_path / "j.sqlite")
    made = record(place)
    down = [*made.stretches[0].changes, NodeDown(T + 120, "n1")]
    made.stretches[0] = dataclasses.replace(made.stretches[0], changes=down)
    findings, _ = compare(made, plan("fcfs"), NO_DELAY, draws=2, zone=UTC)
    left = {one.what: one.jobs for one in findings.left_out}
    assert left["would not have started under headway"] == 1 and findings.jobs == 1
    assert any("would not have started" in remark for remark in findings.remarks)


def test_gpus_and_many_accounts_have_rows(tmp_path: Path) -> None:
    events = [came(str(at), T + 1, account=f"a{at:02d}") for at in range(40)]
    described = cluster(nodes=40)
    told(
        tmp_path / "j.sqlite", (T, []), (T + 1, events),
        (T + 2, [JobStarted(T + 2, str(at), ((f"n{at + 1}", 8),)) for at in range(40)]),
        (T + 60, [over(str(at), T + 60) for at in range(40)]),
        ended=T + 90, about=info(described=described),
    )  # fmt: skip
    made = record(tmp_path / "j.sqlite")
    for course in made.stretches[0].courses[10:]:
        gpus = Request(8, 3600.0, gres_per_node=(("gpu:a100", 1),))
        course.job = msgspec.structs.replace(course.job, request=gpus)
    nodes = [msgspec.structs.replace(node, gres=(("gpu:a100", 1),)) for node in described.nodes]
    there = msgspec.structs.replace(described, nodes=tuple(nodes))
    made.stretches[0] = dataclasses.replace(made.stretches[0], cluster=there)
    findings, _ = compare(made, plan("easy"), NO_DELAY, draws=2, zone=UTC)
    assert {name: row.jobs for name, row in rows(findings, "GPU").items()} == {"gpu:a100": 30, "no GPU": 8}
    accounts = rows(findings, "account")
    assert len(accounts) == MOST_ROWS and accounts["all others (19)"].jobs == 19
    assert sum(row.jobs for row in accounts.values()) == 38


# ---------------------------------------------------------------------- intervals


def test_an_interval_takes_a_hundred_jobs_and_as_many_batches_as_are_uncorrelated() -> None:
    values = np.random.default_rng(1).exponential(100, 3000)
    assert estimate(values[:99]) == Estimate(float(values[:99].mean()))
    full = estimate(values)
    by_hand = batch_interval(batch_means(values.tolist(), BATCHES[0])).interval
    assert (full.low, full.high) == pytest.approx(
        (values.mean() - by_hand.half, values.mean() + by_hand.half)
    )
    assert not full.correlated
    # Waits that rise and fall with a queue: no number of batches is enough.
    waves = np.repeat(np.sin(np.linspace(0, 4, 300)), 10)
    assert estimate(waves).correlated


def test_the_chance_of_draws_is_added_as_of_one_more_draw() -> None:
    assert spread([5.0]) == 0
    # Student's t of 2 degrees, a standard deviation of 1, one run more.
    assert spread([4.0, 5.0, 6.0]) == pytest.approx(4.302653 * (4 / 3) ** 0.5)
    values = np.random.default_rng(2).exponential(100, 300)
    draws = [values + 1, values + 2, values + 3]
    change = compared(values, draws).difference
    assert change.mean == pytest.approx(2) and change.half == pytest.approx(spread([1, 2, 3]))


def test_use_needs_ten_blocks_of_time() -> None:
    assert over_time(np.full(9, 0.5)) == Estimate(0.5)
    assert over_time(np.array([np.nan])) == Estimate(None)
    assert over_time(np.linspace(0.4, 0.6, 30)).correlated


# ---------------------------------------------------------------------- the page


def test_the_page_escapes_says_too_few_and_needs_nothing_else(tmp_path: Path) -> None:
    findings, curves = compare(
        record(one_node(tmp_path / "j.sqlite")), plan("fcfs"), NO_DELAY, draws=2, zone=UTC
    )
    page = render_page(findings, curves)
    assert HOSTILE not in page and "&lt;script&gt;alert(1)" in page
    assert "There are too few jobs for intervals (2; it takes 100)" in page
    assert "anna" not in page and "ben" not in page
    assert "were cancelled while they waited" in page and "The record has no gaps." in page
    assert not re.search(r"https?://|src=|<script", page)
    for element in re.findall(r'<div class="wide[^>]*>', page):
        assert 'tabindex="0"' in element and re.search(r'aria-label="[^"]+"', element)
    assert not re.search(r"<th[^>]*>\s*</th>", page)
    assert "2 min 15 s" in page and "1 min 50 s" in page


def test_a_record_without_a_job_to_compare_is_a_page_all_the_same(tmp_path: Path) -> None:
    told(tmp_path / "j.sqlite", (T, []), ended=T + 100)
    findings, curves = compare(record(tmp_path / "j.sqlite"), plan("easy"), NO_DELAY, draws=2, zone=UTC)
    assert findings.jobs == 0 and findings.wait.system.mean is None
    assert "no job that can be compared" in render_page(findings, curves)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    findings = found(one_node(tmp_path / "j.sqlite"))
    assert msgspec.json.decode(msgspec.json.encode(findings), type=Findings) == findings
    assert Grouping("x", []).note == ""
