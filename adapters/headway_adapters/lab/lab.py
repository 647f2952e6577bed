"""The lab itself: starts everything, submits, tells how it goes, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from headway.adapter.user_side import Silence, UserSide, load_user_side
from headway.errors import Failure, UserError
from headway.inputs.extras import need_api
from headway.service.client import ask
from headway.service.protocol import Report, Status
from headway_adapters.lab.stream import Arrival
from headway_adapters.lab.system import Access, LabSystem, Processes

#: Seconds until the daemon must answer.
_PATIENCE = 60.0
_STEP = 0.2
_HEADWAY = (sys.executable, "-c", "from headway.cli import main; main()")
#: What ``headway serve --link`` prints, which lets in once.
_LINK = re.compile(r"https?://\S+\?word=\S+")
#: What is worth a try where headway drives, and where a person is to start it.
_DRIVEN = ("headway status", "headway explain JOB")
_FRESH = ("headway check", "headway run --monitor")
_SLEEPER = '#!/bin/sh\nexec /bin/sleep "$1"\n'


@dataclass(frozen=True)
class Plan:
    """What the daemon does, and for how long. Times are seconds."""

    policy: str
    plugin_files: tuple[Path, ...]
    length: float
    #: Between two lines about how it goes.
    every: float = 10.0
    #: A person starts headway, with the configuration that is there; it says ``mode: monitor``.
    fresh: bool = False


class Lab:
    """A batch system, a stream of jobs and the daemon, in a folder."""

    def __init__(
        self, folder: Path, system: LabSystem, processes: Processes, plan: Plan, say: Callable[[str], None]
    ) -> None:
        self.folder, self.system, self.processes, self.plan, self._say = folder, system, processes, plan, say
        self.submitted = 0

    def run(self, jobs: Callable[[Path], Iterator[Arrival]]) -> None:
        """Until its time is over, or an exception ends it; :meth:`end` is called in any case by the caller.

        ``jobs`` makes the stream, of the program that sleeps. Raises :class:`Failure` where a part of it does
        not come up, or ends, and :class:`~headway_adapters.lab.system.Stopped`.
        """
        access = self.system.start()
        user = load_user_side(access.adapter, {**self._options(access), "queue": access.queue})
        self._write_configuration(access)
        if not self.plan.fresh:
            self._start_daemon(access)
        page = self._start_page(access)
        self._tell_how_to_look(access, page)
        program = self.folder / "sleep"
        program.write_text(_SLEEPER, encoding="utf-8")
        program.chmod(0o755)
        self._submit_and_watch(user, jobs(program))

    def end(self) -> None:
        """End all that it has started."""
        try:
            self.system.stop()
        finally:
            self.processes.end()

    # -- the daemon --------------------------------------------------------------------------------

    @property
    def _socket(self) -> Path:
        return self.folder / "headway.sock"

    @staticmethod
    def _options(access: Access) -> dict[str, object]:
        return {"poll_interval": 1.0, **access.options}

    @property
    def _config(self) -> Path:
        return self.folder / "headway.yaml"

    def _write_configuration(self, access: Access) -> None:
        self._config.write_text(yaml.safe_dump({
            "mode": "monitor" if self.plan.fresh else "drive",
            "cluster": {
                "adapter": access.adapter,
                "options": {access.queues: [access.queue], **self._options(access)},
            },
            "plugins": [self.plan.policy, "first-fit"],
            "journal": str(self.folder / "journal.sqlite"),
            "service": {"socket": str(self._socket), "private": False},
        }, sort_keys=False), encoding="utf-8")  # fmt: skip

    def _start_daemon(self, access: Access) -> None:
        words = [word for file in self.plan.plugin_files for word in ("--plugin", str(file.absolute()))]
        argv = [*_HEADWAY, "run", "-c", str(self._config), *words]
        self.processes.start("headway", argv, self._environment(access))
        end = time.monotonic() + _PATIENCE
        while not self._report():
            if time.monotonic() > end:
                said = self.processes.tail("headway")
                raise Failure(f"expected an answer of the daemon within {_PATIENCE:g} s; it said:\n{said}")
            time.sleep(_STEP)

    def _start_page(self, access: Access) -> str:
        """Serve the page on a free port of loopback: where it is, or why there is none."""
        try:
            need_api("the page")
        except UserError as error:
            return str(error)
        argv = [*_HEADWAY, "serve", "-c", str(self._config), "--port", "0", "--link"]
        self.processes.start("serve", argv, self._environment(access))
        end = time.monotonic() + _PATIENCE
        while (link := _LINK.search(self.processes.tail("serve"))) is None:
            self.processes.check()
            if time.monotonic() > end:
                said = self.processes.tail("serve")
                raise Failure(f"expected a link of the page within {_PATIENCE:g} s; it said:\n{said}")
            time.sleep(_STEP)
        return f"Page: {link[0]} (the link works once)"

    def _report(self) -> Report | None:
        """How the daemon is; None as long as it does not answer."""
        self.processes.check()
        try:
            return ask(self._socket, Status(), patience=0.0).status
        except Failure:
            return None

    # -- what a person sees ------------------------------------------------------------------------

    def _environment(self, access: Access) -> dict[str, str]:
        return {**os.environ, **self._exports(access, os.environ.get("PATH", ""))}

    def _exports(self, access: Access, path: str) -> dict[str, str]:
        """What a shell needs; directories of commands come before ``path``."""
        commands = [access.environment["PATH"]] if "PATH" in access.environment else []
        here = str(Path(sys.executable).parent)
        return {
            **access.environment,
            "HEADWAY_CONFIG": str(self.folder / "headway.yaml"),
            "PATH": os.pathsep.join([*commands, here, path]),
        }

    def _tell_how_to_look(self, access: Access, page: str) -> None:
        shell = self.folder / "env"
        exports = self._exports(access, "")
        path = exports.pop("PATH")
        lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
        lines.append(f'export PATH={shlex.quote(path)}"$PATH"')
        shell.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._say("In a second shell:")
        for command in (
            f". {shlex.quote(str(shell))}", *access.commands, *(_FRESH if self.plan.fresh else _DRIVEN),
        ):  # fmt: skip
            self._say(f"  {command}")
        self._say(page)
        self._say(f"Folder: {self.folder}; it ends in {self.plan.length:.0f} s, or by Ctrl-C.")

    def _submit_and_watch(self, user: UserSide, jobs: Iterator[Arrival]) -> None:
        begin = time.monotonic()
        told = begin + self.plan.every
        upcoming = next(jobs)
        while time.monotonic() < begin + self.plan.length:
            self.processes.check()
            passed = time.monotonic() - begin
            if upcoming.at <= passed:
                self._submit(user, upcoming)
                upcoming = next(jobs)
                continue
            if time.monotonic() >= told:
                told += self.plan.every
                self._tell(passed)
            time.sleep(min(_STEP, upcoming.at - passed))

    def _submit(self, user: UserSide, arrival: Arrival) -> None:
        try:
            user.submit(arrival.job)
        except Silence as error:
            self._say(f"{arrival.job.name}: {error}")
        else:
            self.submitted += 1

    def _tell(self, passed: float) -> None:
        report = self._report()
        if report is None or not report.pools:
            said = "headway does not run" if self.plan.fresh else "no answer of the daemon"
            self._say(f"{passed:5.0f} s  {self.submitted} submitted; {said}")
            return
        total, free, queued, running = (
            sum(getattr(pool, name) for pool in report.pools)
            for name in ("total", "free", "queued", "running")
        )
        problem = f"; problem: {report.problems[-1][1]}" if report.problems else ""
        self._say(
            f"{passed:5.0f} s  {self.submitted} submitted: {queued} wait, {running} run; "
            f"{total - free} of {total} processors busy{problem}"
        )
