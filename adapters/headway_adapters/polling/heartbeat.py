"""The word that headway drives a cluster, for those that hold jobs for it and release them when it is away.

A file on the machine where the batch system's commands run (``cluster.options.heartbeat``). The loop writes
it after a look that succeeded and once what the look told has been dealt with, so a daemon that hangs, that
ends over its first cycle again and again, or that the batch system does not answer, says nothing. One line:

``headway drives boot=B up=U at=T since=S epoch=E``
    the daemon with number E (without ``epoch=E``: with none), at second U of that machine's uptime, in the
    boot with the id B; T: seconds since the epoch by the clock of the machine where headway runs; S: since
    when it has driven without a pause of ``patience``
``headway rests at=T``
    it gave control back, and does not drive

Slurm's submit filter (``etc/slurm/job_submit.lua``) and ``headway give-back --if-silent`` read it. Uptime
counts where the boot is the reader's own: then nobody's setting of a clock matters.
"""

from __future__ import annotations

import abc
import contextlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, Field, field_validator

from headway.adapter import Check
from headway.errors import Failure
from headway.inputs.durations import as_seconds
from headway_adapters.transport import Transport, TransportOptions, make_transport

_BOOT, _UPTIME = "/proc/sys/kernel/random/boot_id", "/proc/uptime"
_DRIVES = re.compile(
    r"headway drives boot=(\S+) up=([0-9]{1,12}) at=([0-9]{1,12}) since=([0-9]{1,12})"
    r"(?: epoch=([0-9]{1,15}))?\s*"
)
_RESTS = re.compile(r"headway rests at=([0-9]{1,12})\s*")
#: Bytes of the file that are read.
_LONGEST = 512
#: The longest and the shortest pause between two words, seconds, and which part of the patience it is.
_SELDOM, _OFTEN, _PART = 10.0, 1.0, 0.1
#: For so many seconds what was read there holds, where something is to be changed.
_SURE = 1.0
#: Between two readings of a file that another daemon may write, seconds.
_GLANCE = 0.5
#: What ``headway check`` calls it.
SUBJECT = "failing open"
#: A word that is older than so many seconds is worth saying so.
_OLD = 30
#: A clock may be so far behind the clock of another machine, seconds.
_SKEW = 60


class HeartbeatOptions(TransportOptions):
    """The options of the transport, and those of the heartbeat."""

    #: A file on the machine where the commands run, in which headway says that it drives; none: it says
    #: nothing.
    heartbeat: str | None = None
    #: After so many seconds without a word new jobs are the batch system's, and held jobs are given back; 0:
    #: never.
    patience: Annotated[int, BeforeValidator(as_seconds), Field(ge=0, le=3660 * 86400)] = 300

    @field_validator("heartbeat")
    @classmethod
    def _heartbeat_is_a_path(cls, value: str | None) -> str | None:
        if value is not None and re.fullmatch(r"(/[A-Za-z0-9_.+@-]+){2,}", value) is None:
            raise ValueError("the whole path of a file (letters, digits, '_', '.', '+', '@', '-')")
        return value

    @field_validator("patience")
    @classmethod
    def _patience_is_long_enough(cls, value: int) -> int:
        if 0 < value < _SHORTEST:
            raise ValueError(f"0, or at least {_SHORTEST} s")
        return value


_SHORTEST = 5


class Word(msgspec.Struct, frozen=True):
    """What the file says."""

    #: False: headway gave control back.
    drives: bool
    #: The machine's boot, and seconds of its uptime.
    boot: str
    up: int
    #: Seconds since the epoch by the writer's clock, and since when it has driven.
    at: int
    since: int
    #: The number of the daemon; 0: it has none.
    epoch: int = 0

    def text(self) -> str:
        """The file's content."""
        if not self.drives:
            return f"headway rests at={self.at}\n"
        epoch = f" epoch={self.epoch}" if self.epoch else ""
        return f"headway drives boot={self.boot} up={self.up} at={self.at} since={self.since}{epoch}\n"


