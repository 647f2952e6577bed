"""A command between the protection of what it reads and of what it writes.

Before: the manifest's signature is verified (authentication), sealed inputs are decrypted (encryption), and
the files of the manifest are compared with their digests (integrity). After, whatever became of the command:
its outputs are listed in a manifest, which is signed, and are sealed; inputs that were decrypted are removed
if they are as they were. If something fails before, the command is not started. If something fails after,
what the command wrote stays as it is.

No more rights than needed: it runs as the job's user; keys are read from files that only that user can read,
are in no environment and no argument, and the process can be neither traced nor dumped once it has them. The
command inherits what a command inherits, and no key.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from headway.errors import HeadwayError, UserError
from headway_plugins.security.protection.keys import Keys
from headway_plugins.security.protection.manifest import (
    Listed,
    Manifest,
    list_files,
    read_manifest,
    write_manifest,
)
from headway_plugins.security.protection.report import Report, Service
from headway_plugins.security.protection.sealed import (
    Spent,
    not_there,
    seal,
    sealed_name,
    sealed_with,
    unseal,
)

#: Exit codes, as env, nice and timeout have them: the wrapper failed; the command cannot be executed; it is
#: not there.
FAILED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
#: Passed on to the command.
PASSED = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGXCPU, signal.SIGCONT, signal.SIGWINCH,
)  # fmt: skip
#: Signals that end a process that does not expect them: before the command runs they end the wrapper.
_ENDING = frozenset(PASSED) - {signal.SIGCONT, signal.SIGWINCH}
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class Plan:
    """What is to be done."""

    argv: tuple[str, ...]
    #: Service -> option.
    label: Mapping[str, str]
    keys: Keys
    #: Signed list of what must be as it was.
    manifest: Path | None = None
    #: Plain names of sealed files.
    inputs: tuple[Path, ...] = ()
    #: Files, or folders with all that is in them.
    outputs: tuple[Path, ...] = ()
    #: Where the manifest of the outputs goes.
    outputs_manifest: Path | None = None
    replace: bool = False
    job: str = ""


@dataclass
class Ended:
    """What became of it."""

    report: Report
    #: What went wrong around the command; None: nothing.
    trouble: HeadwayError | None = None

    @property
    def exit_code(self) -> int:
        """The command's; where that is 0, or there is none, :data:`FAILED` for trouble."""
        return self.report.exit_code or (FAILED if self.trouble is not None else 0)


