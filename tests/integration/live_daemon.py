"""``headway run`` as an operator runs it, and jobs that write down when they ran."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import yaml
from waiting import HANG, limit, until

from headway.daemon.replay import replay
from headway.decisions import Decision, Start
from headway.errors import HeadwayError
from headway.events import Event
from headway.journal import CycleRecord, Journal, RunRecord
from headway.plugins import Catalogue
from headway_adapters.slurm import hostlist

#: The command as it is installed beside the interpreter.
HEADWAY = Path(sys.executable).with_name("headway")


@dataclass(frozen=True)
class Ran:
    """One execution of a job, as the job itself wrote it down; times are seconds since the epoch."""

    job: str
    begin: float
    end: float


class Diary:
    """Where jobs write down that they ran: a second start of a job would be a second line."""

    def __init__(self, cluster: Any) -> None:
        self.path = cluster.root / "diary"
        self.path.touch()
        self.path.chmod(0o666)

    def script(self, seconds: float | str, exit_code: int = 0) -> str:
        """A job's script that runs for so long; a text is the shell's to work out."""
        return (
            "job=$SLURM_JOB_ID; "
            '[ -z "$SLURM_ARRAY_TASK_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; '
            f'echo "begin $job $(date +%s.%N)" >> {self.path}; sleep {seconds}; '
            f'echo "end $job $(date +%s.%N)" >> {self.path}; exit {exit_code}'
        )

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()]

    def begun(self) -> Counter[str]:
        """How often each job began."""
        return Counter(job for what, job, _ in self.lines() if what == "begin")

    def ended(self) -> Counter[str]:
        """How often each job came to its end."""
        return Counter(job for what, job, _ in self.lines() if what == "end")

    def executions(self) -> dict[str, Ran]:
        """Each job's only execution."""
        begin = {job: float(at) for what, job, at in self.lines() if what == "begin"}
        return {job: Ran(job, begin[job], float(at)) for what, job, at in self.lines() if what == "end"}