def read_word(text: str) -> Word | None:
    """What a file says; None: nothing that headway wrote."""
    if (found := _DRIVES.fullmatch(text)) is not None:
        boot, up, at, since, epoch = found.groups()
        return Word(True, boot, int(up), int(at), int(since), int(epoch or 0))
    if (found := _RESTS.fullmatch(text)) is not None:
        return Word(False, "", 0, int(found[1]), 0)
    return None


class HeartbeatFile(abc.ABC):
    """The file, on whichever machine it is. Every method raises :class:`headway.errors.Failure`."""

    #: To read it costs no command.
    is_near = False

    def __init__(self, path: str) -> None:
        self.path = path

    @abc.abstractmethod
    def read(self) -> str:
        """Its content; "" if there is no file."""

    @abc.abstractmethod
    def write(self, text: str) -> None:
        """Replace its content."""

    @abc.abstractmethod
    def clock(self) -> tuple[str, float]:
        """The boot of its machine, and that machine's uptime in seconds."""

    def check(self) -> Check | None:
        """What is wrong with its place; None: nothing that can be seen from here."""
        return None

    def close(self) -> None:  # noqa: B027 - a file of this machine needs nothing
        """Give back what it takes to reach it."""


class LocalFile(HeartbeatFile):
    """A file of this machine. It is replaced as a whole, so that no reader finds a part of a line."""

    is_near = True

    def read(self) -> str:
        try:
            with open(self.path, "rb") as file:
                return file.read(_LONGEST).decode("ascii", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise Failure(f"the heartbeat {self.path} cannot be read: {error.strerror}") from error

    def write(self, text: str) -> None:
        fresh = f"{self.path}.new"
        try:
            with contextlib.suppress(FileNotFoundError):
                # Left behind by a kill, perhaps of another user.
                os.unlink(fresh)
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with os.fdopen(fd, "w", encoding="ascii") as file:
                # Whatever the umask says: the submit filter runs as another user.
                os.fchmod(fd, 0o644)
                file.write(text)
            os.replace(fresh, self.path)
        except OSError as error:
            raise Failure(f"the heartbeat {self.path} cannot be written: {error.strerror}") from error

    def clock(self) -> tuple[str, float]:
        try:
            return _clock(Path(_BOOT).read_text("ascii"), Path(_UPTIME).read_text("ascii"))
        except OSError:
            return "unknown", time.monotonic()

    def check(self) -> Check | None:
        folder = Path(self.path).parent
        with contextlib.suppress(OSError):
            try:
                found = folder.stat()
            except FileNotFoundError:
                said = (
                    f"{folder} does not exist, so nothing is written, and jobs are left to the batch system"
                )
                remedy = f"start headway.service, which makes it, or: install -d {folder} (its user's)"
                return Check(SUBJECT, False, said, remedy, helps=True).for_driving()
            # Root may ask for a service that runs as any user.
            trusted = os.geteuid() == 0 or found.st_uid in (0, os.geteuid())
            if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP) or not trusted:
                said = f"others can write into {folder}, and so pretend that headway drives, or does not"
                return Check(
                    "heartbeat", False, said, f"a folder of headway's own, such as: chmod 755 {folder}"
                )
        return None


class RemoteFile(HeartbeatFile):
    """A file of the machine that is reached over SSH, by the commands ``cat`` and ``tee``."""

    def __init__(self, path: str, transport: Transport, timeout: float) -> None:
        super().__init__(path)
        self._transport = transport
        self._timeout = timeout

    def read(self) -> str:
        result = self._transport.run(["head", "-c", str(_LONGEST), self.path], self._timeout)
        if not result.ok:
            if "No such file" in result.stderr:
                return ""
            raise Failure(f"the heartbeat {self.path} cannot be read: {result.complaint()}")
        return result.stdout.decode("ascii", errors="replace")

    def write(self, text: str) -> None:
        result = self._transport.feed(["tee", self.path], text.encode("ascii"), self._timeout)
        if not result.ok:
            raise Failure(f"the heartbeat {self.path} cannot be written: {result.complaint()}")

    def clock(self) -> tuple[str, float]:
        result = self._transport.run(["cat", _BOOT, _UPTIME], self._timeout)
        boot, _, uptime = result.text.partition("\n")
        return _clock(boot, uptime) if result.ok else ("unknown", time.monotonic())

    def close(self) -> None:
        self._transport.close()


