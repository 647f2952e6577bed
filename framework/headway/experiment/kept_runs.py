"""The finished runs of a campaign, kept in its folder so that an interrupted campaign can continue.

``runs.jsonl`` begins with a line on the program and the files that were read; then comes a line a task (all
policies on one workload with one seed) as each ends, on disk before it counts. A line that was being written
when the machine stopped is left out. A line is taken again only for exactly the same: workload, seed,
policies, what is measured, contents of the files, program.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import Failure, Held, UserError
from headway.experiment.campaign import Campaign, Row, Scenario, Task, tasks_of
from headway.experiment.execution import Failed, Runner
from headway.experiment.facts import WorkloadFacts
from headway.experiment.kept import digest
from headway.experiment.record import Files, changed
from headway.journal.lock import who_locks
from headway.report.atomic import writing

RUNS = "runs.jsonl"
_LOCK = ".lock"

#: Of the first line; others are not read.
_FORMAT = 1


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """No other process runs a campaign in this folder, which exists; :class:`Held` names a process that does.

    The kernel gives the lock back when the process ends, in whatever way.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Failure(f"{folder}: cannot be locked: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = who_locks(os.fstat(lock).st_ino) or "a process on another host"
            raise Held(
                f"{folder}: another campaign runs in this folder: {who}. Wait for its end, or name another "
                "folder (--out)"
            ) from None
        except OSError as error:
            raise Failure(f"{folder}: cannot be locked: {error.strerror}") from error
        yield
    finally:
        os.close(lock)


@dataclass(frozen=True)
class Wanted:
    """A task, and what stands for it in the file."""

    task: Task
    digest: str
    #: SHA-256 of its trace; "": it has none.
    trace: str


def wanted(campaign: Campaign, files: Files) -> list[Wanted]:
    """The tasks of a campaign that reads these files, in their order. Paths in them are absolute."""
    scenarios = []
    for one in campaign.scenarios:
        trace = str(Path(one.trace).resolve()) if one.trace else ""
        model = str(Path(one.estimates).resolve()) if Path(one.estimates).is_file() else one.estimates
        scenarios.append(replace(one, trace=trace, estimates=model))
    policies = [
        [variant.cycle, [[one.name, dict(one.options)] for one in variant.plugins]]
        for variant in campaign.variants
    ]
    shared = {
        "policies": policies,
        "measured": [str(campaign.method.warmup), str(campaign.method.cooldown)],
        "files": sorted(files.others.values()),
    }
    found = []
    for task in tasks_of(replace(campaign, scenarios=tuple(scenarios))):
        scenario: Scenario = task.arguments[0]
        trace = files.traces[Path(scenario.trace)] if scenario.trace else ""
        model = "" if Path(scenario.estimates).is_absolute() else scenario.estimates
        known = {**shared, "keys": task.keys, "scenario": replace(scenario, trace=trace, estimates=model)}
        found.append(Wanted(task, digest(known), trace))
    return found


class KeptRuns:
    """The runs in a folder that are there of a campaign. To be made while the folder is :func:`locked`.

    ``named``: the files that the campaign reads, by name, with their SHA-256; ``program``: version and source
    of headway. ``anew``: whatever is there is dropped.

    Raises :class:`UserError`, and leaves the folder as it is, if a file has changed since its runs were made,
    or if runs would be lost: this campaign does not want them, or another program made them and was
    interrupted.
    """

    def __init__(
        self,
        folder: Path,
        runs: Sequence[Wanted],
        named: Mapping[str, str],
        program: Mapping[str, str],
        *,
        anew: bool = False,
    ) -> None:
        self._path = folder / RUNS
        self._runs = runs
        self._head: dict[str, Any] = {"format": _FORMAT, **program, "files": dict(named)}
        #: Digest -> line.
        self._lines: dict[str, str] = {}
        if self._path.exists() and not anew:
            head, lines = self._read()
            self._check(head, lines)
            if head.get("code") == program["code"]:
                mine = {run.digest for run in runs}
                self._lines = {key: line for key, line in lines.items() if key in mine}
        self._write(complete=False)

    @property
    def missing(self) -> list[Wanted]:
        """What has not run yet."""
        return [run for run in self._runs if run.digest not in self._lines]

    def add(self, run: Wanted, rows: Sequence[Row]) -> None:
        """What a task gave; on disk when this returns."""
        facts = rows[0].facts
        line = json.dumps(
            {
                "run": run.digest,
                "facts": None if facts is None else msgspec.to_builtins(facts),
                "rows": [[*row.key, row.values, row.batches] for row in rows],
            }
        )
        try:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(line + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise Failure(f"{self._path}: cannot be written: {error.strerror or error}") from error
        self._lines[run.digest] = line

    def rows(self) -> list[Row]:
        """All rows that are there, in the order of the tasks."""
        return [row for run in self._runs if run.digest in self._lines for row in self._rows(run.digest)]

    def complete(self) -> None:
        """Say that all has run that can, and put the runs into their order."""
        self._write(complete=not self.missing)

    def _rows(self, key: str) -> list[Row]:
        said = json.loads(self._lines[key])
        facts = None if said["facts"] is None else msgspec.convert(said["facts"], WorkloadFacts)
        return [
            Row(scenario, x, variant, seed, values, batches, facts)
            for scenario, x, variant, seed, values, batches in said["rows"]
        ]

    def _write(self, *, complete: bool) -> None:
        with writing(self._path) as stream:
            stream.write(json.dumps({**self._head, "complete": complete}) + "\n")
            for run in self._runs:
                if run.digest in self._lines:
                    stream.write(self._lines[run.digest] + "\n")

    def _read(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The first line, and the others by digest; one that is not whole is left out."""
        wrong = UserError(f"{self._path}: expected the runs of a campaign, found something else. {_REMEDY}")
        try:
            whole, _, _ = self._path.read_bytes().rpartition(b"\n")
            first, *others = whole.decode("utf-8").split("\n")
            head = json.loads(first)
            if not isinstance(head, dict) or head.get("format") != _FORMAT:
                raise wrong
            return head, {json.loads(line)["run"]: line for line in others}
        except OSError as error:
            raise Failure(f"{self._path}: cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise wrong from error

    def _check(self, head: Mapping[str, Any], lines: Mapping[str, str]) -> None:
        before, now = head.get("files", {}), self._head["files"]
        for name in changed(before, now):
            found = f"{now[name][:12]}…" if now[name] else "none"
            raise UserError(
                f"{name} has changed since the runs in {self._path} were made: expected the file with "
                f"SHA-256 {before[name][:12]}…, found {found}. Put it back. {_REMEDY}"
            )
        interrupted = not head.get("complete")
        if interrupted and lines and head.get("code") != self._head["code"]:
            raise UserError(
                f"{self._path}: the {len(lines)} finished workloads of this interrupted campaign were run "
                f"by another program: expected headway {self._head['version']} as it is here, found "
                f"{head.get('version')} with other source code. {_REMEDY}"
            )
        lost = len(lines.keys() - {run.digest for run in self._runs})
        if lost:
            state = "interrupted" if interrupted else "finished"
            raise UserError(
                f"{self._path}: {lost} of the {len(lines)} finished workloads of this {state} campaign do "
                f"not belong to the campaign that is to run now. {_REMEDY}"
            )


_REMEDY = "Name another folder (--out), or drop the earlier runs (--anew)."


def run_missing(kept: KeptRuns, runner: Runner, on_done: Callable[[int], None]) -> list[Failed]:
    """Run what is missing and keep it; what failed, in the order of the tasks.

    ``on_done(n)`` is called when ``n`` more emulations are over.
    """
    runs = kept.missing
    failed: dict[int, Failed] = {}
    for at, outcome in runner([run.task for run in runs]):
        run = runs[at]
        on_done(len(run.task.keys))
        if not isinstance(outcome, Failed):
            facts = outcome[0].facts
            found = facts.digest if facts is not None else ""
            if found == run.trace:
                kept.add(run, outcome)
                continue
            why = (
                "its trace differed on the machine that ran it: expected SHA-256 "
                f"{run.trace[:12]}…, found {found[:12]}…"
            )
            outcome = Failed(run.task.keys, Failure(why))
        failed[at] = outcome
    return [failed[at] for at in sorted(failed)]