class Stopped(BaseException):
    """A signal that ends this process came before the command ran."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class _Run:
    plan: Plan
    say: Callable[[str], None]
    #: By service and option.
    spent: dict[tuple[str, str], Spent] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    #: Decrypted inputs that were not there before -> what they were.
    made: dict[Path, tuple[int, int, int]] = field(default_factory=dict)

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        self.say(text)

    def on(self, service: str, option: str) -> AbstractContextManager[Spent]:
        """Count the seconds of what is inside."""
        return self.spent.setdefault((service, option), Spent()).on()

    def services(self) -> tuple[Service, ...]:
        asked = {(service, option): Spent() for service, option in self.plan.label.items()}
        return tuple(
            Service(service, option, one.files, one.bytes, one.seconds)
            for (service, option), one in sorted((asked | self.spent).items())
        )

    # ------------------------------------------------------------------ before

    def check(self) -> None:
        """All that can be known before anything is touched."""
        plan = self.plan
        for path in plan.inputs:
            if not sealed_name(path).is_file():
                raise UserError(f"{sealed_name(path)}: expected a sealed file for the input {path.name}")
        if plan.inputs or ("encryption" in plan.label and plan.outputs):
            plan.keys.data()
        if "encryption" in plan.label:
            for path in () if plan.replace else plan.outputs:
                not_there(sealed_name(path), "an output is sealed there already; --replace seals over it")
        if plan.outputs_manifest is not None and not plan.replace:
            not_there(plan.outputs_manifest, "is there already; --replace writes over it")
        for service, named in (
            ("encryption", plan.inputs or plan.outputs),
            ("integrity", plan.manifest or plan.outputs_manifest),
            ("authentication", plan.manifest or plan.outputs_manifest),
        ):
            if service in plan.label and not named:
                self.remark(
                    f"{service} by {plan.label[service]}: no file was named for it, so nothing is done"
                )

    def before(self) -> None:
        plan = self.plan
        manifest = None
        if plan.manifest is not None:
            manifest = self._authenticated(plan.manifest)
        elif "authentication" in plan.label and plan.outputs_manifest is not None:
            plan.keys.signer(plan.label["authentication"])
        for path in plan.inputs:
            there = os.path.lexists(path)
            with self.on("encryption", sealed_with(path, plan.keys.data())) as spent:
                spent.add(unseal(path, plan.keys.data()))
            if not there:
                self.made[path] = _content_stamp(path)
        if manifest is not None and "integrity" in plan.label:
            for listed in manifest.files:
                with self.on("integrity", plan.label["integrity"]) as spent:
                    spent.add(manifest.check(listed, plan.label["integrity"]))

    def _authenticated(self, path: Path) -> Manifest:
        manifest = read_manifest(path)
        option = self.plan.label.get("authentication")
        if option is not None:
            with self.on("authentication", option) as spent:
                manifest.authenticate(option, self.plan.keys)
                spent.add(len(manifest.message))
        return manifest

    # ------------------------------------------------------------------ after

    def after(self) -> HeadwayError | None:
        """Protect what the command wrote: everything is tried; the first thing that failed."""
        trouble: HeadwayError | None = None
        files = list(self._written())
        if self.plan.outputs_manifest is not None:
            try:
                self._list(files, self.plan.outputs_manifest)
            except HeadwayError as error:
                trouble = error
        option = self.plan.label.get("encryption")
        for path in files if option is not None else ():
            assert option is not None
            try:
                with self.on("encryption", option) as spent:
                    spent.add(seal(path, self.plan.keys.data(), option, replace=self.plan.replace))
            except HeadwayError as error:
                self.remark(str(error))
                trouble = trouble or error
        self.forget_inputs()
        return trouble

    def _written(self) -> Iterable[Path]:
        for named in self.plan.outputs:
            if named.is_dir() and not named.is_symlink():
                for folder, folders, names in os.walk(named):
                    folders.sort()
                    for name in sorted(names):
                        path = Path(folder, name)
                        if path.is_symlink() or not path.is_file():
                            self.remark(f"{path}: neither a file nor a folder; left as it is")
                        elif not name.endswith(".sealed"):
                            yield path
            elif os.path.lexists(named):
                yield named
            else:
                self.remark(f"{named}: the command did not write this output")

    def _list(self, files: Sequence[Path], path: Path) -> None:
        digest, option = self.plan.label.get("integrity"), self.plan.label.get("authentication")
        listed: tuple[Listed, ...] = ()
        if digest is not None:
            with self.on("integrity", digest) as spent:
                listed = list_files(files, path.parent, [digest])
                for one in listed:
                    spent.add(one.bytes)
        if option is None:
            write_manifest(path, listed, self.plan.keys, [])
            return
        with self.on("authentication", option) as spent:
            write_manifest(path, listed, self.plan.keys, [option])
            spent.add(path.stat().st_size)

    def forget_inputs(self) -> None:
        """Remove what was decrypted, unless it was written to."""
        for path, stamp in self.made.items():
            try:
                if _content_stamp(path) == stamp:
                    path.unlink()
                else:
                    self.remark(f"{path}: the command changed this input; it is left as it is and not sealed")
            except FileNotFoundError:
                continue
            except OSError as error:
                self.remark(f"{path}: the decrypted input cannot be removed: {error.strerror}")
        self.made.clear()


class _Signals:
    """Signals that come meanwhile: passed on to the command, or the end of it all before that."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.over = False
        #: While the command is being started.
        self.keep: list[int] | None = None
        self._old = {number: signal.getsignal(number) for number in PASSED}

    def __enter__(self) -> _Signals:
        for number, old in self._old.items():
            # What is ignored (nohup) stays so, for the command, too.
            if old is not signal.SIG_IGN:
                signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)

    def _came(self, number: int, _: object) -> None:
        if self.keep is not None:
            self.keep.append(number)
        elif self.child is not None:
            self.child.send_signal(number)
        elif not self.over and number in _ENDING:
            raise Stopped(number)


def run(plan: Plan, say: Callable[[str], None], finished: Callable[[Ended], None] = lambda _: None) -> Ended:
    """Carry ``plan`` out; ``say`` is told what a person should know. ``finished`` is called before signals
    count again, with the report for example.

    Raises :class:`HeadwayError` if the command was not started, :class:`Stopped` if a signal came before
    that.
    """
    began = time.time()
    keep_to_itself()
    this = _Run(plan, say)
    with _Signals() as signals:
        try:
            this.check()
            this.before()
            signals.keep = []
        except BaseException:
            this.forget_inputs()
            raise
        begin = time.monotonic()
        try:
            # Without the shell. What its user's shell left open for it stays open.
            child = subprocess.Popen(plan.argv, close_fds=False)
        except OSError as error:
            this.forget_inputs()
            raise NotStarted(plan.argv[0], error) from error
        signals.child, held, signals.keep = child, signals.keep, None
        for number in held:
            child.send_signal(number)
        code = child.wait()
        seconds = time.monotonic() - begin
        signals.over, signals.child = True, None
        trouble = this.after()
        report = Report(
            1, plan.job, platform.node(), began, seconds, code, this.services(), tuple(this.remarks)
        )
        ended = Ended(report, trouble)
        finished(ended)
        return ended


class NotStarted(HeadwayError):
    """The command could not be executed."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"{name}: {error.strerror}")
        self.exit_code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def leave(code: int) -> None:
    """End as the command ended: with its exit code, or of its signal."""
    if code < 0:
        # Not of SIGKILL, which no process can catch.
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise SystemExit(code if code >= 0 else 128 - code)


def keep_to_itself() -> None:
    """No other process may trace this process or read its memory, and no core file holds it. What it executes
    is as always."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _content_stamp(path: Path) -> tuple[int, int, int]:
    found = os.lstat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns
