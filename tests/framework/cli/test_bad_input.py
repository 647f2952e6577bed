"""What a person may get wrong, and what the world may: one clear message, the right exit code."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Headway, command_of, small_trace_lines
from waiting import bound

USERS_MISTAKE = 2
FAILURE = 1


@pytest.fixture(autouse=True)
def files(trace: Path, tmp_path: Path) -> None:
    """What the tables below name."""
    lines = small_trace_lines()
    (tmp_path / "broken.swf").write_text("\n".join([*lines[:7], "7 x", *lines[7:]]) + "\n")
    (tmp_path / "prose.swf").write_text("a b c\n")
    (tmp_path / "empty.swf").write_text("")
    (tmp_path / "headless.swf").write_text("\n".join(lines[2:]) + "\n")
    packed = (tmp_path / "small.swf.gz").read_bytes()
    (tmp_path / "cut.swf.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "plain.swf.gz").write_text("\n".join(lines))
    (tmp_path / "directory").mkdir()
    (tmp_path / "bad.py").write_text("def nothing():\n    return 1\n\nraise ValueError('oh')\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "flat.yaml").write_text("mode: dry-run\n")
    (tmp_path / "live.yaml").write_text("mode: drive\n")
    for name, plugins in {
        "unknown": "[eazy]", "twice": "[easy, fcfs, easy]", "without": "[first-fit]", "none": "[]",
        "optioned": "[{fcfs: {depth: 3}}]", "range": "[{delayed-los: {max_skips: -1}}]",
        "typo": "[{delayed-los: {max_skip: 1}}]", "type": "[{delayed-los: {lookahead: all}}]",
    }.items():  # fmt: skip
        (tmp_path / f"{name}.yaml").write_text(f"mode: dry-run\nplugins: {plugins}\n")
    (tmp_path / "faulty.yaml").write_text("mode: dry-run\nemulation: {faults: {node_mtb: 3}}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("dry-run --trace none.swf", "none.swf: cannot be read: No such file or directory"),
        ("dry-run --trace directory", "directory: cannot be read: Is a directory"),
        ("dry-run --trace prose.swf", "prose.swf: expected job lines of 18 numbers, found line 1: "),
        ("dry-run --trace empty.swf", "empty.swf: expected job lines of 18 numbers, found none"),
        ("dry-run --trace broken.swf --strict", "broken.swf:8: expected 18 numbers, found 2 in '7 x'"),
        ("dry-run --trace cut.swf.gz", "cut.swf.gz: the compressed file is damaged or cut off"),
        (
            "dry-run --trace plain.swf.gz",
            "plain.swf.gz: expected a gzip file, as the name says, found other data",
        ),
        (
            "dry-run --trace headless.swf",
            "headless.swf: the header names no machine size (MaxProcs or MaxNodes); give --processors N",
        ),
        (
            "dry-run --trace small.swf --policy eazy",
            "--policy: no plugin is called 'eazy'. Did you mean 'easy'",
        ),
        (
            "dry-run --trace small.swf --policy first-fit",
            "found the plugin 'first-fit', which implements place",
        ),
        ("dry-run --trace small.swf --window 5 3", "window: expected a start before its end, found 5 to 3 s"),
        (
            "dry-run --trace small.swf --window 9000 9001",
            "window: expected jobs from 9000 to 9001 s, but the last is submitted 780 s after the first",
        ),
        ("dry-run --trace small.swf --journal no/j.db", "expected its directory"),
        ("dry-run --trace small.swf --out small.swf", "--out small.swf: expected a directory, found a file"),
        (
            "dry-run --trace small.swf --out small.swf/x",
            "--out small.swf/x: expected a directory, found a file on the way to it",
        ),
        ("demo --out small.swf", "--out small.swf: expected a directory, found a file"),
        (
            "dry-run --trace small.swf --plugin missing.py",
            "--plugin missing.py: expected a Python file, found no such file",
        ),
        (
            "dry-run --trace small.swf --plugin bad.py",
            "--plugin bad.py, line 4: does not load: ValueError: oh",
        ),
        ("dry-run --trace small.swf --plugin none.py", "--plugin none.py: expected a class with hooks"),
        (
            "dry-run --trace small.swf -c missing.yaml",
            "missing.yaml: expected a configuration file, found no such file",
        ),
        (
            "dry-run --trace small.swf -c unknown.yaml",
            "unknown.yaml: plugins[0]: no plugin is called 'eazy'. Did you mean 'easy'",
        ),
        ("dry-run --trace small.swf -c twice.yaml", "twice.yaml: plugins[2]: plugin 'easy' is enabled twice"),
        ("dry-run --trace small.swf -c without.yaml", "no policy is enabled"),
        ("dry-run --trace small.swf -c none.yaml", "no policy is enabled"),
        (
            "dry-run --trace small.swf -c optioned.yaml",
            "optioned.yaml: plugins[0]: plugin 'fcfs' has no options, found {'depth': 3}",
        ),
        (
            "dry-run --trace small.swf -c range.yaml",
            "range.yaml: plugins[0]: delayed-los: max_skips: expected greater than or equal to ",
        ),
        (
            "dry-run --trace small.swf -c typo.yaml",
            "typo.yaml: plugins[0]: delayed-los: max_skip: unknown key. Did you mean 'max_skips'?",
        ),
        (
            "dry-run --trace small.swf -c type.yaml",
            "type.yaml: plugins[0]: delayed-los: lookahead: expected a whole number, found 'all'",
        ),
        (
            "dry-run --trace small.swf -c faulty.yaml",
            "faulty.yaml: emulation.faults: node_mtb: unknown key. Did you mean 'node_mtbf'",
        ),
        ("check -c faulty.yaml", "faulty.yaml: emulation.faults: node_mtb: unknown key."),
        ("check -c without.yaml", "without.yaml: plugins: no policy is enabled (such as easy)"),
        (
            "check -c live.yaml",
            "live.yaml: cluster.adapter: expected a real cluster's adapter (such as slurm), found 'emulated'",
        ),
        (
            "run -c live.yaml",
            "live.yaml: cluster.adapter: expected a real cluster's adapter (such as slurm), found 'emulated'",
        ),
        (
            "run -c flat.yaml",
            "flat.yaml: emulation.trace: expected a trace file for mode dry-run, found none",
        ),
        (
            "dry-run -c flat.yaml --from-cluster",
            "flat.yaml: cluster.adapter: expected a real cluster's adapter",
        ),
        ("plugins eas", "no plugin is called 'eas'. Did you mean 'easy'"),
        ("replay missing.db", "expected a journal, found no such file"),
        ("replay small.swf", "expected a headway journal, found a file of another kind"),
        ("replay directory", "expected a file, found a directory"),
    ],
)
def test_a_mistake_is_named_with_its_place_what_was_expected_and_what_was_found(
    headway: Headway, arguments: str, message: str
) -> None:
    ran = headway(*arguments.split())
    assert message in ran.err
    assert (ran.code, ran.out) == (USERS_MISTAKE, "")
    assert ran.err.startswith("headway: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("dryrun", "no command is called 'dryrun'. Did you mean 'dry-run'"),
        ("frobnicate", "no command is called 'frobnicate'."),
        ("dry-run", "expected --trace FILE, --workload MODEL or -c CONFIG"),
        ("dry-run --trace a --from-cluster", "expected --trace FILE, --workload MODEL or -c CONFIG"),
        ("dry-run --from-cluster", "--from-cluster needs -c CONFIG, which names the cluster"),
        (
            "dry-run -c flat.yaml --from-cluster --first 3",
            "--first goes with --trace, not with --from-cluster",
        ),
        ("dry-run --trase x", "--trace"),
        ("dry-run --trace small.swf --limit 0", "'--limit': 0 is not in the range x>=1"),
        ("dry-run --trace small.swf --scale-arrivals 0", "'--scale-arrivals': 0.0 is not in the range x>0"),
        ("run", "Missing option '-c' / '--config'"),
        ("run -c live.yaml --out out", "--out goes with mode dry-run; live.yaml says mode drive"),
        ("explain", "Missing argument 'JOB'"),
    ],
)
def test_a_wrong_command_line_shows_the_usage(headway: Headway, arguments: str, message: str) -> None:
    ran = headway(*arguments.split())
    assert (ran.code, ran.out) == (USERS_MISTAKE, "")
    assert ran.err.startswith("Usage: headway ")
    assert message in ran.err


def test_a_broken_line_is_skipped_and_said_unless_strict(headway: Headway) -> None:
    ran = headway("dry-run", "--trace", "broken.swf")
    assert ran.code == 0 and ran.out.startswith("easy: 40 jobs")
    said = "broken.swf: 1 line skipped: too few fields (line 8: expected 18 numbers, found 2 in '7 x')\n"
    assert ran.err == f"{said}(--verbose prints the lines)\n"


def test_a_process_ends_with_the_same_codes_and_keeps_the_outputs_apart(headway_process: Headway) -> None:
    ran = headway_process("dry-run", "--trace", "none.swf")
    assert (ran.code, ran.out) == (USERS_MISTAKE, "")
    assert ran.err == "headway: none.swf: cannot be read: No such file or directory\n"
    ran = headway_process("plugins")
    assert (ran.code, ran.err) == (0, "")


def test_an_out_directory_that_cannot_be_made_fails_before_the_run(headway: Headway) -> None:
    ran = headway("dry-run", "--trace", "small.swf", "--out", "/proc/headway")
    assert (ran.code, ran.out) == (FAILURE, "")
    assert ran.err.startswith("headway: --out /proc/headway: the directory cannot be made: ")


def test_a_read_only_out_directory_fails_before_the_run(
    headway: Headway, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The system's answer is pretended: nothing is read-only to root.
    monkeypatch.setattr("headway.cli.common.os.access", lambda path, mode: not (mode & os.W_OK))
    ran = headway("dry-run", "--trace", "small.swf", "--out", "directory")
    assert (ran.code, ran.out) == (FAILURE, "")
    assert ran.err == "headway: --out directory: the directory is not writable\n"


@pytest.mark.parametrize("command", ["dry-run --trace small.swf", "demo --days 1"])
def test_a_full_disk_costs_the_files_and_not_the_printed_result(
    headway: Headway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("headway.report.atomic.os.fsync", full)
    ran = headway(*command.split(), "--out", "out")
    assert ran.code == FAILURE
    assert "easy" in ran.out
    # Whichever comes first: each command has its order.
    assert re.fullmatch(r"headway: out/\S+: cannot be written: No space left on device\n", ran.err)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [], "no half of a file"


def test_a_full_disk_under_the_journal_ends_the_run_with_a_message(
    headway: Headway, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.errors import Failure
    from headway.journal import Journal

    def full(*_: object) -> None:
        raise Failure("journal j.db: cannot be written: database or disk is full")

    monkeypatch.setattr(Journal, "record_decisions", full)
    ran = headway("dry-run", "--trace", "small.swf", "--journal", "j.db")
    assert ran.code == FAILURE
    assert ran.err == "headway: journal j.db: cannot be written: database or disk is full\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["plugins", "--help", "dry-run --trace small.swf"])
def test_a_full_disk_under_standard_output_is_a_failure_without_traceback(arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command_of(*arguments.split()), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (FAILURE, "headway: output: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error_and_no_file_takes_their_place(headway: Headway, closed: str) -> None:
    called = shlex.join(command_of("dry-run", "--trace", "small.swf", "--journal", "j.db"))
    done = subprocess.run(f"{called} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert headway("replay", "j.db").code == 0


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        command_of("plugins"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 0


def test_characters_that_the_terminal_does_not_know_are_replaced(headway_process: Headway) -> None:
    ran = headway_process("dry-run", "--trace", "small.swf", PYTHONIOENCODING="ascii")
    assert (ran.code, ran.err) == (0, "")


# --- the batch system ---------------------------------------------------------------------------

#: What follows the message about a batch system that cannot be reached.
LOOK = "`headway check -c slurm.yaml` checks each step on the way to the cluster.\n"
ASKING = ["run -c slurm.yaml", "dry-run -c slurm.yaml --from-cluster", "explain 5 --fresh -c slurm.yaml"]


@pytest.mark.parametrize("command", ASKING)
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1',
            "squeue --version: slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        ),
        ("echo '{garbage'", "scontrol show config: expected Slurm's listing, found '{garbage'"),
        ("exit 0", "scontrol show config: expected Slurm's listing, found nothing"),
        ("kill -9 $$", "squeue --version: squeue crashed (status -9)"),
    ],
)
def test_a_batch_system_that_fails_or_talks_nonsense(
    headway: Headway, pretended_slurm: Callable[..., Path], command: str, script: str, message: str
) -> None:
    pretended_slurm(script)
    ran = headway(*command.split())
    assert (ran.code, ran.out) == (FAILURE, "")
    assert ran.err == f"headway: {message}\n{LOOK}"


@pytest.mark.parametrize("command", [*ASKING, "check -c slurm.yaml"])
def test_a_batch_system_that_hangs_is_given_up_after_its_time_out(
    headway: Headway, pretended_slurm: Callable[..., Path], command: str
) -> None:
    pretended_slurm("sleep 60")
    began = time.monotonic()
    ran = headway(*command.split())
    assert time.monotonic() - began < bound(20)
    assert ran.code == FAILURE
    assert "squeue did not answer within 1 s" in " ".join((ran.out + ran.err).split())


@pytest.mark.parametrize("command", ASKING)
def test_an_adapter_whose_commands_are_not_installed(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path, command: str
) -> None:
    pretended_slurm()
    for program in (tmp_path / "bin").iterdir():
        program.unlink()
    ran = headway(*command.split())
    assert (ran.code, ran.out) == (FAILURE, "")
    looked = f"the program 'squeue' is not installed (looked in {tmp_path / 'bin'})"
    assert ran.err == f"headway: {looked}\n{LOOK}"


@pytest.mark.parametrize(
    "queue", ["echo '{\"jobs\": 3}'", "head -c 2000 /dev/urandom", "echo '{}'", "echo '[]'"]
)
def test_a_queue_listing_that_is_nonsense(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path, queue: str
) -> None:
    config = pretended_slurm()
    squeue = tmp_path / "bin" / "squeue"
    squeue.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo "slurm-wlm 22.05.8";; *) {queue};; esac\n')
    ran = headway("dry-run", "-c", config, "--from-cluster")
    assert (ran.code, ran.out) == (FAILURE, "")
    assert "squeue" in ran.err.splitlines()[-2]


def test_a_partition_that_does_not_exist_is_the_users_mistake(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    config = pretended_slurm()
    config.write_text(config.read_text().replace("[batch]", "[bach]"))
    ran = headway("run", "-c", config)
    assert ran.code == USERS_MISTAKE
    assert "cluster.options.partitions: Slurm has no partition 'bach'. Known: batch, " in ran.err
