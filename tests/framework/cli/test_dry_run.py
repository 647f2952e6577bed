"""``headway dry-run``, and ``headway run`` in mode dry-run."""

from __future__ import annotations

import csv
import json
import subprocess
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import MACHINE, Headway, command_of, small_trace_lines
from waiting import HANG

from headway.config import parse_config
from headway.dry_run.site import enabled
from headway.plugins import Catalogue
from headway.report.values import JOB_COLUMNS
from headway.workload import read_swf
from headway_adapters.emulated.machine import Machine

FIRST_COLUMNS = "job_id,user,submit_time,start_time,end_time,processors,estimate,runtime,state"


def jobs_of(directory: Path) -> list[dict[str, str]]:
    with (directory / "jobs.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def dry_run(
    headway: Headway, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[dict[str, str]]]:
    """Runs the small trace with further options; returns its jobs."""
    monkeypatch.setattr(
        "headway.report.html.write_html", lambda *_, **__: None
    )  # takes longest, is not looked at

    def run(*options: object) -> list[dict[str, str]]:
        ran = headway("dry-run", "--trace", trace, "--out", "out", *options)
        assert (ran.code, ran.err) == (0, "")
        return jobs_of(tmp_path / "out")

    return run


def test_the_summary_goes_to_standard_output_with_the_seed_and_where_the_results_are(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    ran = headway("dry-run", "--trace", trace, "--out", "out/new", "--seed", 7)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("easy: 40 jobs (40 completed); ")
    assert "seed: 7\n" in ran.out
    files = "jobs.csv, decisions.csv, metrics_by_class.csv, metrics.json, schedule.swf, report.html"
    assert f"results: {files} in out/new\n" in ran.out
    assert {path.name for path in (tmp_path / "out" / "new").iterdir()} == {
        "jobs.csv", "decisions.csv", "metrics_by_class.csv", "metrics.json", "schedule.swf", "report.html",
    }  # fmt: skip
    assert json.loads((tmp_path / "out/new/metrics.json").read_text())["run"]["seed"] == 7
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("results: ")) <= 80


