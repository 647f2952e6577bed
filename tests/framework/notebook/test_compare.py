"""``headway.compare``, and ``headway compare`` without a file: the campaign that a file would be."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from own_policies import Failing, Smallest, Some

import headway
from headway.errors import UserError

#: What does not say when and where it ran.
SAME = ("rows.csv", "batches.csv", "workloads.json", "runs.jsonl")
MODEL = {"model": "month", "options": {"days": 2}}


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("headway.experiment.tables.draw_plots", lambda *_: [])
    yield


def quietly(*arguments: Any, **more: Any) -> headway.Comparison:
    """Small campaigns break many rules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return headway.compare(*arguments, workers=1, **more)


def rows_of(folder: str) -> list[dict[str, str]]:
    with (Path(folder) / "rows.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


FILES: list[tuple[list[object], dict[str, Any]]] = [
    (
        ["--trace", "small.swf", "--policy", "easy", "--policy", "fcfs"],
        {"processors": 16, "policies": ["easy", "fcfs"], "workloads": [{"trace": "small.swf"}]},
    ),
    (
        ["--workload", "month", "--set", "days=2", "--policy", "easy", "--load", 0.5, "--load", 0.7,
         "--seeds", 2, "--first-seed", 4, "--cycle", "1m", "--accept", "3=one is enough"],
        {"processors": 320, "policies": ["easy"], "seeds": 2, "first_seed": 4, "cycle": 60,
         "workloads": [{**MODEL, "loads": [0.5, 0.7]}], "method": {"accept": {3: "one is enough"}}},
    ),
    (
        ["--trace", "small.swf", "--policy", "easy", "--load", 0.6, "--resample", "users", "--limit", 30,
         "--processors", 20, "--energy", "present-day", "--seeds", 2],
        {"processors": 20, "energy": "present-day", "policies": ["easy"], "seeds": 2,
         "workloads": [{"trace": "small.swf", "target_loads": [0.6], "resample": "users", "limit": 30}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("words", "file"), FILES)
def test_options_are_the_campaign_of_the_file_that_says_the_same(
    command: Any, trace: Path, words: list[object], file: dict[str, Any]
) -> None:
    Path("campaign.yaml").write_text(yaml.safe_dump(file))
    assert command("compare", "campaign.yaml", "--out", "theirs", "--workers", 1) == 0
    assert command("compare", *words, "--out", "ours", "--workers", 1) == 0
    for name in SAME:
        assert (Path("ours") / name).read_bytes() == (Path("theirs") / name).read_bytes(), name
    assert command("repeat", "ours", "--workers", 1) == 0
    assert command("lint-experiment", "ours") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["c.yaml", "--policy", "easy"], "--policy: expected either CAMPAIGN, a file, or options"),
        (["c.yaml", "--seeds", 3, "--load", 0.7], "--load, --seeds: expected either CAMPAIGN"),
        ([], "expected CAMPAIGN, a file, or --trace FILE"),
        (["--policy", "easy"], "expected CAMPAIGN, a file, or --trace FILE"),
        (["--trace", "small.swf"], "and --policy NAME"),
        (["--trace", "small.swf", "--policy", "easy", "--set", "a=1"], "--set goes with --workload"),
        (["--trace", "small.swf", "--policy", "esy"], "no plugin is called 'esy'. Did you mean 'easy'"),
        (["--trace", "small.swf", "--workload", "month", "--policy", "easy"],
         "expected the size of the machine, since the workloads name month: 320, small.swf: 16"),
        (["--workload", "mont", "--policy", "easy"], "mont"),
        (["--trace", "small.swf", "--policy", "easy", "--accept", "3"], "expected a rule and a reason"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(
    command: Any, trace: Path, capsys: pytest.CaptureFixture[str], words: list[object], message: str
) -> None:
    assert command("compare", *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("comparison").exists()


def test_a_comparison_has_the_rows_of_the_command(command: Any) -> None:
    words = ["--workload", "month", "--set", "days=2", "--policy", "easy", "--policy", "fcfs"]
    words += ["--load", "0.7", "--seeds", "3", "--workers", "1"]
    assert command("compare", *words, "--out", "theirs") == 0
    found = quietly(["easy", "fcfs"], MODEL, loads=[0.7], seeds=3)
    theirs = rows_of("theirs")
    assert found.rows.shape == (6,) and found.policies == ["easy", "fcfs"]
    assert list(found.rows.dtype.names) == list(theirs[0])
    for name in found.metrics:
        assert np.array_equal(found.rows[name], [float(row[name]) for row in theirs], equal_nan=True), name
    found.save("ours")
    for name in SAME[:3]:
        assert (Path("ours") / name).read_bytes() == (Path("theirs") / name).read_bytes(), name
    assert command("repeat", "ours", "--workers", 1) == 0


def test_what_is_loaded_is_what_was_saved() -> None:
    found = quietly(["easy", "fcfs"], MODEL, seeds=2)
    found.save("out")
    again = headway.load("out")
    assert isinstance(again, headway.Comparison)
    assert np.array_equal(again.rows["mean wait"], found.rows["mean wait"])
    assert again.rules == found.rules and again._repr_html_() == found._repr_html_()
    with pytest.raises(UserError, match="was loaded from a folder"):
        again.save("again")


def test_means_have_intervals_and_policies_are_compared_with_the_first() -> None:
    found = quietly({"EASY": "easy", "first come": ["fcfs"]}, MODEL, loads=[0.6, 0.7], seeds=3)
    means = found.means("mean wait")
    assert means["variant"].tolist() == ["EASY", "first come"] * 2 and means["count"].tolist() == [3] * 4
    here = (found.rows["variant"] == "EASY") & (found.rows["x"] == 0.7)
    assert means["mean"][2] == pytest.approx(found.rows["mean wait"][here].mean())
    assert (means["half"] > 0).all()
    against = found.against_first()
    assert set(against["variant"]) == {"first come"} and len(against) == 4
    assert set(against["metric"]) == {"mean wait", "mean bounded slowdown"}
    (one, other) = found.against_first("median wait")
    assert (one["of"], other["metric"]) == (3, "median wait")
    for wrong in (found.means, found.against_first):
        with pytest.raises(
            UserError, match=r"'mean wiat' is no metric of this comparison\. Did you mean 'mean wait'"
        ):
            wrong("mean wiat")


@pytest.mark.parametrize("workers", [1, 2])
def test_policies_can_be_classes_of_the_program(workers: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = headway.compare(["easy", Smallest, {Some: {"most": 3}}], MODEL, seeds=2, workers=workers)
    assert found.policies == ["easy", "smallest", "some"]
    mine = headway.run("month", Smallest, model_options={"days": 2}, seed=1)
    assert found.rows["jobs"][1] == mine.metrics["counts"]["finished"]
    with pytest.raises(UserError, match=r"classes of this program \(Smallest, Some\): put them into"):
        found.save("out")


def test_a_trace_that_comes_with_headway_is_called_by_its_name() -> None:
    found = quietly(["easy"], "sample:fortnight", limit=200)
    assert found.rows["scenario"].tolist() == ["sample:fortnight"]
    found.save("out")
    assert headway.load("out").rules == found.rules


def test_rules_that_are_broken_are_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"How far to trust this: .* broken or not answered") as said:
        found = headway.compare(["easy", "fcfs"], MODEL, seeds=2, workers=1)
    assert [one.filename for one in said] == [__file__]
    assert "3 broken too few workloads" in str(said[0].message)
    assert {"rule", "title", "outcome", "findings"} <= found.rules[0].keys()


def test_a_comparison_shows_itself() -> None:
    found = quietly(["easy", "fcfs"], MODEL, seeds=2)
    assert repr(found) == "<Comparison of easy, fcfs: 4 emulations>"
    page = found._repr_html_()
    assert "<b>Means</b>" in page and "<b>Against easy</b>" in page and "How far to trust this" in page


def test_a_frame_has_a_line_an_emulation() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    found = quietly(["easy"], MODEL, seeds=2)
    frame = found.frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 2
    assert frame["mean wait"].tolist() == found.rows["mean wait"].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["esy"], MODEL), r"policies\[0\]: no plugin is called 'esy'"),
        (
            ([Smallest()], MODEL),
            r"policies\[0\]: expected a plugin's name or class, .* give its class Smallest",
        ),
        (
            (["easy"], "mont"),
            r"workloads: expected a trace's file or the name of a workload model, found 'mont'",
        ),
        ((["easy"], {"model": "month", "lods": [1]}), r"compare: workloads\[0\].lods: unknown key"),
        ((["easy", "easy"], MODEL), r"compare: policies: two policies are called 'easy'"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        quietly(*arguments, seeds=2)


def test_what_a_policy_raises_is_raised() -> None:
    with pytest.raises(Exception, match="failed at every call"):
        quietly(["easy", Failing], MODEL, seeds=2)


def test_without_the_extra_for_intervals_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.inputs.extras.find_spec", lambda module: None)
    with pytest.raises(
        UserError, match=r"headway.compare needs .*SciPy, not installed here: .* extra `report`"
    ):
        headway.compare(["easy"], "month")