def _clock(boot: str, uptime: str) -> tuple[str, float]:
    found = re.match(r"[0-9]+(\.[0-9]+)?", uptime)
    name = boot.strip()
    if found is None or re.fullmatch(r"\S{1,64}", name) is None:
        return "unknown", time.monotonic()
    return name, float(found[0])


def heartbeat_file(options: HeartbeatOptions) -> HeartbeatFile | None:
    """The file that the options name; None if they name none."""
    if options.heartbeat is None:
        return None
    if options.ssh is None:
        return LocalFile(options.heartbeat)
    # A connection of its own, on which no slow command of the batch system is before it. Its commands are the
    # system's.
    transport = make_transport(options.model_copy(update={"bin_dir": None}))
    return RemoteFile(options.heartbeat, transport, options.command_timeout)


class Heart:
    """Has the file written while the loop goes on. The loop's thread waits for nothing here."""

    def __init__(self, file: HeartbeatFile | None, patience: float, log: Any) -> None:
        """``file``: None: nothing is said. ``patience``: of the readers, seconds; 0: as long as it takes."""
        self._file = file
        self._pause = min(_SELDOM, max(_OFTEN, _PART * patience)) if patience else _SELDOM
        self._patience = patience or float("inf")
        self._log = log
        self._next = float("-inf")
        #: Since when it has driven, seconds since the epoch, and when that was said last (monotonic clock).
        self._since, self._said = 0, float("-inf")
        self._writing: threading.Thread | None = None
        self._fails = False
        self._epoch = 0
        self._looked = float("-inf")
        self._superseded: Callable[[int], None] = lambda epoch: None

    def lead(self, epoch: int, superseded: Callable[[int], None]) -> None:
        """The word is that of the daemon with this number. ``superseded`` is called with a higher number that
        is found in the file, on any thread; nothing is said from then on."""
        self._epoch, self._superseded = epoch, superseded

    def watch(self) -> None:
        """Before something is changed: look whether another daemon writes the file, if that was not looked at
        a moment ago. A file of another machine is not read for it. On any thread."""
        now = time.monotonic()
        if self._file is None or not self._file.is_near or now < self._looked + _SURE:
            return
        self._looked = now
        with contextlib.suppress(Failure):
            if (found := self.highest_epoch()) > self._epoch > 0:
                self._superseded(found)

    @property
    def path(self) -> str:
        """Where the file is; "": there is none."""
        return self._file.path if self._file is not None else ""

    def highest_epoch(self) -> int:
        """The number of the daemon that wrote the file; 0: none did. Raises :class:`Failure`."""
        word = read_word(self._file.read()) if self._file is not None else None
        return word.epoch if word is not None else 0

    def is_alive(self, pause: Callable[[float], None] = time.sleep) -> bool:
        """Whether another daemon writes the file, which takes up to two of its pauses to find out. Raises
        :class:`Failure`."""
        if self._file is None or is_silent(self._file, self._patience, pause):
            return False
        text, seconds = self._file.read(), 0.0
        while seconds < 2 * self._pause + 1.0:
            pause(_GLANCE)
            seconds += _GLANCE
            if self._file.read() != text:
                return True
        return False

    def beat(self) -> None:
        """The loop goes on: say so, unless it was said a moment ago or is being said."""
        now = time.monotonic()
        if self._file is None or now < self._next or (self._writing is not None and self._writing.is_alive()):
            return
        self._next = now + self._pause
        # A daemon thread: a file system that hangs keeps no process from ending.
        self._writing = threading.Thread(
            target=self._say, args=(self._file, now, int(time.time())), name="heartbeat", daemon=True
        )
        self._writing.start()

    def _say(self, file: HeartbeatFile, moment: float, wall: int) -> None:
        try:
            if self._epoch and (other := read_word(file.read())) is not None and other.epoch > self._epoch:
                self._superseded(other.epoch)
                return
            boot, uptime = file.clock()
            # Of the moment at which the loop went on, however long this took.
            up = int(uptime - (time.monotonic() - moment))
            if moment > self._said + self._patience:
                self._since = wall
            file.write(Word(True, boot, up, wall, self._since, self._epoch).text())
        except Failure as error:
            if not self._fails:
                self._log.error("the heartbeat cannot be written", path=file.path, error=str(error))
            self._fails = True
            return
        self._said = moment
        if self._fails:
            self._log.info("the heartbeat is written again", path=file.path)
        self._fails = False

    def vital_signs(self) -> list[Check]:
        """Whether the file is written often enough for its readers; nothing without a file. On any thread."""
        if self._file is None:
            return []
        ago = time.monotonic() - self._said
        if ago == float("inf"):
            return [Check("heartbeat", not self._fails, f"{self._file.path} is not written yet", known=False)]
        enough = max(3 * self._pause, self._patience / 2 if self._patience < float("inf") else 0.0)
        said = f"{self._file.path} was written {ago:.0f} s ago"
        return [Check("heartbeat", ago <= enough and not self._fails, said, "the log says why it is not")]

    def close(self) -> None:
        """Nothing is said any more. The file stays: a daemon that is started again goes on."""
        file, self._file = self._file, None
        if file is not None:
            if self._writing is not None:
                self._writing.join(_OFTEN)
            file.close()


