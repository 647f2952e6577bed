"""``headway.run``: the numbers of ``headway dry-run``, as arrays and frames."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_policies import Easy, Failing, Smallest, Some, Unmarked

import headway
from headway.errors import Failure, UserError
from headway.report.values import DECISION_COLUMNS, JOB_COLUMNS
from headway.workload import read_trace

FILES = {
    "jobs.csv", "decisions.csv", "metrics_by_class.csv", "metrics.json", "schedule.swf", "report.html",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It takes longest, and has the second in which it was made."""
    monkeypatch.setattr("headway.report.html.write_html", lambda path, *_, **__: path.write_text(""))
    yield


def same_files(one: Path, other: Path) -> None:
    assert {path.name for path in one.iterdir()} == {path.name for path in other.iterdir()} >= FILES
    for name in FILES - {"metrics.json", "report.html"}:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    mine, theirs = (json.loads((folder / "metrics.json").read_text()) for folder in (one, other))
    for found in (mine, theirs):
        assert found["run"].pop("wall_seconds") > 0
    assert mine == theirs


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["--policy", "fcfs", "--seed", 7], {"policy": "fcfs", "seed": 7}),
        (["--processors", 12, "--first", 30], {"processors": 12, "first": 30}),
        (["--with", "fairness", "--cycle", "30s"], {"plugins": "fairness", "cycle": 30.0}),
        (["--scale-arrivals", 0.5, "--window", 0, 500], {"scale_arrivals": 0.5, "window": (0.0, 500.0)}),
        (["--estimates", "f-model", "--estimates-set", "f=3"],
         {"estimates": "f-model", "estimate_options": {"f": 3}}),
        (["--accept", "4=a small test"], {"accept": {"4": "a small test"}}),
        (["--energy", "present-day", "--feedback", "chains"],
         {"energy": "present-day", "feedback": "chains"}),
    ],
)  # fmt: skip
def test_a_run_is_the_dry_run_with_the_same_options(
    command: Any, trace: Path, words: list[object], arguments: dict[str, Any]
) -> None:
    assert command("dry-run", "--trace", trace, "--out", "theirs", *words) == 0
    found = headway.run(trace, **arguments)
    names = {path.name for path in found.save("ours")}
    assert names >= FILES
    same_files(Path("ours"), Path("theirs"))


def test_a_models_jobs_are_those_of_the_dry_run(command: Any) -> None:
    words = ["--workload", "month", "--set", "days=1", "--seed", 3]
    assert command("dry-run", *words, "--out", "theirs") == 0
    headway.run("month", model_options={"days": 1}, seed=3).save("ours")
    same_files(Path("ours"), Path("theirs"))


def test_a_run_under_a_sites_configuration_is_its_dry_run(command: Any, trace: Path) -> None:
    config = Path("site.yaml")
    config.write_text(
        "plugins: [{window: {size: 3}}, first-fit]\nemulation: {nodes: [{count: 4, processors: 4}]}\n"
    )
    assert command("dry-run", "-c", config, "--trace", trace, "--out", "theirs") == 0
    headway.run(trace, config=config).save("ours")
    same_files(Path("ours"), Path("theirs"))


def test_a_trace_that_was_read_is_as_good_as_its_file(trace: Path) -> None:
    one, other = headway.run(read_trace(trace)), headway.run(str(trace))
    assert np.array_equal(one.jobs["start_time"], other.jobs["start_time"])


def test_a_trace_that_comes_with_headway_is_called_by_its_name() -> None:
    found = headway.run("sample:fortnight", limit=20)
    assert len(found.jobs) == 20 and found.metrics["run"]["about"]["workload"] == "fortnight.swf.gz"
    with pytest.raises(UserError, match=r"sample:fortnigth: no such sample .* 'sample:fortnight'"):
        headway.run("sample:fortnigth")


def test_what_is_loaded_is_what_was_saved(trace: Path) -> None:
    found = headway.run(trace, energy="present-day")
    found.save("out")
    again = headway.load("out")
    assert isinstance(again, headway.Run)
    assert again.metrics == json.loads(json.dumps(found.metrics))
    assert again.jobs.dtype == found.jobs.dtype
    assert again.decisions.dtype == found.decisions.dtype
    for name in found.jobs.dtype.names:
        texts = found.jobs.dtype[name].hasobject
        assert np.array_equal(found.jobs[name], again.jobs[name], equal_nan=not texts), name
    assert found.decisions.tolist() == again.decisions.tolist()
    assert again.label == "easy" and again.rules == found.rules
    for refused in (lambda: again.save("again"), lambda: again.result, lambda: again.to_evalys("e.csv")):
        with pytest.raises(
            UserError, match=r"loaded from files does not have .*; expected a run of headway.run"
        ):
            refused()


