"""Every command once, on small clean inputs: in this installation, and in one of the bare wheel.

As a program (``python every_command.py``) it runs all of them in its own folder and prints, as JSON, how each
ended and what it said; with ``--check`` it prints which ended otherwise than they should.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

#: Command lines, in their order: later ones read what earlier ones wrote.  Exit codes other than 0 stand in
#: :data:`EXPECTED`.
LINES = (
    "demo --help",
    "dry-run --trace log.swf --policy easy --journal j.db",
    "dry-run -c shares.yaml --trace log.swf --journal shares.db",
    "dry-run --workload month --policy fcfs",
    "dry-run --trace sample:fortnight --policy fcfs",
    "dry-run --trace log.swf --policy easy --out out",
    "dry-run --trace log.swf --policy fcfs --out other --export evalys",
    "diff out other",
    "compare campaign.yaml --out campaign --workers 1",
    "compare --workload lublin --set jobs=400 --load 0.7 --policy easy --policy fcfs --seeds 2 --out both",
    "repeat campaign --workers 1",
    "results --db r.db add campaign",
    "results --db r.db list",
    "results --db r.db table 1",
    "lint-experiment campaign.yaml",
    "tune delayed-los --trace log.swf --values 1..2 --workers 1",
    "reproduce --help",
    "claims .",
    "generate",
    "generate month -o month.swf",
    "generate feitelson96 -o f.swf --set jobs=50",
    "generate lublin -o l.swf --set jobs=50",
    "analyze log.swf",
    "analyze log.swf --out study",
    "convert log.swf converted.swf.gz",
    "estimates",
    "estimates fit log.swf -o estimates.yaml",
    "run -c dry.yaml",
    "check -c dry.yaml",
    "give-back --all --dry-run -c dry.yaml",
    "drive --for 2h -c dry.yaml",
    "plugins",
    "plugins easy",
    "plugins scopred",
    "replay j.db",
    "journal info --journal j.db",
    "journal check --journal j.db",
    "journal prune --keep 90d --dry-run --journal j.db",
    "journal backup backup.db --journal j.db",
    "journal restore backup.db --journal j.db",
    "journal move moved.db --journal j.db",
    "journal follow --journal postgresql://a@b/c",
    "explain 5 -c site.yaml --journal-only",
    "starts -c site.yaml",
    "shadow report -c site.yaml",
    "jobs -c site.yaml",
    "top --once -c site.yaml",
    "init --set bin_dir=.",
    "schema",
    "schema status",
    "serve --help",
    "token create --user alice --for 30d -c site.yaml",
    "token list -c site.yaml",
    "token prune -c site.yaml",
    "completion bash",
    "status -c site.yaml",
    "health -c site.yaml",
    "metrics -c site.yaml",
    "datasets -c site.yaml",
    "elastic 5 --extend 30m -c site.yaml",
    "reserve --at +1h --for 1h --nodes 1 -c site.yaml",
    "when -n 4 -t 2h -c site.yaml",
    "holes -c site.yaml",
    "what-if easy -c site.yaml",
    "unreserve r1 -c site.yaml",
    "metajob cancel m1 -c site.yaml",
    "arrivals fit log.swf -o arrivals.yaml",
    "bundle --help",
    "emulate-commands --help",
    "fairness -c site.yaml",
    "fit ft --formula N/P --runs runs.csv",
    "predict ft --formula N/P --runs runs.csv --set N=20000 --nodes 2..8",
    "import slurm slurm.conf",
    "lab pbs --for 3s --every 1s",
    "node-agent report",
    "plan --list night.csv --processors 8",
    "priority --journal shares.db",
    "shares --journal shares.db",
    "limits --journal shares.db",
    "profile pipeline.yaml --run",
    "size pipeline.yaml -p n=1 --processors 4",
    "protect -- true",
    "security measure --seconds 0.01",
    "window --list window.csv --processors 4 --length 2h",
)

#: Those that end otherwise than with 0 where all extras are installed, since no daemon runs here, say.
EXPECTED = {
    "diff out other": 1,
    # A database is shared.
    "journal follow --journal postgresql://a@b/c": 2,
    # There is no batch system.
    "give-back --all --dry-run -c dry.yaml": 2,
    "drive --for 2h -c dry.yaml": 2,
    "jobs -c site.yaml": 1,
    "top --once -c site.yaml": 1,
    "status -c site.yaml": 1,
    "health -c site.yaml": 2,
    "metrics -c site.yaml": 1,
    "init --set bin_dir=.": 2,
    "datasets -c site.yaml": 1,
    "elastic 5 --extend 30m -c site.yaml": 1,
    "reserve --at +1h --for 1h --nodes 1 -c site.yaml": 1,
    "unreserve r1 -c site.yaml": 1,
    "when -n 4 -t 2h -c site.yaml": 1,
    "holes -c site.yaml": 1,
    "what-if easy -c site.yaml": 1,
    "metajob cancel m1 -c site.yaml": 1,
    "starts -c site.yaml": 2,
    "shadow report -c site.yaml": 2,
    "fairness -c site.yaml": 2,
    "protect -- true": 125,
}

#: Commands without ``--json``, and why.
NO_JSON = {
    "bundle first-process": "one number, for scripts of headway's own",
    "bundle manage": "a process that works until its bundle is over",
    "bundle wait": "its answer is the application's exit code",
    "bundle worker": "a process that works until its bundle is over",
    "completion": "it prints a shell's program",
    "drive": "a daemon: its log can be JSON (log.format)",
    "emulate-commands": "emulates until it is told to end",
    "journal follow": "it speaks to a stand-by, not to people",
    "lab": "it tells how a throw-away cluster goes until it is told to end",
    "node-agent first-process": "one number, for scripts of headway's own",
    "node-agent reset": "for prologs: its answer is the exit code",
    "node-agent serve": "a daemon",
    "node-agent set-frequency": "for prologs: its answer is the exit code",
    "node-agent watch": "each of its lines is JSON",
    "protect": "its output is that of the command that it runs",
    "schema": "it prints JSON",
    "serve": "it serves until it is told to end",
    "run": "a daemon: its log can be JSON (log.format)",
    "top": "a picture for people: `headway jobs`, `explain` and `status` have the same for programs",
}

#: Jobs whose figures have five digits, so that thousands are parted.
_LOG = "; MaxProcs: 64\n; MaxJobs: 40\n" + "".join(
    f"{n} {n * 600} -1 {30000 + n * 137 % 40000} {1 + n % 32} -1 -1 {1 + n % 32} {72000 + n % 3 * 3600} "
    f"-1 1 {n % 5 + 1} {n % 3 + 1} -1 1 -1 -1 -1\n"
    for n in range(1, 41)
)

#: A controlled run writes what its filters received, and how long they were busy.
_PIPELINE = """
import json, os
filters = {"read": {"bytes": 60000, "seconds": 30}, "count": {"bytes": 20000, "seconds": 10}}
json.dump({"filters": filters}, open(os.environ["HEADWAY_PROFILE"], "w"))
"""

#: Inputs by name.
FILES = {
    "log.swf": _LOG,
    "dry.yaml": "mode: dry-run\nemulation: {trace: log.swf}\nplugins: [easy]\n",
    "shares.yaml": "plugins: [fair-tree, {multifactor: {weights: {fairshare: 1000}}}, easy, "
    "{limits: {of: {user: {'*': {jobs: 10}}}}}]\n",
    "site.yaml": "journal: j.db\ncluster: {adapter: slurm, options: {partitions: [all]}}\nplugins: [easy]\n",
    "campaign.yaml": "processors: 64\npolicies: [fcfs, easy]\nseeds: 2\nmethod: {usage: a test}\n"
    "workloads: [{model: lublin, options: {jobs: 400}, loads: [0.7]}]\n",
    "runs.csv": "N,P,runtime\n" + "".join(
        f"{n},{p},{n / p + 5 + n % 7}\n" for n in range(10000, 30000, 2500) for p in (2, 4, 8)
    ),
    "slurm.conf": "ClusterName=c\nNodeName=n[1-4] CPUs=32\nPartitionName=batch Nodes=n[1-4] Default=YES\n",
    "night.csv": "name,processes,time\na,8,20000\nb,4,15000\nc,2,12000\n",
    "window.csv": "job,stage,length\na,1,1200\na,2,1800\nb,1,2400\n",
    "pipeline.yaml": json.dumps({
        "program": "p", "parameters": {"n": [1]}, "filters": [{"name": "read"}, {"name": "count"}],
        "command": [sys.executable, "program.py"],
    }),
    "program.py": _PIPELINE,
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the inputs."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Each command with its words, such as ``journal info``."""
    from headway.cli import cli

    def below(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if not isinstance(command, click.Group) or command.invoke_without_command:
                yield " ".join((*words, name)), command
            if isinstance(command, click.Group):
                yield from below(command, (*words, name))

    yield from below(cli, ())


def command_of(line: str) -> click.Command:
    """The command of a line."""
    from headway.cli import cli

    found: click.Command = cli
    for word in line.split():
        if isinstance(found, click.Group):
            found = found.get_command(click.Context(found), word) or found
    return found


def json_lines() -> list[tuple[str, click.Command]]:
    """The lines with ``--json`` behind each that can have it, and their commands; the help is left out."""
    from headway.cli.as_json import schema_of

    lines = [line for line in LINES if not line.endswith("--help")]
    found = [(line, command_of(line)) for line in lines]
    return [(f"{line} --json" if schema_of(command) else line, command) for line, command in found]


def run_all(lines: Sequence[str] = LINES) -> list[dict[str, Any]]:
    """How each line ended here (its exit code, or -1 for an exception), and what it said: all of it, and on
    standard output."""
    from headway.cli import main

    os.environ.update(COLUMNS="120", MPLBACKEND="agg")
    told = []
    for line in lines:
        said, out = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(_Both(said, out)), contextlib.redirect_stderr(said):
            try:
                main(line.split())
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                code = -1
                traceback.print_exc(file=said)
        told.append({"line": line, "code": code, "said": said.getvalue(), "out": out.getvalue()})
    return told


class _Both(io.StringIO):
    """Writes to two streams, text and bytes."""

    def __init__(self, *streams: io.StringIO) -> None:
        super().__init__()
        self._streams = streams

    def write(self, text: str | bytes) -> int:
        for stream in self._streams:
            stream.write(text if isinstance(text, str) else text.decode())
        return len(text)


def unexpected(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that ended otherwise than they should, and not for want of an extra that they name."""
    return [one for one in told if one["code"] != EXPECTED.get(one["line"], 0) and not lacks_an_extra(one)]


def lacks_an_extra(one: dict[str, Any]) -> bool:
    """Whether it says so. What follows from it (a campaign that was not run) names what it misses."""
    follows = one["line"].split()[0] in ("diff", "repeat", "results")
    return one["code"] == 2 and ("extra `" in one["said"] or follows)


def check() -> int:
    """Run all of them, and print what ended otherwise; the exit code."""
    told = run_all()
    wrong = unexpected(told)
    for one in wrong:
        print(f"headway {one['line']}: exit code {one['code']}\n{one['said'][-2000:]}")
    otherwise = [one for one in told if one["code"] != EXPECTED.get(one["line"], 0)]
    lacking = [one["line"] for one in otherwise if one not in wrong]
    good = len(told) - len(otherwise)
    print(f"{len(told)} lines: {good} as they should, {len(lacking)} name an extra, {len(wrong)} otherwise")
    for line in lacking:
        print(f"  without an extra: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    prepare(Path.cwd())
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    lines = [line for line, _ in json_lines()] if "--json" in sys.argv else LINES
    sys.stdout.write(json.dumps(run_all(lines)))
