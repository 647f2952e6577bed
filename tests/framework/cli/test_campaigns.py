"""``headway compare`` from start to end: interruptions, failures, two at once, files that change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import Headway

from headway.experiment import campaign as campaigns
from headway.experiment.kept_runs import locked

CAMPAIGN = """
processors: 64
policies: [fcfs, easy]
workloads: [{label: month, model: month, options: {days: 2}, loads: [0.5, 0.8]}]
seeds: 2
"""
RESULTS = ("campaign.yaml", "rows.csv", "batches.csv", "workloads.json", "method.json", "runs.jsonl")


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN)
    return file


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], object]], list[int]]:
    """Calls a function with the number of each emulation, before it; gives the numbers."""
    original = campaigns.emulate

    def watch(before: Callable[[int], object]) -> list[int]:
        numbers: list[int] = []

        def watched(*arguments: Any, **more: Any) -> Any:
            numbers.append(len(numbers))
            before(numbers[-1])
            return original(*arguments, **more)

        monkeypatch.setattr(campaigns, "emulate", watched)
        return numbers

    return watch


def texts(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


@pytest.fixture
def whole(headway: Headway, definition: Path, tmp_path: Path) -> dict[str, bytes]:
    """What the campaign writes when nothing comes between."""
    assert headway("compare", definition, "--out", tmp_path / "whole", "--workers", 1).code == 0
    return texts(tmp_path / "whole")


def test_one_core_and_several_give_the_same_bytes(headway: Headway, definition: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        ran = headway("compare", definition, "--out", tmp_path / str(workers), "--workers", workers)
        assert ran.code == 0, ran.err
    assert texts(tmp_path / "1") == texts(tmp_path / "2")


def test_an_interrupted_campaign_goes_on_where_it_was(
    headway: Headway,
    definition: Path,
    tmp_path: Path,
    whole: dict[str, bytes],
    emulated: Callable[[Callable[[int], object]], list[int]],
) -> None:
    out = tmp_path / "out"

    def interrupt(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    emulated(interrupt)
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 130
    assert "2 of 4 workloads are kept; the same command continues" in ran.err
    assert not (out / "rows.csv").exists()
    with open(out / "runs.jsonl", "a") as stream:
        stream.write('{"run": "as the machine sto')
    numbers = emulated(lambda number: None)
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 0, ran.err
    assert "2 of 4 workloads have run before" in ran.err
    assert len(numbers) == 4
    assert texts(out) == whole


def test_runs_that_failed_are_named_and_the_next_call_runs_them_again(
    headway: Headway,
    definition: Path,
    tmp_path: Path,
    whole: dict[str, bytes],
    emulated: Callable[[Callable[[int], object]], list[int]],
) -> None:
    out = tmp_path / "out"

    def fail(number: int) -> None:
        if number == 3:
            raise ZeroDivisionError("nothing to divide")

    emulated(fail)
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 1
    assert "1 of 4 workloads failed" in ran.err
    assert "month, 0.5, seed 2: ZeroDivisionError: nothing to divide (policy easy)" in ran.err
    assert len((out / "rows.csv").read_text().splitlines()) == 1 + 6
    (failed,) = json.loads((out / "record.json").read_text())["failed"]
    assert failed["place"] == "month, 0.5, seed 2" and "Traceback" in failed["trace"]
    numbers = emulated(lambda number: None)
    assert headway("compare", definition, "--out", out, "--workers", 1).code == 0
    assert len(numbers) == 2
    assert texts(out) == whole


def test_where_all_fails_nothing_is_written(
    headway: Headway,
    definition: Path,
    tmp_path: Path,
    emulated: Callable[[Callable[[int], object]], list[int]],
) -> None:
    def fail(number: int) -> None:
        raise ZeroDivisionError

    emulated(fail)
    ran = headway("compare", definition, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 1 and "4 of 4 workloads failed:" in ran.err
    assert not (tmp_path / "out" / "rows.csv").exists()


def test_two_campaigns_in_one_folder_are_refused(headway: Headway, definition: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with locked(out):
        ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 1
    assert "another campaign runs in this folder: process" in " ".join(ran.err.split())
    assert [path.name for path in out.iterdir()] == [".lock"]


def test_a_trace_that_changed_is_refused(headway: Headway, trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.yaml"
    file.write_text(f"processors: 16\npolicies: [easy]\nworkloads: [{{trace: {trace.name}}}]\n")
    out = tmp_path / "out"
    assert headway("compare", file, "--out", out, "--workers", 1).code == 0
    before = texts(out)
    trace.write_text("; another day\n" + trace.read_text())
    ran = headway("compare", file, "--out", out, "--workers", 1)
    assert ran.code == 2
    assert f"{trace.name} has changed since the runs in {out}/runs.jsonl were made" in ran.err
    assert texts(out) == before
    assert headway("compare", file, "--out", out, "--workers", 1, "--anew").code == 0
    assert texts(out)["workloads.json"] != before["workloads.json"]


def test_another_campaign_does_not_drop_what_an_interrupted_one_has(
    headway: Headway,
    definition: Path,
    tmp_path: Path,
    emulated: Callable[[Callable[[int], object]], list[int]],
) -> None:
    def interrupt(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    emulated(interrupt)
    out = tmp_path / "out"
    assert headway("compare", definition, "--out", out, "--workers", 1).code == 130
    emulated(lambda number: None)
    # More seeds are the same campaign with more to do.
    definition.write_text(CAMPAIGN.replace("seeds: 2", "seeds: 3"))
    kept = (out / "runs.jsonl").read_bytes()
    definition.write_text(CAMPAIGN.replace("fcfs, easy", "easy"))
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 2
    assert "1 of the 1 finished workloads of this interrupted campaign do not belong" in ran.err
    assert (out / "runs.jsonl").read_bytes() == kept
    text = (out / "runs.jsonl").read_text()
    (out / "runs.jsonl").write_text(text.replace('"code": "', '"code": "x', 1))
    definition.write_text(CAMPAIGN.replace("seeds: 2", "seeds: 3"))
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 2 and "were run by another program" in ran.err
    (out / "runs.jsonl").write_text(text)
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 0 and "1 of 6 workloads have run before" in ran.err


def test_another_campaign_does_not_take_the_place_of_one_that_is_finished(
    headway: Headway, definition: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert headway("compare", definition, "--out", out, "--workers", 1).code == 0
    before = texts(out)
    definition.write_text(CAMPAIGN.replace("fcfs, easy", "easy"))
    ran = headway("compare", definition, "--out", out, "--workers", 1)
    assert ran.code == 2 and "finished workloads of this finished campaign do not belong" in ran.err
    assert "Name another folder (--out), or drop the earlier runs (--anew)" in ran.err
    assert texts(out) == before
    assert headway("compare", definition, "--out", out, "--workers", 1, "--anew").code == 0


def test_runs_that_are_something_else(headway: Headway, definition: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for text in ("hello\n", "[]\n", '{"format": 7}\n', '{"format": 1}\n{"rows": []}\n', ""):
        (out / "runs.jsonl").write_text(text)
        ran = headway("compare", definition, "--out", out, "--workers", 1)
        assert ran.code == 2 and "expected the runs of a campaign" in ran.err
        assert (out / "runs.jsonl").read_text() == text


def test_a_scheduler_that_does_not_answer(headway: Headway, definition: Path, tmp_path: Path) -> None:
    ran = headway("compare", definition, "--out", tmp_path / "out", "--scheduler", "head")
    assert ran.code == 2
    assert "--scheduler head: expected the address of a Dask scheduler" in ran.err
    assert not (tmp_path / "out").exists()


def test_repeat_says_whether_the_numbers_are_the_same(headway: Headway, trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.yaml"
    file.write_text(f"processors: 16\npolicies: [fcfs, easy]\nworkloads: [{{trace: {trace.name}}}]\n")
    out = tmp_path / "out"
    assert headway("compare", file, "--out", out, "--workers", 1).code == 0
    # The definition is the one of the results, wherever the command is called and whatever became of it.
    file.unlink()
    ran = headway("repeat", out, "--workers", 1, "--out", tmp_path / "again")
    assert (ran.code, ran.out.split("\n")[0]) == (0, f"{out}: 2 emulations gave the same numbers"), ran.err
    assert texts(tmp_path / "again") == texts(out)
    assert "had run before" not in ran.out
    ran = headway("repeat", out, "--workers", 1, "--out", tmp_path / "again")
    assert ran.code == 0 and "1 of 1 workloads had run before and did not run again" in ran.out
    assert headway("repeat", tmp_path / "again", "--workers", 1).code == 0
    record = json.loads((out / "record.json").read_text())
    assert record["files"].keys() == {trace.name} and record["command"].startswith("headway compare ")

    record["code"], record["surroundings"]["numpy"] = "other", "1.0"
    (out / "record.json").write_text(json.dumps(record))
    rows = (out / "rows.csv").read_text().splitlines()
    rows[2] = rows[2].replace("easy,1,40.0,", "easy,1,39.0,")
    (out / "rows.csv").write_text("\n".join(rows) + "\n")
    ran = headway("repeat", out, "--workers", 1)
    assert ran.code == 1
    assert "with other source code than here" in ran.err and "made with numpy 1.0, here is" in ran.err
    assert "1 of 2 emulations gave other numbers" in ran.err
    assert f"{trace.name}, 1, easy, seed 1: jobs was 39.0, is 40.0" in " ".join(ran.err.split())

    trace.write_text("; another day\n" + trace.read_text())
    ran = headway("repeat", out, "--workers", 1)
    assert ran.code == 2 and "expected the file from which the results were made" in ran.err


def test_a_repetition_is_kept_in_the_place_of_another_campaign_when_that_is_said(
    headway: Headway, definition: Path, tmp_path: Path
) -> None:
    """By the option that the refusal names."""
    out, taken = tmp_path / "out", tmp_path / "taken"
    assert headway("compare", definition, "--out", taken, "--workers", 1).code == 0
    definition.write_text(CAMPAIGN.replace("fcfs, easy", "easy"))
    assert headway("compare", definition, "--out", out, "--workers", 1).code == 0
    ran = headway("repeat", out, "--out", taken, "--workers", 1)
    assert ran.code == 2 and "or drop the earlier runs (--anew)" in ran.err
    assert headway("repeat", out, "--out", taken, "--workers", 1, "--anew").code == 0
    assert texts(taken) == texts(out)


def test_repeat_of_something_else(headway: Headway, tmp_path: Path) -> None:
    ran = headway("repeat", tmp_path)
    assert ran.code == 2 and "expected the results of headway compare, found no campaign.yaml" in ran.err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "workloads: [{model: month, loads: [0.5], arival_factors: [1]}]",
            "workloads[0].arival_factors: unknown key. Did you mean 'arrival_factors'",
        ),
        ("workloads: [{model: month, options: {dys: 1}}]", "dys: unknown key. Did you mean 'days'?"),
        (
            "policies: [easy, {label: aged, plugins: [easy, {multifactor: {weights: {aeg: 5}}}]}]",
            "policy 'aged': multifactor: weights: aeg: expected a factor that a plugin registers",
        ),
    ],
    ids=["of a workload", "of a model", "of a priority"],
)
def test_an_unknown_factor(headway: Headway, tmp_path: Path, wrong: str, message: str) -> None:
    key = wrong.partition(":")[0]
    lines = [line for line in CAMPAIGN.splitlines() if not line.startswith(key)]
    (tmp_path / "campaign.yaml").write_text("\n".join([*lines, wrong]))
    ran = headway("compare", tmp_path / "campaign.yaml", "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "out").exists()