def test_what_is_no_folder_of_results_is_refused(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(
        UserError, match=r"expected the files of `headway dry-run --out` or .*, found neither"
    ):
        headway.load(tmp_path)
    headway.run(trace).save("out")
    Path("out/jobs.csv").write_text("job_id,user\n1,2\n")
    with pytest.raises(UserError, match=r"out/jobs.csv: expected the columns job_id, user, submit_time"):
        _ = headway.load("out").jobs
    Path("out/decisions.csv").write_text(",".join(DECISION_COLUMNS) + "\n1,Start,1\n")
    with pytest.raises(UserError, match=r"decisions.csv:2: expected 8 fields, found 3"):
        _ = headway.load("out").decisions
    Path("out/metrics.json").write_text("[]")
    with pytest.raises(UserError, match=r"metrics.json: expected the metrics of a run"):
        headway.load("out")


def test_jobs_and_decisions_are_arrays_with_the_columns_of_the_files(trace: Path) -> None:
    found = headway.run(trace, "fcfs")
    assert found.jobs.shape == (40,) and found.jobs.dtype.names == JOB_COLUMNS
    assert found.decisions.shape == (40,) and found.decisions.dtype.names == DECISION_COLUMNS
    jobs = found.jobs
    assert np.array_equal(jobs["wait"], jobs["start_time"] - jobs["submit_time"])
    assert found.metrics["jobs"]["wait"]["mean"] == jobs["wait"].mean()
    assert set(jobs["state"]) == {"completed"} and jobs["processors"].dtype == np.int64
    assert len(found.result.jobs) == 40


def test_a_policy_can_be_a_class_of_the_program_with_its_options(command: Any, trace: Path) -> None:
    source = inspect.getsource(Smallest)
    Path("smallest.py").write_text(f"from headway.hookspecs import hookimpl\n\n\n{source}")
    assert command("dry-run", "--trace", trace, "--plugin", "smallest.py", "--policy", "smallest",
                   "--out", "theirs") == 0  # fmt: skip
    headway.run(trace, Smallest).save("ours")
    same_files(Path("ours"), Path("theirs"))
    one, three = headway.run(trace, Some, cycle=30), headway.run(trace, {Some: {"most": 3}}, cycle=30)
    assert one.jobs["wait"].sum() > three.jobs["wait"].sum()


def test_a_class_is_made_anew_for_each_run_and_leaves_nothing_behind(trace: Path) -> None:
    assert np.array_equal(
        headway.run(trace, Smallest).jobs["wait"], headway.run(trace, Smallest).jobs["wait"]
    )
    with pytest.raises(UserError, match="no plugin is called 'smallest'"):
        headway.run(trace, "smallest")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "esy"}, r"no plugin is called 'esy'. Did you mean 'easy'"),
        ({"policy": Smallest()}, "policy: expected a plugin's name or class, .* an object; give its class"),
        ({"policy": 3}, r"policy: expected a plugin's name or class, .*, found 3"),
        ({"policy": Unmarked}, r"Unmarked: expected a class with hooks .* found schedule without @hookimpl"),
        ({"policy": Easy}, r"plugin class Easy: another plugin is called 'easy'; give the class"),
        ({"policy": {"easy": {}, "fcfs": {}}}, r"expected one policy, found easy, fcfs"),
        ({"policy": {Some: {"mots": 3}}}, r"some: mots: unknown key. Did you mean 'most'"),
        ({"policy": "first-fit"}, r"expected a policy \(.*found the plugin 'first-fit'"),
        ({"trace": "mont"}, "expected a trace's file or the name of a .* model, found 'mont', .*'month'"),
        ({"trace": Path("none.swf")}, r"none.swf: .*[Nn]o such file"),
        ({"trace": "month", "first": 3}, r"--first goes with --trace, not with --workload"),
        ({"accept": {"99": "why"}}, r"expected a rule .*, found '99'"),
        ({"config": "none.yaml"}, r"none.yaml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(trace: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        headway.run(arguments.pop("trace", trace), **arguments)


def test_an_argument_that_is_none_is_said_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'fist'. Did you mean 'first'"):
        headway.run("month", fist=3)  # type: ignore[call-arg]


def test_a_policy_that_fails_at_every_call_is_no_run(trace: Path) -> None:
    with pytest.raises(Failure, match="plugin 'failing' failed at every call") as raised:
        headway.run(trace, Failing)
    (note,) = raised.value.__notes__
    assert "in hook schedule, at every call: ValueError: a mistake (" in note and "own_policies.py" in note


def test_broken_lines_of_a_trace_are_a_warning(trace: Path) -> None:
    trace.write_text(trace.read_text() + "1 2 3\n")
    with pytest.warns(UserWarning, match=r"small.swf: 1 line") as said:
        headway.run(trace)
    assert [one.filename for one in said] == [__file__]
    trace.write_text(trace.read_text().replace("1 2 3\n", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        headway.run(trace)


def test_a_run_shows_itself(trace: Path) -> None:
    found = headway.run(trace, "fcfs")
    assert repr(found).startswith("<Run fcfs: 40 jobs, 40 finished, mean wait ")
    page = found._repr_html_()
    assert "<b>fcfs: 40 jobs, 40 finished</b>" in page and "<td>bounded slowdown</td>" in page
    assert "broken or not answered" in page


def test_a_frame_has_a_line_a_job(trace: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    found = headway.run(trace)
    frame = found.frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(JOB_COLUMNS)
    assert frame["wait"].mean() == found.metrics["jobs"]["wait"]["mean"]


def test_a_frame_of_polars_has_a_line_a_job(trace: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    found = headway.run(trace)
    frame = found.polars()
    assert isinstance(frame, polars.DataFrame) and frame.columns == list(JOB_COLUMNS)
    assert frame["user"].dtype == polars.String and frame["wait"].mean() == pytest.approx(
        found.jobs["wait"].mean()
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_without_its_library_says_which_is_missing(
    trace: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr("headway.notebook.frames.find_spec", lambda name: None)
    found = headway.run(trace)
    with pytest.raises(
        UserError, match=rf"needs {library}, not installed here: python -m pip install {library}"
    ):
        found.frame() if library == "pandas" else found.polars()


def test_importing_headway_loads_no_library() -> None:
    ours = {"click", "msgspec", "numpy", "pandas", "pluggy", "polars", "pydantic", "rich", "yaml"}
    code = "import sys, headway; print(*sys.modules); headway.run"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert loaded & ours == set()
    assert {name.removeprefix("headway.") for name in loaded if name.startswith("headway.")} == {
        "inputs", "inputs.files", "inputs.late", "inputs.old_paths", "version",
    }  # fmt: skip
