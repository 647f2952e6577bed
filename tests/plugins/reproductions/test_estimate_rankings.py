"""The order of policies with generated estimates: what is counted, and a whole run on a small log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.agreement import Pairs
from headway.experiment.campaign import Campaign, Row, Scenario
from headway.experiment.reproduction import Context
from headway.workload import Column, Trace, read_trace, write_swf
from headway.workload.trace import WIDTH
from headway_plugins.reproductions import estimate_rankings
from headway_plugins.reproductions.estimate_rankings import (
    HPC2N,
    METRICS,
    NEXT,
    NO_VERDICT,
    OWN,
    PLAIN,
    POLICIES,
    EstimateRankings,
    Found,
    agreement_table,
    agreements,
    claim_of,
    models,
    over_logs,
)
from headway_plugins.reproductions.estimates import LOGS, prepared

KTH = LOGS[0]


def small_log(jobs=350):
    """Two weeks of jobs that wait for each other on 100 processors."""
    rng = np.random.default_rng(1)
    records = np.full((jobs, WIDTH), -1.0)
    records[:, Column.NUMBER] = np.arange(1, jobs + 1)
    records[:, Column.SUBMIT] = np.sort(rng.integers(0, 14 * 86400, jobs))
    estimate = rng.choice([300, 900, 3600, 14400], jobs)
    records[:, Column.ESTIMATE] = estimate
    records[:, Column.RUNTIME] = np.maximum(np.rint(estimate * rng.random(jobs)), 1)
    records[:, Column.ALLOCATED] = records[:, Column.REQUESTED] = rng.integers(1, 100, jobs)
    records[:, Column.USER] = rng.integers(1, 8, jobs)
    return Trace("small", ["; MaxProcs: 100"], records=records, line_numbers=np.arange(jobs))


def found_of(**taus):
    return {label: Found(dict(enumerate(values)), Pairs(4, 3, 0)) for label, values in taus.items()}


def plain(*values):
    return {label: list(values) for label in PLAIN}


def test_the_claim_holds_where_the_modal_model_agrees_better():
    assert claim_of("log", METRICS[0], found_of(impr=[0.8, 0.9, 0.9], **plain(0.5, 0.4, 0.5))).holds == "yes"


def test_the_claim_can_fail():
    assert claim_of("log", METRICS[0], found_of(impr=[0.3, 0.9, 0.4], **plain(0.5, 0.4, 0.5))).holds == "no"
    some = {**plain(0.45, 0.45, 0.45), "f0": [1.0, 1.1, 1.1]}
    assert claim_of("log", METRICS[0], found_of(impr=[0.85, 0.86, 0.85], **some)).holds == "in part"


def test_a_sample_without_an_order_is_left_out():
    nan = float("nan")
    claim = claim_of("log", METRICS[0], found_of(impr=[0.8, nan, 0.9, 0.9], **plain(0.4, 0.1, nan, 0.5)))
    assert claim.holds == "yes"
    assert "impr 0.8667" in claim.measured


def test_over_logs_it_is_the_mean_of_each_sample():
    one = {METRICS[0]: found_of(impr=[0.2, 0.4])}
    two = {METRICS[0]: found_of(impr=[0.4, 1.0])}
    found = over_logs({"A": one, "B": two}, METRICS[0])["impr"]
    assert found.tau == {0: pytest.approx(0.3), 1: pytest.approx(0.7)}
    assert found.pairs == Pairs(8, 6, 0)


def rows_of(scenario, order):
    """Three samples in which the policies have these values, nearly."""
    values = {
        "queued deficit": 0.0, "wait rise p": 1.0, "offered load": 0.5, "achieved load": 0.5,
    }  # fmt: skip
    return [
        Row(scenario, 0.0, variant.label, seed, _every(values, place + 0.01 * seed))
        for variant, place in zip(POLICIES, order, strict=True)
        for seed in (1, 2, 3)
    ]


class _every(dict):
    """A row's values: these, and for any other metric one figure."""

    def __init__(self, values, other):
        super().__init__(values)
        self._other = other

    def __missing__(self, key):
        return self._other


def two_scenarios():
    return Campaign(POLICIES, (Scenario(OWN, 0.0, 10), Scenario("f0", 0.0, 10)), (1, 2, 3))


def test_orders_and_pairs_are_compared_with_the_users():
    rows = [*rows_of(OWN, range(1, 7)), *rows_of("f0", [2, 1, 3, 4, 5, 6])]
    found = agreements(two_scenarios(), rows)["mean wait"]
    assert found["f0"].interval.mean == pytest.approx(1 - 2 / 15)
    assert found["f0"].pairs == Pairs(decided=15, same=14, reversed=1)
    assert found[NEXT].interval.mean == pytest.approx(1.0)
    assert found[NEXT].pairs is None