class Daemon:
    """The daemon's configuration, journal and log in one directory, and its process."""

    def __init__(self, cluster: Any, directory: Path, **config: Any) -> None:
        self.cluster = cluster
        self.config_path = directory / "site.yaml"
        self.log_path = directory / "headway.log"
        self.process: subprocess.Popen[bytes] | None = None
        #: What was read of the log so far, and to which byte.
        self._log: list[dict[str, Any]] = []
        self._read = 0
        #: The command line that is `headway`.
        self.program = [str(HEADWAY)]
        #: More that helps where it was waited for in vain.
        self.aside: Callable[[], str] = lambda: ""
        options = {
            "partitions": ["batch"], "poll_interval": 0.4, **cluster.options,
            **config.pop("options", {}),
        }  # fmt: skip
        self.config: dict[str, Any] = {
            "mode": "drive",
            "cluster": {"adapter": "slurm", "options": options},
            "plugins": ["easy", "first-fit"],
            "journal": str(directory / "journal.sqlite"),
            "log": {"format": "json"},
            **config,
        }
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Write the configuration file, with these keys changed."""
        self.config.update(changes)
        self.config_path.write_text(yaml.safe_dump(self.config))

    # -- the process -------------------------------------------------------------------------------

    def start(self, *arguments: str, await_log: bool = True) -> None:
        """Run it; returns once it says that it has started."""
        already = len(self.said("started"))
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.program, "run", "-c", str(self.config_path), *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        if await_log:
            self.until(lambda: len(self.said("started")) > already, what="the daemon starts")

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = HANG) -> int:
        """End it and return its exit code; fails if it takes longer than ``seconds``."""
        self.send(number)
        return self.ended(seconds)

    def ended(self, seconds: float) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process is not None
        code = self.process.wait(limit(seconds))
        self.process = None
        return code

    def kill(self) -> None:
        assert self.stop(signal.SIGKILL) == -signal.SIGKILL

    def clean_up(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(HANG)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another of headway's commands, with the daemon's configuration file."""
        line = [words[0], "-c", str(self.config_path), *words[1:]]
        environment = {**os.environ, "COLUMNS": "200"}
        if self.program == [str(HEADWAY)]:
            return forked.headway(line, environment=environment)
        return subprocess.run(
            [*self.program, *line], capture_output=True, text=True, timeout=HANG, env=environment
        )

    def until(self, condition: Callable[[], object], seconds: float = HANG, what: str = "") -> None:
        """Wait until ``condition`` holds; fails at once, with the log, if the daemon ends meanwhile."""

        def holds() -> bool:
            if condition():
                return True
            assert self.process is not None and self.process.poll() is None, self.log_path.read_text()
            return False

        until(holds, what, seconds, said=lambda: self.log_path.read_text() + self.aside())

    # -- what it says ------------------------------------------------------------------------------

    def log(self) -> list[dict[str, Any]]:
        if not self.log_path.exists() or self.log_path.stat().st_size < self._read:
            self._log, self._read = [], 0
        if self.log_path.exists():
            with self.log_path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            new = new[: new.rfind(b"\n") + 1]
            self._read += len(new)
            lines = new.decode().splitlines()
            self._log += [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return list(self._log)

    def said(self, event: str) -> list[dict[str, Any]]:
        """The log's entries of this kind."""
        return [entry for entry in self.log() if entry["event"] == event]

    # -- what it wrote down ------------------------------------------------------------------------

    def journal(self) -> Journal:
        return Journal.open(self.config["journal"], create=False, read_only=True)

    def runs(self) -> list[RunRecord]:
        with self.journal() as journal:
            return journal.runs()

    def cycles(self) -> list[CycleRecord]:
        """All cycles of all runs."""
        with self.journal() as journal:
            return [cycle for run in journal.runs() for cycle in journal.cycles(run.id)]

    def decisions(self) -> list[tuple[float, Decision]]:
        return [(cycle.now, decision) for cycle in self.cycles() for decision in cycle.decisions]

    def starts(self) -> list[tuple[float, Start]]:
        """Each start that was decided, by any run; none before there is a journal."""
        try:
            with self.journal() as journal:
                return [(now, s) for run in journal.runs() for _, now, s in journal.starts(run.id)]
        except HeadwayError:
            return []

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for cycle in self.cycles() for event in cycle.events if isinstance(event, kind)]

    def assert_replays(self, *plugins: Path) -> None:
        """`headway replay` finds no difference in any run. ``plugins``: files of plugins that they used."""
        for run in self.runs():
            with self.journal() as journal:
                found = replay(journal, Catalogue(plugins), run.id)
            assert not found.differences, found.differences[:3]


@dataclass(frozen=True)
class Shown:
    """A job as ``scontrol show job`` has it; ended ones too, for MinJobAge (five minutes)."""

    fields: dict[str, str]
    #: The numbers of the processors that it has, or had, on each node.
    processors: dict[str, frozenset[int]]

    @property
    def state(self) -> str:
        return self.fields["JobState"]

    @property
    def cells(self) -> set[tuple[str, int]]:
        """Each processor as (node, number)."""
        return {(node, cpu) for node, cpus in self.processors.items() for cpu in cpus}


def shown(cluster: Any) -> dict[str, Shown]:
    """All of Slurm's jobs by id, array elements as ``12_3``."""
    jobs = {}
    for line in cluster.run("scontrol", "-d", "-o", "show", "job").splitlines():
        fields = dict(re.findall(r"(\S+?)=(\S*)", line))
        if "JobId" not in fields:
            continue
        key = fields["JobId"]
        if fields.get("ArrayTaskId", "").isdecimal():
            key = f"{fields['ArrayJobId']}_{fields['ArrayTaskId']}"
        processors = {
            node: frozenset(_numbers(listed))
            for names, listed in re.findall(r"Nodes=(\S+) CPU_IDs=([0-9,-]+)", line)
            for node in hostlist.expand(names)
        }
        jobs[key] = Shown(fields, processors)
    return jobs


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
