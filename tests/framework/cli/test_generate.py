"""``headway generate``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from commandline import Headway

from headway.workload import CloudTrace, offered_load, read_cwf, read_swf, read_trace

MODEL = '''
from headway.hookspecs import Plugin, hookimpl
from headway.model import Dependency, JobDescription, Request
from headway.workload import TraceJob, Workload
from pydantic import BaseModel

class Options(BaseModel):
    jobs: int = 2

class Model:
    Options = Options

    def generate(self, rng, options):
        request = Request(4, 60, features=("fast",))
        return Workload([
            TraceJob(JobDescription(str(n), n, request, dependencies=(Dependency("ended", "9"),),
                                    attributes={"colour": "red"}, begin_time=7), 5)
            for n in range(options.jobs)
        ])

class Odd(Plugin):
    """The workload model "odd"."""

    @hookimpl
    def register_workloads(self):
        return {"odd": Model()}
'''


def test_without_a_model_lists_the_models_and_their_options(headway: Headway) -> None:
    ran = headway("generate")
    assert (ran.code, ran.err) == (0, "")
    for model in ("lublin: ", "lublin-cwf: ", "month: "):
        assert f"\n{model}" in f"\n{ran.out}"
    for option in ("p_dedicated", "beta_arr", "too_short"):
        assert option in ran.out
    assert "P_D: share of jobs" in ran.out


def test_writes_the_standard_format_where_that_holds_everything(headway: Headway) -> None:
    ran = headway("generate", "lublin", "--set", "jobs=50")
    assert ran.code == 0
    assert ran.out.startswith("lublin.swf: 50 jobs, 128 processors, seed 1\n")
    trace = read_swf("lublin.swf", strict=True)
    assert (len(trace), trace.max_processors, trace.issues) == (50, 128, [])
    assert "; Note: made by: headway generate lublin --seed 1 --set jobs=50" in trace.header


def test_writes_the_cloud_format_for_requested_starts_and_commands(headway: Headway) -> None:
    ran = headway("generate", "lublin-cwf", "--seed", 3, "--set", "load=0.9", "--set", "p_dedicated=0.5")
    assert ran.code == 0
    assert ran.out.startswith("lublin-cwf.cwf: 500 jobs, 320 processors, seed 3, ")
    trace = read_cwf("lublin-cwf.cwf", strict=True)
    assert trace.issues == []
    assert f"{trace.dedicated} requested starts and {len(trace.commands)} elastic commands" in ran.out
    assert offered_load(trace, 320) == pytest.approx(0.9, rel=0.01)
    assert 200 < trace.dedicated < 300
    assert 100 < len(trace.commands) < 200
    (note,) = [line for line in trace.header if line.startswith("; Note: load 0.9: beta_arr")]
    assert note.removeprefix("; Note: ") in ran.out


def test_the_same_seed_gives_the_same_file(headway: Headway) -> None:
    for name, seed in (("a.cwf", 5), ("b.cwf", 5), ("c.cwf", 6)):
        assert headway("generate", "lublin-cwf", "--seed", seed, "-o", name).code == 0
    assert Path("a.cwf").read_bytes() == Path("b.cwf").read_bytes()
    assert Path("a.cwf").read_bytes() != Path("c.cwf").read_bytes()


def test_a_batch_workload_may_be_of_either_format_and_packed(headway: Headway) -> None:
    batch = ["generate", "lublin-cwf", "--set", "p_extend=0", "--set", "p_reduce=0"]
    assert headway(*batch).out.startswith("lublin-cwf.swf: 500 jobs")
    assert headway(*batch, "-o", "x.cwf.gz").code == 0
    assert gzip.decompress(Path("x.cwf.gz").read_bytes()).endswith(b" -1 S -1\n")
    assert read_trace("x.cwf.gz").records.tolist() == read_trace("lublin-cwf.swf").records.tolist()


def test_refuses_to_lose_requested_starts_and_commands(headway: Headway) -> None:
    ran = headway("generate", "lublin-cwf", "-o", "x.swf", "--set", "p_dedicated=1")
    assert ran.code == 2
    assert ran.err.startswith(
        "headway: x.swf: the Standard Workload Format cannot hold 500 requested starts and "
    )
    assert "give a file that ends in .cwf" in ran.err
    assert not Path("x.swf").exists()


def test_refuses_what_no_trace_format_can_hold(headway: Headway) -> None:
    Path("odd.py").write_text(MODEL)
    ran = headway("generate", "odd", "--plugin", "odd.py")
    assert (ran.code, ran.err) == (
        2,
        "headway: odd: no trace format can hold attribute colour of 2 jobs, begin_time of 2 jobs, "
        "dependencies of 2 jobs, request.features of 2 jobs; nothing was written\n",
    )
    ran = headway("generate", "odd", "--plugin", "odd.py", "--set", "jobs=0")
    assert (ran.code, ran.err) == (2, "headway: odd: the model drew no jobs; nothing was written\n")
    assert sorted(Path().glob("*.?wf")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lublim"], "no workload model is called 'lublim'. Did you mean 'lublin'"),
        (["lublin", "--set", "jbos=3"], "--set: lublin has no option 'jbos'. Did you mean 'jobs'?"),
        (["lublin", "--set", "jobs"], "--set: expected KEY=VALUE, found 'jobs'"),
        (["lublin", "--set", "jobs=3", "--set", "jobs=4"], "--set: jobs is given twice"),
        (["lublin", "--set", "jobs=[3"], "--set: jobs: expected a value in YAML, found '[3'"),
        (["lublin", "--set", "jobs=2026-02-30"], "--set: jobs: expected a value in YAML, found '2026-02-30'"),
        (["lublin", "--set", "jobs=many"], "--set: jobs: expected "),
        (["lublin", "--set", "load=-1"], "--set: load: expected greater than 0, found -1"),
        (
            ["lublin-cwf", "--set", "processors=64"],
            "--set: expected small jobs of up to 3 units of 32 within the machine's 64 processors",
        ),
        (["lublin", "-o", "log.txt"], "log.txt: expected a name that ends in .cwf, .json, .swf, plain or"),
        (["lublin", "-o", "none/log.swf"], "none/log.swf: cannot be written: No such file"),
        (["--set", "jobs=3"], "which model? Known: ccr, cms-synthetic, deadlines, feitelson96"),
    ],
)
def test_says_what_is_wrong(headway: Headway, arguments: list[str], message: str) -> None:
    ran = headway("generate", *arguments)
    assert ran.code in (1, 2)
    assert message in ran.err
    assert sorted(Path().iterdir()) == []


def test_what_was_generated_can_be_run(headway: Headway) -> None:
    assert headway("generate", "lublin", "--set", "jobs=30").code == 0
    ran = headway("dry-run", "--trace", "lublin.swf")
    assert ran.code == 0, ran.err
    assert not isinstance(read_trace("lublin.swf"), CloudTrace)
