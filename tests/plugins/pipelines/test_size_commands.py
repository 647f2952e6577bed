"""``headway profile`` and ``headway size``: the plan of controlled runs, a job's copies, and running it."""

import json
import sys

import pytest
from click.testing import CliRunner

from headway.errors import Failure, UserError
from headway_plugins.pipelines import commands

#: Leaves its environment where it is told; as a controlled run, its profile.
PROGRAM = """
import json, os, sys
told = {key: os.environ.get("HEADWAY_" + key) for key in ("COPIES", "FILTERS", "PROCESSORS", "PROFILE")}
out, minimum = sys.argv[1], float(sys.argv[2])
with open(out, "a") as file:
    print(json.dumps([told, minimum]), file=file)
if told["PROFILE"]:
    weights = {"read": 6, "count": 2, "decide": 2}
    filters = {name: {"bytes": 100 * w, "seconds": w / minimum} for name, w in weights.items()}
    with open(told["PROFILE"], "w") as file:
        json.dump({"filters": filters}, file)
sys.exit(minimum < 0)
"""


class Site:
    def __init__(self, path):
        self.pipeline, self.store, self.out = path / "id3.yaml", path / "profiles.json", path / "out"
        (path / "id3.py").write_text(PROGRAM, encoding="utf-8")
        self.describe([sys.executable, str(path / "id3.py"), str(self.out), "{minimum}"])

    def describe(self, command, values=(1, 2)):
        said = {
            "program": "id3", "parameters": {"minimum": list(values)}, "command": command,
            "filters": [{"name": "read"}, {"name": "count"}, {"name": "decide"}],
        }  # fmt: skip
        self.pipeline.write_text(json.dumps(said), encoding="utf-8")

    def call(self, name, *words):
        argv = [str(self.pipeline), "--store", str(self.store), *map(str, words)]
        runner = CliRunner(env={"COLUMNS": "250"})
        return runner.invoke(getattr(commands, name), argv, catch_exceptions=False).output

    def told(self):
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_the_plan_of_controlled_runs(site):
    said = site.call("profile")
    assert "id3: 2 controlled runs, 2 of them missing." in said
    assert "missing: minimum 1" in said and "missing: minimum 2" in said


def test_controlled_runs_are_carried_out_and_kept(site):
    assert "measured: minimum 1: " in site.call("profile", "--run", "--most", 1)
    assert "2 controlled runs, 1 of them missing" in site.call("profile")
    site.call("profile", "--run")
    assert "2 controlled runs, 0 of them missing" in site.call("profile")
    told = site.told()
    assert [minimum for _, minimum in told] == [1, 2]
    assert {one["COPIES"] for one, _ in told} == {"1,1,1"}
    assert told[0][0]["FILTERS"] == "read,count,decide"


def test_the_copies_of_a_job(site):
    site.call("profile", "--run")
    said = site.call("size", "-p", "minimum=1", "--processors", 10, "--strategy", "NOAS")
    assert (
        "id3, minimum 1, on 10 processors. NOAS: by shares of bytes and time of the controlled run." in said
    )
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line}
    assert lines["read"] == ["6", "60.0%", "60.0%"] and lines["decide"] == ["2", "20.0%", "20.0%"]
    assert "HEADWAY_COPIES=6,2,2" in said
    # The controlled run took far less than five seconds.
    said = site.call("size", "-p", "minimum=1", "--processors", 10)
    assert "OAS: one copy each" in said and "HEADWAY_COPIES=1,1,1" in said
    assert "24 copies share 8 processors." in site.call(
        "size", "-p", "minimum=1", "--processors", 8, "--strategy", "AS"
    )


def test_a_combination_that_was_not_run(site):
    site.call("profile", "--run")
    said = site.call("size", "-p", "minimum=1.5", "--processors", 10, "--strategy", "NOAS")
    assert "between the controlled runs with minimum 1 (50%) and minimum 2 (50%)" in said


def test_run_hands_the_copies_over(site, monkeypatch):
    site.call("profile", "--run")
    became = []
    monkeypatch.setattr("os.execvpe", lambda *words: became.append(words))
    site.call("size", "-p", "minimum=2", "--processors", 10, "--strategy", "NOAS", "--run")
    ((program, argv, told),) = became
    assert (program, argv[-1]) == (sys.executable, "2")
    assert (told["HEADWAY_COPIES"], told["HEADWAY_PROCESSORS"]) == ("6,2,2", "10")


def test_learn_makes_an_unknown_combination_its_controlled_run(site, monkeypatch):
    words = ("-p", "minimum=1", "--processors", 10, "--strategy", "NOAS", "--learn", "--run")
    assert "this is its controlled run" in site.call("size", *words)
    assert site.told()[0][0]["COPIES"] == "1,1,1"
    became = []
    monkeypatch.setattr("os.execvpe", lambda *words: became.append(words))
    site.call("size", *words)
    assert became[0][2]["HEADWAY_COPIES"] == "6,2,2"


def test_a_job_of_a_batch_system_knows_its_processors(site, monkeypatch):
    site.call("profile", "--run")
    for name, value in {
        "SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "batch", "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_CPUS_PER_NODE": "5(x2)", "SLURMD_NODENAME": "n1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    said = site.call("size", "-p", "minimum=1", "--strategy", "NOAS")
    assert "on 10 processors" in said and "HEADWAY_COPIES=6,2,2" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--parameter: expected a value for the parameter 'minimum', found none"),
        (("-p", "maximum=1"), "--parameter: id3 has no parameter 'maximum'"),
        (("-p", "minimum=[1]"), r"--parameter: minimum: expected a number or a word, found \[1\]"),
        (("-p", "minimum=1"), "--processors: expected a number: this is no job of a batch system"),
        (
            ("-p", "minimum=1", "--processors", "4"),
            "expected a profile of id3 with minimum 1, or one near it",
        ),
        (("-p", "minimum=1", "--learn"), "--learn: expected --run beside it"),
        (("-p", "minimum=1", "--weights", "0", "0"), "--weights: expected a weight above 0"),
    ],
)
def test_what_is_missing_is_named(site, monkeypatch, words, said):
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=said):
        site.call("size", *words)


def test_a_run_that_fails_leaves_no_profile(site):
    site.describe(json.loads(site.pipeline.read_text(encoding="utf-8"))["command"], [-1])
    with pytest.raises(Failure, match=r"the controlled run with minimum -1 failed: .*: exit code 1"):
        site.call("profile", "--run")
    assert "1 of them missing" in site.call("profile")


def test_a_program_that_leaves_no_profile_or_half_of_one(site):
    site.describe([sys.executable, "-c", "pass", "{minimum}"])
    with pytest.raises(Failure, match="left no profile"):
        site.call("profile", "--run")
    half = "import os; open(os.environ['HEADWAY_PROFILE'], 'w').write('{\"filters\": {\"read\": {}}}')"
    site.describe([sys.executable, "-c", half])
    with pytest.raises(
        UserError, match="minimum 1, HEADWAY_PROFILE: the profile has nothing of count, decide"
    ):
        site.call("profile", "--run")
    site.describe(["./nowhere"])
    with pytest.raises(Failure, match="nowhere: cannot be called"):
        site.call("profile", "--run")
    site.describe([])
    with pytest.raises(UserError, match="pipeline id3: expected a command, found none"):
        site.call("profile", "--run")