def test_the_report_has_the_room_of_the_emulated_cluster(
    headway: Headway, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps every job and a record of each, which are in nobody's way once the run is over."""
    machines = []

    class Seen(Machine):
        def __init__(self, *options: Any) -> None:
            super().__init__(*options)
            machines.append(weakref.ref(self))

    left = []
    monkeypatch.setattr("headway_adapters.emulated.adapter.Machine", Seen)
    monkeypatch.setattr(
        "headway.report.tables.write_jobs_csv",
        lambda *_, **__: left.extend(one() for one in machines),
    )
    monkeypatch.setattr("headway.report.html.write_html", lambda *_, **__: None)
    assert headway("dry-run", "--trace", trace, "--out", "out").code == 0
    assert left == [None]


def test_without_out_nothing_is_written(headway: Headway, trace: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    assert headway("dry-run", "--trace", trace).code == 0
    assert set(tmp_path.iterdir()) == before


def test_jobs_csv_has_the_promised_columns_and_whole_numbers(dry_run: Any, tmp_path: Path) -> None:
    dry_run()
    header, first, *_ = (tmp_path / "out" / "jobs.csv").read_text().splitlines()
    assert header == ",".join(JOB_COLUMNS)
    assert header.startswith(FIRST_COLUMNS + ",")
    assert first.startswith("1,2,20,20,107,8,87,87,completed,")


def test_the_machine_is_that_of_the_header_unless_processors_says_otherwise(dry_run: Any) -> None:
    def most_at_once(jobs: list[dict[str, str]]) -> int:
        return max(
            sum(int(j["processors"]) for j in jobs if int(j["start_time"]) <= t < int(j["end_time"]))
            for t in {int(job["start_time"]) for job in jobs}
        )

    assert 12 < most_at_once(dry_run()) <= MACHINE
    small = dry_run("--processors", 12)
    assert most_at_once(small) <= 12
    assert all(int(job["processors"]) <= 12 for job in small)


def test_larger_jobs_are_refused_and_counted_and_named_with_verbose(headway: Headway, trace: Path) -> None:
    larger = [line for line in small_trace_lines()[2:] if int(line.split()[4]) > 12]
    ran = headway("dry-run", "--trace", trace, "--processors", 12)
    assert f"{len(larger)} jobs refused:\n  {len(larger)} × larger than the pool\n" in ran.out
    ran = headway("dry-run", "--trace", trace, "--processors", 12, "--verbose")
    number = int(larger[0].split()[0])
    assert f"small.swf:{number + 2}: job {number} refused: larger than the pool (" in ran.err
    assert len(ran.err.splitlines()) == len(larger)


def test_gzip_is_read_as_it_is(dry_run: Any, headway: Headway, tmp_path: Path) -> None:
    plain = dry_run()
    assert headway("dry-run", "--trace", "small.swf.gz", "--out", "packed").code == 0
    assert jobs_of(tmp_path / "packed") == plain


def test_limit_is_the_first_accepted_jobs(dry_run: Any) -> None:
    fitting = [line.split()[0] for line in small_trace_lines()[2:] if int(line.split()[4]) <= 12]
    assert [job["job_id"] for job in dry_run("--processors", 12, "--limit", 9)] == fitting[:9]


def test_first_last_and_window_choose_jobs(dry_run: Any) -> None:
    def ids(*options: object) -> list[int]:
        return [int(job["job_id"]) for job in dry_run(*options)]

    assert ids("--first", 5) == [1, 2, 3, 4, 5]
    assert ids("--last", 3) == [38, 39, 40]
    assert ids("--first", 10, "--last", 2) == [9, 10], "in the order of the options' listing"
    assert ids("--last", 2, "--first", 10) == [9, 10]
    assert ids("--window", 0, 41) == [1, 2, 3], "seconds after the first submission"


def test_arrivals_and_runtimes_are_scaled(dry_run: Any) -> None:
    plain, dense, long = dry_run(), dry_run("--scale-arrivals", 0.5), dry_run("--scale-runtimes", 2)
    assert [int(job["submit_time"]) for job in plain][:3] == [20, 40, 60]
    assert [int(job["submit_time"]) for job in dense][:3] == [20, 30, 40]
    assert [int(job["runtime"]) for job in long] == [2 * int(job["runtime"]) for job in plain]
    assert [int(job["estimate"]) for job in long] == [2 * int(job["estimate"]) for job in plain]


def test_another_policy_gives_another_schedule_under_its_name(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    for policy in ("fcfs", "easy", "conservative"):
        ran = headway("dry-run", "--trace", trace, "--policy", policy, "--out", policy)
        assert ran.code == 0 and ran.out.startswith(f"{policy}: 40 jobs")
    starts = {
        policy: [job["start_time"] for job in jobs_of(tmp_path / policy)] for policy in ("fcfs", "easy")
    }
    assert starts["fcfs"] != starts["easy"]


def test_the_schedule_is_a_trace_again(dry_run: Any, tmp_path: Path) -> None:
    jobs = dry_run()
    again = read_swf(tmp_path / "out" / "schedule.swf")
    waits = [int(job["start_time"]) - int(job["submit_time"]) for job in jobs]
    assert again.records[:, 2].tolist() == waits
    assert again.max_processors == MACHINE


def test_feedback_is_run_beside_the_open_replay(headway: Headway, tmp_path: Path) -> None:
    trace = tmp_path / "three.swf"
    trace.write_text(
        "; MaxProcs: 1\n"
        "1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 -1 -1 -1 -1\n"
        "2 10 0 100 1 -1 -1 1 100 -1 1 2 1 1 -1 -1 -1 -1\n"
        "3 50 150 100 1 -1 -1 1 100 -1 1 2 1 1 -1 -1 2 30\n"
    )
    ran = headway("dry-run", "--trace", trace, "--feedback", "chains", "--out", "out")
    assert (ran.code, ran.err) == (0, "")
    assert (
        "feedback: 1 of 3 jobs follow another job, as the trace says; with it mean wait 30 s, "
        "bounded slowdown 1.30; open replay mean wait 1 min 20 s, bounded slowdown 1.80"
    ) in " ".join(ran.out.split())
    assert [job["submit_time"] for job in jobs_of(tmp_path / "out")] == ["0", "10", "230"]
    # Its schedule has the submissions as they were.
    assert read_swf(tmp_path / "out" / "schedule.swf").records[2, :4].tolist() == [3, 230, 0, 100]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workload", "month", "--feedback", "chains"], "--feedback goes with --trace"),
        (["--trace", "x.swf", "--feedback", "chains", "--draws", "3"], "not with --draws"),
    ],
)
def test_where_there_is_no_feedback(headway: Headway, options: list[str], message: str) -> None:
    ran = headway("dry-run", *options)
    assert ran.code == 2 and message in ran.err


def test_a_policy_replaces_the_configured_one_and_the_other_plugins_stay() -> None:
    config = parse_config("plugins: [best-fit, {delayed-los: {max_skips: 3}}]")
    names = [plugin.name for plugin in enabled(config, Catalogue(), "fcfs", True)]
    assert names == ["fcfs", "best-fit"]


def test_a_policy_that_is_configured_keeps_its_options() -> None:
    config = parse_config("plugins: [best-fit, {delayed-los: {max_skips: 3}}]")
    chosen = enabled(config, Catalogue(), "delayed-los", True)
    assert {plugin.name: dict(plugin.options) for plugin in chosen} == {
        "delayed-los": {"max_skips": 3}, "best-fit": {},
    }  # fmt: skip


def test_nodes_are_filled_by_first_fit_when_no_placement_is_configured(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("mode: dry-run\nplugins: [fcfs]\nemulation: {nodes: [{count: 4, processors: 4}]}\n")
    ran = headway("dry-run", "-c", path, "--trace", trace, "--limit", 2, "--out", "out")
    assert ran.code == 0
    assert [job["nodes"] for job in jobs_of(tmp_path / "out")] == ["n1 n2", "n1 n2 n3 n4"]


def test_a_configured_machine_wins_over_the_header_and_processors_over_both(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("plugins: [easy]\nemulation: {processors: 40}\nseed: 9\n")
    for options, processors in ((), 40), (("--processors", 20), 20):
        ran = headway("dry-run", "-c", path, "--trace", trace, "--out", "out", *options)
        assert ran.code == 0 and "seed: 9\n" in ran.out
        metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
        assert metrics["system"]["processors"] == processors


def test_run_in_mode_dry_run_takes_the_trace_beside_the_configuration(
    headway: Headway, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "etc"
    site.mkdir()
    trace.rename(site / "week.swf")
    (site / "site.yaml").write_text("mode: dry-run\nplugins: [conservative]\nemulation: {trace: week.swf}\n")
    ran = headway("run", "-c", "etc/site.yaml", "--out", "out")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("conservative: 40 jobs")
    assert len(jobs_of(tmp_path / "out")) == 40


def test_broken_lines_are_counted_on_standard_error_and_named_with_verbose(
    headway: Headway, trace: Path
) -> None:
    lines = small_trace_lines()
    lines[10:10] = ["1 2 three", ""]
    trace.write_text("\n".join(lines) + "\n")
    ran = headway("dry-run", "--trace", trace)
    assert ran.code == 0 and ran.out.startswith("easy: 40 jobs")
    assert ran.err.splitlines()[-1] == "(--verbose prints the lines)"
    assert f"{trace}: 1 line skipped: too few fields" in ran.err.replace("\n", " ")
    assert ":11:" not in ran.err
    said = headway("dry-run", "--trace", "small.swf", "--verbose").err
    assert "small.swf:11: expected 18 numbers, found 3 in '1 2 three'\n" in said
    assert "small.swf:12: expected 18 numbers, found a blank line\n" in said


def test_a_message_to_a_pipe_is_not_folded(headway_process: Headway, trace: Path) -> None:
    trace.write_text("\n".join([*small_trace_lines(), "1 2 three " + "x" * 60]) + "\n")
    ran = headway_process("dry-run", "--trace", trace, "--verbose")
    assert f"{trace}:43: expected 18 numbers, found 4 in '1 2 three {'x' * 27}...'\n" in ran.err


def test_a_table_to_a_pipe_is_not_cut_to_80_columns(headway_process: Headway, trace: Path) -> None:
    ran = headway_process("plugins", COLUMNS="")
    assert 80 < max(len(line.rstrip()) for line in ran.out.splitlines()) <= 120


def test_a_copy_of_the_live_queue_is_run_forward_and_its_waiting_jobs_are_foretold(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    ran = headway("dry-run", "-c", pretended_slurm(), "--from-cluster", "--out", "out")
    assert ran.code == 0
    _, forecast = ran.out.split("Forecast, if every job runs for its estimate and nothing else is submitted:")
    rows = [line.split() for line in forecast.split("\n\n")[1].splitlines()[2:]]
    jobs = {job["job_id"]: job for job in jobs_of(tmp_path / "out")}
    assert rows, "some wait for room"
    assert all(jobs[row[0]]["start_time"] for row in rows)
    assert [row[3:5] for row in rows] == sorted(row[3:5] for row in rows), "in order of their starts"
    assert not {"7", "15"} & {row[0] for row in rows}, "one runs, one is held by its user"
    assert "jobs wait for something that cannot be foreseen" in ran.out
    assert max(map(len, forecast.split("\n\n")[1].splitlines())) <= 80
    assert "seed: 0" in ran.out


def test_a_reader_who_goes_away_early_does_not_cost_the_files(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = command_of("dry-run", "--trace", trace, "--out", out)
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(HANG) == 0
    assert (out / "jobs.csv").is_file()
    assert (out / "report.html").is_file()


# ------------------------------------------------------------------------------------ workload models


def test_a_models_jobs_run_on_its_machine(headway: Headway, tmp_path: Path) -> None:
    ran = headway("dry-run", "--workload", "ccr", "--set", "jobs=60", "--set", "load=0.8", "--seed", 3,
                  "--out", "out")  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("easy: 60 jobs (60 completed); ")
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["system"]["processors"] == 2090
    assert metrics["run"]["about"]["workload"] == "ccr jobs=60 load=0.8 seed=3"
    # The same jobs as those of the file that is generated with this seed.
    made = headway("generate", "ccr", "--set", "jobs=60", "--set", "load=0.8", "--seed", 3)
    assert made.code == 0
    records = read_swf("ccr.swf").records
    assert [float(job["submit_time"]) for job in jobs_of(tmp_path / "out")] == records[:, 1].tolist()
    assert [int(job["processors"]) for job in jobs_of(tmp_path / "out")] == records[:, 7].tolist()


def test_a_model_is_asked_for_a_workload_of_the_given_machine(headway: Headway) -> None:
    ran = headway("dry-run", "--workload", "ccr", "--set", "jobs=60", "--processors", 100)
    assert ran.code == 0
    assert "refused" not in ran.out
    ran = headway("dry-run", "--workload", "ccr", "--set", "jobs=60", "--set", "processors=2090",
                  "--processors", 40, "--seed", 1)  # fmt: skip
    assert ran.code == 0
    assert " × larger than the pool" in ran.out
    small = headway("dry-run", "--workload", "lublin-cwf", "--set", "processors=320", "--processors", 8)
    assert (small.code, small.out) == (2, "")
    assert "none of its 500 jobs can run on 8 processors" in small.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workload", "ccr", "--trace", "small.swf"], "expected --trace FILE, --workload MODEL"),
        (["--trace", "small.swf", "--set", "jobs=3"], "--set goes with --workload"),
        (["--workload", "ccr", "--last", "3"], "--last goes with --trace, not with --workload"),
        (["--workload", "cr"], "no workload model is called 'cr'. Did you mean 'ccr'?"),
        (["--workload", "ccr", "--set", "job=3"], "ccr has no option 'job'. Did you mean 'jobs'?"),
        (["--workload", "ccr", "--set", "jobs=1"], "--set: jobs: expected greater than or equal to 2"),
    ],
)
def test_what_cannot_be_drawn_is_said(headway: Headway, arguments: list[str], said: str) -> None:
    ran = headway("dry-run", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_narrow_and_short_are_as_configured(headway: Headway, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("mode: dry-run\nmetrics: {narrow: 8, short: 200}\n")
    ran = headway("dry-run", "-c", "site.yaml", "--trace", trace, "--out", "out")
    assert ran.code == 0
    for job in jobs_of(tmp_path / "out"):
        length, width = (
            "S" if float(job["runtime"]) <= 200 else "L",
            "N" if int(job["processors"]) <= 8 else "W",
        )
        assert job["class"] == length + width
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["class_bounds"] == {"narrow": 8, "short": 200}
    assert sum(metrics["classes"][name]["jobs"] for name in ("SN", "LN", "SW", "LW")) == 40
    assert metrics["classes"]["SN"]["jobs"] not in (0, 40)
    (tmp_path / "site.yaml").write_text("metrics: {short: 0}\n")
    ran = headway("dry-run", "-c", "site.yaml", "--trace", trace)
    assert ran.code == 2
    assert "metrics.short: expected greater than 0" in ran.err


RAISES = """
from headway.hookspecs import hookimpl

class Raises:
    times = %s
    @hookimpl
    def schedule(self, view):
        self.times -= 1
        if self.times >= 0:
            raise ValueError(f"boom at {view.now}")
        return [start for job in view.queue if (start := view.start(job, "fits"))]
"""


def with_plugin(times: int, trace: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Its policy fails so many times."""
    Path("raises.py").write_text(RAISES % times)
    asked = command_of("dry-run", "--trace", trace, "--plugin", "raises.py", *options)
    return subprocess.run(asked, capture_output=True, text=True, timeout=HANG, check=False)


def test_a_plugin_that_fails_each_time_is_logged_once_and_the_command_does_not_succeed(
    trace: Path, tmp_path: Path
) -> None:
    ran = with_plugin(1_000_000, trace, "--out", "out")
    assert ran.returncode == 1
    assert ran.stderr.count("traceback=") == 1
    assert ran.stderr.count("plugin failed") == 3, "the first time, the 10th, and the 40th, which is the last"
    assert "headway: plugin 'raises' failed at every call, so the results lack" in ran.stderr
    shown = " ".join(ran.stdout.split())
    assert "The plugin 'raises' failed 40 times in hook schedule, at every call: " in shown
    assert "40 jobs still wait:" in shown and "the policy starts neither" in shown
    assert (tmp_path / "out" / "metrics.json").exists()


def test_a_plugin_that_fails_once_costs_a_sentence(trace: Path) -> None:
    ran = with_plugin(1, trace)
    assert ran.returncode == 0
    assert "The plugin 'raises' failed once in hook schedule: " in " ".join(ran.stdout.split())
