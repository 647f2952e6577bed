"""The parts of the traces that the paper takes, and its schedulers against the framework's own runs."""

from __future__ import annotations

import numpy as np
import pytest
from building import traced

from headway.emulation import emulate
from headway.experiment.reproduction import Context
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import Column, read_swf, sizes
from headway_plugins.fairness import drains
from headway_plugins.fairness.figures import width_classes
from headway_plugins.reproductions.unfairness import (
    MEASURES,
    SUBSETS,
    TABLE_1,
    Part,
    UnfairnessReproduction,
    claims_of,
    part_of,
    subset_claims,
    unfairness,
)  # fmt: skip


def small() -> Part:
    rng = np.random.default_rng(1)
    submit = np.cumsum(rng.integers(0, 60, 120)).astype(float)
    estimate = rng.integers(1, 600, 120).astype(float)
    runtime = np.maximum(np.rint(estimate * rng.random(120)), 1)
    return Part("CTC", 200, submit, rng.choice([1, 2, 8, 60, 150], 120), runtime, estimate)


def test_the_load_is_what_was_asked_for():
    assert small().at(0.8).load == pytest.approx(0.8, rel=0.01)
    exact = small().at(0.8, exact=True)
    assert exact.estimate.tolist() == exact.runtime.tolist()


def test_claims_name_how_many_points_hold():
    point = {"strict": 1.0, "relaxed": 1.0, "equality": 1.0}
    point |= {f"{key} > 128": 1.0 for key in tuple(point)}
    double = {key: 2.0 for key in point}
    found = {
        ("CTC", 0.8, depth, order): double if depth == "none" else point
        for depth in ("none", "EASY", "keep", "rebuilt")
        for order in ("FCFS", "SJF", "LXF")
    }
    claims = claims_of(found)
    assert claims[0].holds == "yes" and claims[0].measured.startswith("6 of 6; factors 2.00")
    assert claims[1].holds == "no"


def test_4_11_subsets_rank_as_spearman_has_it():
    subset, whole = (3.0, 1.0, 2.0, 5.0, 4.0), (2.0, 1.0, 3.0, 5.0, 4.0)
    found = {
        ("CTC", 0.8, "none", str(at)): {
            measure: own for measure in MEASURES
        } | {f"{measure} subset {number}": part for measure in MEASURES for number in range(SUBSETS)}
        for at, (part, own) in enumerate(zip(subset, whole, strict=True))
    }  # fmt: skip
    for claim in subset_claims(found):
        assert claim.measured == ", ".join(["0.90"] * SUBSETS) and claim.holds == "yes"


def test_without_traces_nothing_is_run(tmp_path):
    context = Context(tmp_path, (1, 2), 1, None, lambda name, count: None, lambda count: None, [])
    (claim,) = UnfairnessReproduction().run(context)
    assert claim.holds == "not run" and "CTC, Blue" in claim.measured


@pytest.mark.parametrize(
    ("depth", "plugin"),
    [("none", "greedy"), ("EASY", "easy"), ("rebuilt", "conservative"), ("keep", "conservative")],
)
@pytest.mark.parametrize(("order", "ordering"), [("SJF", "shortest-first"), ("LXF", "largest-xfactor")])
def test_the_schedules_are_the_frameworks(depth, plugin, order, ordering):
    part = small().at(0.9)
    jobs = [
        traced(str(at), int(size), estimate, submit, runtime=runtime)
        for at, (submit, size, runtime, estimate) in enumerate(
            zip(part.submit, part.size, part.runtime, part.estimate, strict=True)
        )
    ]
    options = {"guarantees": "keep"} if depth == "keep" else {}
    configs = [PluginConfig(plugin, options), PluginConfig(ordering)]
    result = emulate(ClusterDescription.flat(200), jobs, configs, Catalogue(), label=depth)
    start, strict, relaxed = drains.run_with_drains(
        200, part.submit, part.size, part.runtime, part.estimate,
        {"none": drains.GREEDY, "EASY": drains.EASY, "keep": drains.KEPT, "rebuilt": drains.REBUILT}[depth],
        {"SJF": drains.SHORTEST, "LXF": drains.XFACTOR}[order], True,
    )  # fmt: skip
    assert start.tolist() == [job.start_time for job in result.jobs]
    found = unfairness(part, depth, order)
    assert found["strict"] == pytest.approx(np.maximum(start - strict, 0).mean())
    assert found["relaxed"] == pytest.approx(np.maximum(start - relaxed, 0).mean())


@pytest.mark.traces
@pytest.mark.long
def test_4_12_the_part_of_ctc_has_the_jobs_of_table_1(trace_dir):
    trace = read_swf(next(trace_dir.glob("CTC*")))
    part = part_of("CTC", trace)
    whole = trace.records[1000:6000]
    work = sizes(whole) @ whole[:, Column.RUNTIME]
    assert work / (430 * 1_736_309) == pytest.approx(0.65622, abs=1e-5)
    assert part.submit[-1] - part.submit[0] == 1_736_309
    assert part.load == pytest.approx(0.65411, abs=1e-5)
    assert 0.8 / part.load == pytest.approx(1.223035, abs=1e-6)
    counts = np.bincount(width_classes(part.size), minlength=9).tolist()
    assert counts == [TABLE_1["CTC"][0] - 3, *TABLE_1["CTC"][1:]]


@pytest.mark.traces
@pytest.mark.campaign
def test_4_12_the_part_of_blue_has_the_jobs_of_table_1(trace_dir):
    part = part_of("Blue", read_swf(next(trace_dir.glob("SDSC-BLUE*"))))
    assert part.load == pytest.approx(0.77958, abs=1e-5)
    assert 0.8 / part.load == pytest.approx(1.026195, abs=1e-6)
    assert len(part.size) == 4735 and part.submit[-1] - part.submit[0] == 1_742_311
