"""The claims on estimates: how they are judged, and a whole run on a small log."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway.workload import Column, Trace, read_trace, write_swf
from headway.workload.trace import WIDTH
from headway_plugins.reproductions.estimates import (
    F_MODELS,
    LOGS,
    EstimatesReproduction,
    claims_of,
    distance,
    prepared,
)

KTH, BLUE = LOGS
HOLDING = {
    "original": [12.0], "f0": [11.5], **{f: [10.0, 10.2, 10.1] for f in F_MODELS}, "feit": [10.4, 10.5, 10.6],
    "X2": [11.8], "shfl": [11.4, 11.5, 11.6], "vanl": [12.3, 12.4, 12.2], "impr": [11.6, 11.7, 11.8],
}  # fmt: skip


def held(found):
    return [claim.holds for claim in claims_of("log", found)]


def test_claims_hold_where_all_is_as_the_paper_says():
    assert held(HOLDING) == ["yes"] * 6


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({f: [13.0, 13.1, 13.2] for f in F_MODELS}, 0),
        ({"f0": [9.0]}, 1),
        ({"feit": [12.0, 12.0, 12.0], **{f: [12.0, 12.0, 12.0] for f in F_MODELS}}, 2),
        ({"vanl": [11.5, 11.6, 11.7], "impr": [12.5, 12.6, 12.4]}, 3),
        ({"shfl": [12.4, 12.5, 12.6]}, 4),
        ({"X2": [12.5]}, 5),
    ],
)
def test_each_claim_can_fail(change, broken):
    assert held({**HOLDING, **change})[broken] == "no"


def small_log(jobs=400):
    """Jobs of 1 to 60 processors that ask for round times, some of them for too little."""
    rng = np.random.default_rng(1)
    records = np.full((jobs, WIDTH), -1.0)
    records[:, Column.NUMBER] = np.arange(1, jobs + 1)
    records[:, Column.SUBMIT] = np.sort(rng.integers(0, 200_000, jobs))
    estimate = rng.choice([300, 900, 3600, 14400, 30000], jobs)
    records[:, Column.ESTIMATE] = estimate
    records[:, Column.RUNTIME] = np.maximum(np.rint(estimate * rng.random(jobs) * 1.2), 1)
    records[:, Column.ALLOCATED] = records[:, Column.REQUESTED] = rng.integers(1, 60, jobs)
    return Trace("small", ["; MaxProcs: 100"], records=records, line_numbers=np.arange(jobs))


def test_the_log_that_is_compared_has_no_larger_estimates_and_no_longer_runtimes():
    found = prepared(small_log(), KTH).records
    assert 250 < len(found) < 400
    assert found[:, Column.ESTIMATE].max() == 14_400
    assert (found[:, Column.RUNTIME] <= found[:, Column.ESTIMATE]).all()


def test_a_whole_run_on_a_small_log(tmp_path):
    log = small_log()
    write_swf(tmp_path / f"{KTH.file}.swf", log.header, log.records)
    context = Context(
        out=tmp_path / "out", seeds=(1, 2), workers=1, traces=tmp_path, on_plan=lambda name, n: None,
        on_done=lambda n: None, rows=[],
    )  # fmt: skip
    context.out.mkdir()
    claims = EstimatesReproduction().run(context)
    assert [claim.where.split(":")[-1].strip() for claim in claims[1:7]] == [f"S{n}" for n in range(1, 7)]
    assert claims[-1].holds == "not run"
    assert BLUE.file in claims[-1].measured
    assert len(dict(context.rows)["slowdown-KTH4H"]) == 1 + 11 * 2


def test_an_unknown_log_is_named():
    with pytest.raises(UserError, match="expected some of KTH4H, BLUE, found 'CTC'"):
        EstimatesReproduction("CTC")


@pytest.mark.traces
@pytest.mark.parametrize(("log", "expected"), [(KTH, (0.214, 0.187, 0.134)), (BLUE, (0.405, 0.247, 0.135))])
def test_acceptance_9_generated_estimates_are_as_far_from_the_logs_as_specified(trace_dir, log, expected):
    trace = prepared(read_trace(next(trace_dir.glob(f"{log.file}*"))), log)
    own = np.sort(trace.records[:, Column.ESTIMATE])
    sets = ((), log.vanilla, (*log.vanilla, *log.improved))
    found = [np.mean([distance(own, log, pairs, seed) for seed in range(50)]) for pairs in sets]
    assert found == pytest.approx(expected, abs=0.02)
    assert found[0] > found[1] > found[2]
