"""Jobs with deadlines and data to protect, and a run of them from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from headway.cli import cli
from headway.errors import UserError
from headway_plugins.security.deadlines import DeadlinesModel, DeadlinesOptions
from headway_plugins.security.levels import need_of, profile_2005


def generate(**options):
    return DeadlinesModel().generate(np.random.default_rng(1), DeadlinesOptions(**options))


def test_deadlines_leave_the_laxity_beside_the_highest_levels():
    workload = generate(jobs=50, processors=64, laxity=300)
    assert len(workload.jobs) == 50 and workload.processors == 64
    for traced in workload.jobs:
        need = need_of(traced.job.attributes["security"], profile_2005(), "job")
        left = traced.job.attributes["deadline"] - traced.job.submit_time - traced.runtime
        assert left == pytest.approx(300 + need.cost(need.highest))
        assert traced.job.request.walltime == traced.runtime


def test_the_draws_are_those_of_the_seed_and_not_of_the_laxity():
    one, other = generate(jobs=20), generate(jobs=20, laxity=900)
    assert [j.job.attributes["security"] for j in one.jobs] == [
        j.job.attributes["security"] for j in other.jobs
    ]


def test_a_trace_without_jobs_that_ran_is_refused(tmp_path):
    path = tmp_path / "none.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 0 1 -1 -1 1 10 -1 0 1 1 1 1 1 -1 -1\n")
    with pytest.raises(UserError, match=r"none\.swf: expected jobs with a positive run time"):
        generate(trace=path)


def test_a_run_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "dry-run --workload deadlines --set jobs=60 --set processors=64 --policy sareg --out out"
    ran = CliRunner().invoke(cli, words.split())
    assert ran.exit_code == 0, ran.output
    told = json.loads((tmp_path / "out" / "metrics.json").read_text())["extra"]["security"]
    assert told["submitted"] == 60 and told["met"] > 0 and told["missed"] == 0
    assert told["met"] + told["refused"] == 60
