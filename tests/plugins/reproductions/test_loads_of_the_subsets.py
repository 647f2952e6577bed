"""Saturation, warm-up and cool-down on the parts of real traces that papers take, at the five loads of the
companion paper (4.4 and the table below it): EASY, first come first served, load by runtimes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.emulation import emulate
from headway.experiment.measured import Course, observed
from headway.experiment.steady import automatic_cool_down, automatic_warm_up, saturation
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob, read_swf
from headway_plugins.reproductions.unfairness import Part, part_of

#: Part, offered and achieved load, queued deficit, tau, p, first and one past the last measured job, mean
#: waits of all jobs and of the measured ones (seconds), verdict.
TABLE = [
    ("CTC", 0.70, 0.6600, 0.0328, 0.56, 0.014, 250, 4926, 3760, 3758, "suspect"),
    ("CTC", 0.80, 0.7363, 0.0400, 0.56, 0.014, 250, 4884, 4612, 4538, "suspect"),
    ("CTC", 0.90, 0.8108, 0.0672, 0.60, 0.008, 250, 4836, 9538, 8909, "saturated"),
    ("CTC", 0.95, 0.8466, 0.0884, 0.64, 0.005, 250, 4711, 12033, 9864, "saturated"),
    ("CTC", 0.98, 0.8662, 0.1006, 0.56, 0.014, 250, 4840, 10787, 10616, "saturated"),
    ("Blue", 0.70, 0.6863, 0.0068, 0.29, 0.146, 237, 4735, 3440, 3515, "ok"),
    ("Blue", 0.80, 0.7765, 0.0137, -0.16, 0.758, 237, 4710, 6557, 6685, "suspect"),
    ("Blue", 0.90, 0.8526, 0.0367, 0.16, 0.300, 237, 4679, 11796, 12024, "suspect"),
    ("Blue", 0.95, 0.8629, 0.0737, 0.56, 0.014, 237, 4489, 15086, 15269, "saturated"),
    ("Blue", 0.98, 0.8765, 0.0899, 0.69, 0.002, 237, 4453, 18984, 19090, "saturated"),
]  # fmt: skip
FILES = {"CTC": "CTC-SP2-1996-3.1-cln*", "Blue": "SDSC-BLUE-2000-4.1-cln*"}


def run(part: Part) -> Course:
    jobs = [
        TraceJob(JobDescription(str(at), float(submit), Request(int(size), float(estimate))), float(runtime))
        for at, (submit, size, estimate, runtime) in enumerate(
            zip(part.submit, part.size, part.estimate, part.runtime, strict=True)
        )
    ]
    cluster = ClusterDescription.flat(part.processors)
    return observed(emulate(cluster, jobs, [PluginConfig("easy")], Catalogue(), label="easy"))


def check(part: Part, row: tuple) -> None:
    _, load, achieved, deficit, tau, p, first, last, mean, measured, verdict = row
    course = run(part.at(load))
    whole, columns, waits = course.whole, course.columns, course.wait
    assert whole["offered load"] == pytest.approx(load, abs=2e-4)
    assert whole["achieved load"] == pytest.approx(achieved, abs=1e-4)
    assert whole["queued deficit"] == pytest.approx(deficit, abs=1e-4)
    assert (whole["wait rise tau"], whole["wait rise p"]) == (
        pytest.approx(tau, abs=6e-3), pytest.approx(p, abs=6e-4),
    )  # fmt: skip
    begin = automatic_warm_up(waits).jobs
    end = automatic_cool_down(columns.end, begin, float(columns.submit.max()))
    assert (begin, end) == (first, last)
    assert (round(np.mean(waits)), round(np.mean(waits[begin:end]))) == (mean, measured)
    assert saturation(whole["queued deficit"], whole["wait rise p"]) == verdict


@pytest.fixture(scope="session")
def parts(trace_dir: Path) -> dict[str, Part]:
    return {name: part_of(name, read_swf(next(trace_dir.glob(file)))) for name, file in FILES.items()}


@pytest.mark.traces
def test_4_a_part_of_ctc_at_its_first_load(trace_dir: Path) -> None:
    check(part_of("CTC", read_swf(next(trace_dir.glob(FILES["CTC"])))), TABLE[0])


@pytest.mark.traces
@pytest.mark.campaign
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[1]}")
def test_4_parts_at_five_loads(parts: dict[str, Part], row: tuple) -> None:
    check(parts[row[0]], row)