def test_a_saturated_policy_has_no_part_in_pairs_and_is_marked():
    rows = [*rows_of(OWN, range(1, 7)), *rows_of("f0", [2, 1, 3, 4, 5, 6])]
    for row in rows:
        if row.scenario == "f0" and row.variant == "EASY":
            row.values["queued deficit"] = 0.2
    found = agreements(two_scenarios(), rows)["mean wait"]
    assert found["f0"].interval.mean == pytest.approx(1 - 2 / 15)
    assert found["f0"].pairs == Pairs(decided=15, same=10, reversed=0)
    assert (found["f0"].left_out, found[NEXT].left_out) == (1, 0)
    assert "± 0 × (10 of 15)" in agreement_table({"log": {"mean wait": found}})


def test_of_what_is_left_out_there_is_no_verdict():
    found = found_of(impr=[0.8, 0.9, 0.9], **plain(0.5, 0.4, 0.5))
    found["f0"] = replace(found["f0"], left_out=1)
    claim = claim_of("log", METRICS[0], found)
    assert claim.holds == NO_VERDICT
    assert "f0 0.4667 ± 0.14 ×" in claim.measured


def test_a_whole_run_on_a_small_log(tmp_path, monkeypatch):
    # Two of the policies: each emulation costs more than its jobs.
    monkeypatch.setattr(estimate_rankings, "POLICIES", POLICIES[::4])
    log = small_log()
    write_swf(tmp_path / f"{KTH.file}.swf", log.header, log.records)
    context = Context(
        out=tmp_path / "out", seeds=(1, 2), workers=1, traces=tmp_path, on_plan=lambda name, n: None,
        on_done=lambda n: None, rows=[],
    )  # fmt: skip
    context.out.mkdir()
    claims = EstimateRankings(logs="KTH4H,BLUE", jobs=100).run(context)
    assert [claim.where for claim in claims] == [f"KTH4H, {metric}" for metric in METRICS] + ["BLUE"]
    assert [claim.holds for claim in claims][-1] == "not run"
    rows = dict(context.rows)["rankings-KTH4H"]
    labels = [OWN, *models(KTH, prepared(log, KTH))]
    assert len(rows) == len(labels) * 2 * 2
    # The same jobs are measured of each sample, whatever their estimates (the runtimes of "CB" are others).
    measured = {
        (row.seed, row.values["first measured"], row.values["measured jobs"], row.values["mean runtime"])
        for row in rows
        if row.scenario != "CB"
    }
    assert len(measured) == 2
    assert {first for _, first, _, _ in measured} == {20.0}
    table = (context.out / "agreement.md").read_text(encoding="utf-8")
    assert "| own, next sample |" in table
    assert "| impr |" in table


def test_the_table_shows_tau_and_pairs():
    table = agreement_table({"KTH4H": {"mean wait": found_of(impr=[0.5, 0.7])}})
    head, line = ["| estimates | mean wait |", "|---|---|"], "| impr | 0.6 ± 1.3 (3 of 4) |"
    assert table.splitlines()[2:] == [*head, line]


@pytest.mark.parametrize("settings", [{"logs": "KTH4H,X"}, {"jobs": 99}, {"jobs": "many"}, {"jobs": True}])
def test_settings_that_are_none(settings):
    with pytest.raises(UserError, match="--set"):
        EstimateRankings(**settings)


@pytest.mark.traces
def test_what_the_modal_model_knows_of_hpc2n_are_the_shares_in_the_log(trace_dir):
    """The maximum and its share, and the three most popular estimates."""
    trace = prepared(read_trace(next(trace_dir.glob(f"{HPC2N.file}*"))), HPC2N)
    value, count = np.unique(trace.records[:, Column.ESTIMATE], return_counts=True)
    share = dict(zip(value.tolist(), (100 * count / count.sum()).round(1).tolist(), strict=True))
    assert max(share) == HPC2N.maximum
    assert [(time, share[time]) for time, _ in HPC2N.vanilla] == list(HPC2N.vanilla)
    popular = value[np.argsort(-count)[:3]].tolist()
    assert list(HPC2N.improved) == [(time, share[time]) for time in popular]


def test_all_logs_are_ranked_unless_some_are_named(tmp_path):
    context = Context(
        out=tmp_path, seeds=(1, 2), workers=1, traces=tmp_path, on_plan=lambda name, n: None,
        on_done=lambda n: None, rows=[],
    )  # fmt: skip
    found = [claim.where for claim in EstimateRankings().run(context)]
    assert found == ["KTH4H", "CTC", "SDSC-106", "BLUE", "HPC2N"]


def test_what_is_drawn_by_cirne_and_berman_is_like_the_log():
    log = small_log()
    name, options = models(replace(KTH, maximum=14400), prepared(log, KTH))["CB"]
    accuracy = log.records[:, Column.RUNTIME] / log.records[:, Column.ESTIMATE]
    assert name == "cirne-berman"
    assert options["shape"] * options["scale"] == pytest.approx(accuracy.mean())
    assert options["shape"] * options["scale"] ** 2 == pytest.approx(accuracy.var())
    assert (options["shortest"], options["longest"]) == (300, 14400)