def is_silent(file: HeartbeatFile, patience: float, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether nothing was heard for ``patience`` seconds. Raises :class:`Failure` if the file cannot be read.

    A word of another boot, or of another machine, counts by the clocks of both. One that is old by them, or
    of the future, may be a clock that was set: the file is watched whether it changes. A machine that was
    booted less than ``patience`` ago has not been silent for so long.
    """
    text = file.read()
    word = read_word(text)
    if word is not None and not word.drives:
        return True
    boot, uptime = file.clock()
    if word is not None and word.boot == boot:
        return not 0 <= uptime + 1 - word.up <= patience + 1
    if uptime < patience:
        return False
    if word is None:
        return True
    age = time.time() - word.at
    if -_SKEW <= age <= patience:
        return False
    pause(min(patience, _SELDOM + _OFTEN))
    return file.read() == text


def check(options: HeartbeatOptions) -> Check:
    """The line of ``headway check``: whether the heartbeat is written, and when it was last."""
    file = heartbeat_file(options) if options.patience else None
    if file is None:
        said = "off (cluster.options.heartbeat): while headway is away no job that waits for it starts"
        return Check(SUBJECT, True, said)
    try:
        found, wrong = file.read(), file.check()
    except Failure as error:
        remedy = f"move {options.heartbeat} away, or correct cluster.options.heartbeat"
        return Check(SUBJECT, False, str(error), remedy, helps=True)
    finally:
        file.close()
    state = _state(found)
    return wrong or Check(SUBJECT, True, f"{options.heartbeat} {state}; patience {options.patience} s")


def _state(text: str) -> str:
    word = read_word(text)
    if word is None:
        found = "holds nothing that headway wrote" if text else "is not written yet"
        return f"{found}, so jobs are not left to headway until it drives"
    ago = int(time.time()) - word.at
    if not word.drives:
        return f"says since {max(0, ago)} s that control was given back"
    if ago < -_SKEW:
        return f"is of the future, by {-ago} s: a clock was set, or headway did not write it"
    return f"was written {max(0, ago)} s ago" + (": headway does not drive" if ago > _OLD else "")
