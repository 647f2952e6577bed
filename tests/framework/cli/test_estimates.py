"""``headway estimates``, and the option ``--estimates`` of the commands that take a model."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from commandline import Headway, small_trace_lines

from headway.workload import Column, read_swf


def trace(name: str, *, without: int = 0) -> Path:
    """The small trace, where the first jobs have no estimates."""
    lines = small_trace_lines()
    for at in range(2, 2 + without):
        fields = lines[at].split()
        fields[8] = "-1"
        lines[at] = " ".join(fields)
    path = Path(name)
    path.write_text("\n".join([*lines, ""]))
    return path


def column(path: str, which: Column) -> np.ndarray:
    return read_swf(path, strict=True).records[:, which]


def test_lists_the_models_and_their_options(headway: Headway) -> None:
    ran = headway("estimates")
    assert (ran.code, ran.err) == (0, "")
    for model in ("tsafrir05", "exact", "f-model", "x2", "shfl", "feit", "cirne-berman"):
        assert f"\n{model}: " in f"\n{ran.out}"
    assert "T_max" in ran.out


def test_generate_gives_the_jobs_of_a_model_estimates_of_another(headway: Headway) -> None:
    arguments = ["--set", "jobs=600", "--estimates", "tsafrir05"]
    ran = headway("generate", "lublin", *arguments)
    assert ran.code == 0
    assert "estimates of 600 of 600 jobs by the model tsafrir05, seed 1" in ran.out
    runtime, estimate = column("lublin.swf", Column.RUNTIME), column("lublin.swf", Column.ESTIMATE)
    assert (estimate >= runtime).all()
    assert len(np.unique(estimate)) == 28
    assert headway("generate", "lublin", *arguments, "-o", "again.swf").code == 0
    assert Path("again.swf").read_bytes() == Path("lublin.swf").read_bytes()
    header = read_swf("lublin.swf").header
    assert "; Note: made by: headway generate lublin --seed 1 --set jobs=600 --estimates tsafrir05" in header


def test_convert_replaces_the_estimates_of_all_jobs(headway: Headway) -> None:
    ran = headway("convert", trace("log.swf"), "new.swf", "--estimates", "x2")
    assert (ran.code, ran.err) == (0, "")
    assert (column("new.swf", Column.ESTIMATE) == 2 * column("log.swf", Column.ESTIMATE)).all()


def test_convert_adds_estimates_where_there_are_none(headway: Headway) -> None:
    arguments = ["--estimates", "f-model", "--estimates-set", "f=10", "--seed", 7, "--add"]
    ran = headway("convert", trace("log.swf", without=8), "new.swf", *arguments)
    assert "estimates of 8 of 40 jobs by the model f-model, seed 7" in ran.out
    old, new = column("log.swf", Column.ESTIMATE), column("new.swf", Column.ESTIMATE)
    assert (new[8:] == old[8:]).all()
    assert (new[:8] > column("new.swf", Column.RUNTIME)[:8]).all()


def test_a_dry_run_plans_with_the_models_estimates(headway: Headway) -> None:
    trace("log.swf")
    ran = headway("dry-run", "--trace", "log.swf", "--estimates", "exact", "--out", "out")
    assert ran.code == 0
    text = Path("out/jobs.csv").read_text().splitlines()
    place = text[0].split(",").index("walltime") if "walltime" in text[0] else None
    given = text[0].split(",").index("estimate") if place is None else place
    spent = text[0].split(",").index("runtime")
    assert all(line.split(",")[given] == line.split(",")[spent] for line in text[1:])


def test_a_model_file_gives_back_what_it_was_fitted_to(headway: Headway) -> None:
    source = ["generate", "lublin", "--set", "jobs=800", "--estimates", "tsafrir05"]
    assert headway(*source, "--estimates-set", "maximum=2d", "-o", "log.swf").code == 0
    ran = headway("estimates", "fit", "log.swf", "-o", "site.yaml")
    assert ran.out == "site.yaml: tsafrir05 fitted to 800 jobs of log.swf\n"
    said = yaml.safe_load(Path("site.yaml").read_text())
    assert said["model"] == "tsafrir05"
    assert said["options"]["maximum"] == 2 * 86400
    assert len(said["options"]["pairs"]) == 20
    assert headway("convert", "log.swf", "new.swf", "--estimates", "site.yaml").code == 0
    old, new = (np.sort(column(name, Column.ESTIMATE)) for name in ("log.swf", "new.swf"))
    grid = np.union1d(old, new)
    apart = np.searchsorted(old, grid, "right") - np.searchsorted(new, grid, "right")
    assert np.abs(apart).max() / len(old) < 0.1


def test_queues_have_models_of_their_own(headway: Headway) -> None:
    lines = small_trace_lines(60)
    rows = []
    for at, line in enumerate(lines[2:]):
        fields = line.split()
        fields[8], fields[14] = ("3600", "1") if at % 2 else ("7200", "2")
        rows.append(" ".join(fields))
    Path("log.swf").write_text("\n".join([*lines[:2], *rows, ""]))
    ran = headway("estimates", "fit", "log.swf", "-o", "site.yaml", "--by-queue")
    assert ran.out.splitlines()[1:] == ["queue 1: 30 jobs", "queue 2: 30 jobs"]
    site = Path("site.yaml")
    for quoted in (site.read_text(), site.read_text().replace("\n  1:\n", "\n  '1':\n")):
        site.write_text(quoted)
        assert headway("convert", "log.swf", "new.swf", "--estimates", "site.yaml").code == 0
        assert (column("new.swf", Column.ESTIMATE) == column("log.swf", Column.ESTIMATE)).all()
    assert "'1':" in site.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--estimates", "tsafrir5"], "no estimate model is called 'tsafrir5'. Did you mean 'tsafrir05'?"),
        (["--estimates", "f-model", "--estimates-set", "g=1"], "--estimates-set: f-model has no option 'g'."),
        (["--estimates", "f-model", "--estimates-set", "f=-1"], "--estimates-set: f: "),
        (["--estimates", "missing.yaml"], "missing.yaml: the model file cannot be read"),
        (["--estimates-set", "f=1"], "--estimates-set goes with --estimates MODEL"),
        (["--add"], "--add goes with --estimates MODEL"),
        (["--estimates", "shfl"], "found 3 of 40 jobs without one"),
        (["--estimates", "cirne-berman"], "--estimates-set: shape: expected a value, found none"),
        (
            [
                "--estimates",
                "tsafrir05",
                "--estimates-set",
                "maximum=30m",
                "--estimates-set",
                "pairs=[[1h, 5]]",
            ],
            "up to the maximum of 1800 s, found 3600 s",
        ),
        (
            [
                "--estimates",
                "tsafrir05",
                "--estimates-set",
                "maximum=8m",
                "--estimates-set",
                "pairs=[[1m, 96]]",
            ],
            "expected a larger maximum, the share of the jobs that ask for it, or too_short=raise",
        ),
    ],
)
def test_what_cannot_be_is_said(headway: Headway, arguments: list[str], said: str) -> None:
    ran = headway("convert", trace("log.swf", without=3), "new.swf", *arguments)
    assert ran.code == 2
    assert said in re.sub(r"\s+", " ", ran.err)
    assert not Path("new.swf").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "site.yaml: expected keys model, options, queues; found list"),
        ("model: exact\ncolour: red", "site.yaml: colour: unknown key"),
        ("model: exact\noptions: {f: 1}", "site.yaml: options: exact has no option 'f'"),
        ("model: f-model\nqueues: {3: {f: x}}", "site.yaml: queues.3: f: expected a number"),
        ("model: [", "site.yaml, line 1"),
    ],
)
def test_a_broken_model_file_is_named(headway: Headway, text: str, said: str) -> None:
    Path("site.yaml").write_text(text)
    ran = headway("convert", trace("log.swf"), "new.swf", "--estimates", "site.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_only_what_can_be_fitted_is(headway: Headway) -> None:
    ran = headway("estimates", "fit", trace("log.swf"), "-o", "site.yaml", "--model", "exact")
    assert (ran.code, ran.err) == (2, "headway: estimate model exact: it has no parameter to fit\n")
    ran = headway("estimates", "fit", trace("log.swf", without=40), "-o", "site.yaml")
    assert ran.err == "headway: log.swf: expected jobs with a runtime and an estimate, found none\n"


def dump(name: str, jobs: int, parts: dict[str, tuple[int, ...]], seed: int = 3) -> Path:
    """Text of sacct: in each partition users ask for these minutes, the first most often."""
    draw = np.random.default_rng(seed)
    lines = ["JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|NCPUS|State|Partition"]
    for at in range(jobs):
        part = list(parts)[at % len(parts)]
        weights = 1 / np.arange(1, len(parts[part]) + 1)
        limit = int(draw.choice(parts[part], p=weights / weights.sum()))
        start = 1795165140 + 60 * at
        ran = int(draw.integers(1, 60 * limit + 1))
        user = f"u{draw.integers(9)}"
        lines.append(f"{at + 1}|{user}|{start}|{start}|{start + ran}|{ran}|{limit}|4|COMPLETED|{part}")
    path = Path(name)
    path.write_text("\n".join([*lines, ""]))
    return path


def test_acceptance_12_a_model_a_partition_from_accounting_gives_its_estimates_back(
    headway: Headway,
) -> None:
    parts = {"batch": (1080, 60, 720, *range(30, 1080, 35)), "short": (5, 60, 15, 10, 30, *range(13, 60, 2))}
    dump("jobs.txt", 1600, parts)
    for part in parts:
        ran = headway("analyze", "jobs.txt", "--queue", part)
        assert (ran.code, "runtime / estimate" in ran.out) == (0, True)
    ran = headway("estimates", "fit", "jobs.txt", "-o", "site.yaml", "--by-queue")
    assert ran.out.splitlines()[1:] == ["queue batch: 800 jobs", "queue short: 800 jobs"]
    said = yaml.safe_load(Path("site.yaml").read_text())
    assert {name: len(own["pairs"]) for name, own in said["queues"].items()} == {"batch": 20, "short": 20}
    assert headway("convert", "jobs.txt", "old.swf").code == 0
    assert headway("convert", "jobs.txt", "new.swf", "--estimates", "site.yaml", "--seed", "5").code == 0
    for number in (1, 2):
        old, new = (
            np.sort(column(name, Column.ESTIMATE)[column(name, Column.QUEUE) == number])
            for name in ("old.swf", "new.swf")
        )
        grid = np.union1d(old, new)
        apart = np.searchsorted(old, grid, "right") - np.searchsorted(new, grid, "right")
        assert 0 < np.abs(apart).max() / len(old) < 0.1


def test_a_queue_of_the_model_file_that_has_no_jobs_is_told(headway: Headway) -> None:
    dump("jobs.txt", 40, {"batch": (60, 30), "short": (5,)})
    assert headway("estimates", "fit", "jobs.txt", "-o", "site.yaml", "--by-queue").code == 0
    dump("more.txt", 20, {"batch": (60,)})
    ran = headway("convert", "more.txt", "new.swf", "--estimates", "site.yaml")
    assert (ran.code, "queue short: none of these jobs is in it" in ran.out) == (0, True)
    ran = headway("analyze", "jobs.txt", "--queue", "shrot")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "headway: jobs.txt: expected one of the queues batch, short; found 'shrot'\n"


def model(*settings: str) -> list[str]:
    return ["--estimates", "tsafrir05", *(word for one in settings for word in ("--estimates-set", one))]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("maximum=9h", "pairs=[[9h, 60], [1h, 50]]"), "shares of at most 100 % together, found 110"),
        (("maximum=2h", "modes=2", "pairs=[[2h, 2], [1h, 1], [5m, 1]]"), "expected at most 2, found 3"),
        (("maximum=18h", "pairs=[[1h, 10], [1h, 10]]"), "pairs: the time 3600 s is there twice"),
        (("maximum=18h", "pairs=[[1h, -10]]"), "pairs: expected shares above 0 and up to 100 %, found -10"),
        (("maximum=18h", "pairs=[[1h, .nan]]"), "pairs: expected shares above 0 and up to 100 %, found nan"),
        (("maximum=18h", "pairs=[[-1h, 10]]"), "pairs: expected a time such as 30m"),
        (("maximum=59",), "maximum: expected greater than or equal to 60, found 59"),
        (("maximum=99999999d",), "maximum: expected less than or equal to 316224000"),
        (("pairs=[[1h, 10]]",), "expected a maximum where there are pairs"),
        (("maximum=1m",), "jobs run for 60 s or longer, and only"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_named(headway: Headway, settings: tuple[str, ...], said: str) -> None:
    ran = headway("convert", trace("log.swf"), "new.swf", *model(*settings))
    assert (ran.code, Path("new.swf").exists()) == (2, False)
    assert said in re.sub(r"\s+", " ", ran.err)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("|COMPLETED|", "|TERMINÉ|", "line 2: State: expected a word such as COMPLETED, found 'TERMINÉ'"),
        ("1795165140|1795165140", "20 nov. 2026|1795165140", "line 2: Submit: expected a time such as"),
        ("|60|4|", "|-60|4|", "line 2: TimelimitRaw: expected whole seconds from 0 on, found '-60'"),
        ("|60|4|", "|60,0|4|", "line 2: TimelimitRaw: expected whole seconds from 0 on, found '60,0'"),
    ],
)  # fmt: skip
def test_accounting_of_another_locale_and_absurd_times(
    headway: Headway, old: str, new: str, said: str
) -> None:
    path = dump("jobs.txt", 4, {"batch": (60,)})
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    fit = ["estimates", "fit", path, "-o", "x.yaml"]
    for arguments in (fit, ["analyze", path, "--processors", 64], ["convert", path, "x.swf"]):
        ran = headway(*arguments, "--strict")
        assert (ran.code, ran.out, said in ran.err) == (2, "", True), ran.err
        ran = headway(*arguments)
        assert ran.code == 0
        assert f"1 line skipped: broken record ({said}" in ran.err.replace("\n", " ")
