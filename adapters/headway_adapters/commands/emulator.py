"""An emulated PBS or LSF in a directory: its machine, its commands, its server, its control command."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from headway.errors import UserError
from headway_adapters.commands import lsf, pbs, pbs_text
from headway_adapters.commands.machine import Job, Machine, Node
from headway_adapters.commands.server import Call, Fault, Late, Reply, Server
from headway_adapters.commands.system import Refused, System
from headway_adapters.commands.zone import Zone

CONTROL = "emulator-ctl"
#: What Linux reads of a script's first line.
_LONGEST_INTERPRETER = 120


@dataclass(frozen=True)
class EmulatorOptions:
    """What is emulated; times are seconds."""

    #: "pbs" or "lsf".
    system: str
    nodes: int = 4
    processors: int = 8
    #: Bytes on each node.
    memory: int = 16 << 30
    #: PBS: virtual nodes of each host.
    vnodes: int = 1
    #: Names of the hosts, instead of ``nodes`` made-up ones.
    hosts: tuple[str, ...] = ()
    #: Name of PBS's server or of LSF's cluster.
    name: str = ""
    #: The first is the default.
    queues: tuple[str, ...] = ()
    #: Jobs go so many times faster than the clock.
    speed: float = 1.0
    #: LSF: "ibm" or "volclava".
    flavour: str = "ibm"
    #: From the order to start a job until it runs; None: as it is with that system.
    start_delay: float | None = None
    #: The batch system's own scheduler is on from the beginning.
    scheduling: bool = True
    fault: Fault = field(default_factory=Fault)


class Emulator:
    """Made, it is installed and listens; :meth:`serve` or ``with`` makes it answer."""

    def __init__(self, directory: str | Path, options: EmulatorOptions) -> None:
        """Raises :class:`UserError` for options or a directory that will not do."""
        self.directory = Path(directory).absolute()
        self.options = options
        self.fault = options.fault
        self.machine = Machine(_nodes(options), speed=options.speed, start_delay=_delay(options))
        self.system: System = _system(options, self.machine)
        self._control_words = {
            "fault": self._set_fault, "finish": self._finish, "drop": self._drop, "node": self._node,
            "status": self._status, "stop": self._stop,
        }  # fmt: skip
        self._install()
        self._server = Server(self.directory, self._answer)
        self._thread: threading.Thread | None = None

    @property
    def bin(self) -> Path:
        """Where the commands are."""
        return self.directory / "bin"

    def serve(self) -> None:
        """Answer until it is stopped."""
        self._server.serve()

    def stop(self) -> None:
        self._server.stop()
        if self._thread is not None:
            self._thread.join(5)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve, name="emulator", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # ------------------------------------------------------------------ installing

    def _install(self) -> None:
        interpreter = sys.executable
        if len(interpreter) > _LONGEST_INTERPRETER or any(c.isspace() for c in interpreter):
            raise UserError(
                f"emulate-commands: expected an interpreter whose path is short and has no blanks "
                f"(commands begin with it), found {interpreter!r}"
            )
        text = (Path(__file__).with_name("client.py")).read_text()
        for word, value in (
            ("@PYTHON@", interpreter), ("@FLAVOUR@", self.options.system), ("@SERVER@", _name(self.options)),
        ):  # fmt: skip
            text = text.replace(word, value)
        try:
            self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._refuse_others()
            self.bin.mkdir(exist_ok=True)
            client = self.directory / "client"
            client.write_text(text)
            client.chmod(0o755)
            for old in self.bin.iterdir():
                if old.is_symlink() and os.readlink(old) == "../client":
                    old.unlink()
            for name in (*self.system.commands, CONTROL):
                (self.bin / name).symlink_to("../client")
        except OSError as error:
            raise UserError(
                f"emulate-commands {self.directory}: expected a directory that can be written, "
                f"found {error.strerror or error}"
            ) from error

    def _refuse_others(self) -> None:
        """A user that can write there decides what the commands are, and where ``client`` is written."""
        found = self.directory.stat()
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            whose = "other users can write" if found.st_uid == os.geteuid() else f"is user {found.st_uid}'s"
            raise UserError(
                f"emulate-commands {self.directory}: expected a directory of this user that other users "
                f"cannot write, found a directory that {whose}"
            )

    # ------------------------------------------------------------------ answering

    def _answer(self, call: Call) -> Reply:
        if call.name == CONTROL:
            self.machine.advance()
            return self._control(call)
        fault = self.fault if self.fault.hits(call.name) else Fault()
        if fault.kind == "down":
            return self.system.down(call.name)
        self.system.refuse_starts = fault.kind == "refuse-start"
        self.system.zone = Zone.of(call.environment)
        self.machine.advance()
        try:
            command = self.system.commands.get(call.name)
            if command is None:
                return Reply(127, "", f"{call.name}: command not found\n")
            version = self.system.version if call.words == ("-V",) else None
            reply = command(call) if version is None else Reply(0, "", version)
        except Refused as refused:
            reply = Reply(refused.rc, "", refused.message + "\n")
        self.machine.settle()
        if fault.kind == "truncate":
            return Reply(reply.rc, reply.out[: len(reply.out) // 2], reply.err)
        if fault.kind == "garbage":
            return Reply(reply.rc, "\udcff\udcfe\x00garbage\udc80" * (1 + len(reply.out) // 16), reply.err)
        if fault.kind == "slow":
            return Late(reply.rc, reply.out, reply.err, reply.wait, fault.seconds)
        return reply

    # ------------------------------------------------------------------ the control command

    def _control(self, call: Call) -> Reply:
        if not call.caller.manager:
            return Reply(1, "", f"{CONTROL}: only root and the user that started the emulator may do this\n")
        verb, *words = call.words or ("status",)
        action = self._control_words.get(verb)
        if action is None:
            known = ", ".join(self._control_words)
            return Reply(2, "", f"{CONTROL}: expected one of {known}, found {verb!r}\n")
        try:
            said = action(words)
        except UserError as error:
            return Reply(2, "", f"{CONTROL}: {error}\n")
        self.machine.settle()
        return Reply(0, said)

    def _set_fault(self, words: Sequence[str]) -> str:
        self.fault = Fault.parse(_only(words, "fault KIND[:SECONDS][@COMMAND,...]"))
        return f"fault: {self.fault}\n"

    def _finish(self, words: Sequence[str]) -> str:
        """End jobs now, as if their work were done; the last word may be their exit code."""
        *ids, code = words if len(words) > 1 else (*words, "0")
        for job_id in ids:
            for job in self._found(job_id):
                if job.state in ("running", "suspended"):
                    job.exit_code = int(code) if code.isdigit() else 0
                    self.machine.kill(job, "completed")
        return ""

    def _drop(self, words: Sequence[str]) -> str:
        for job_id in words:
            for job in self._found(job_id):
                self.system.drop(job)
        return ""

    def _found(self, job_id: str) -> list[Job]:
        jobs = self.system.find(job_id)
        if not jobs:
            raise UserError(f"expected a job's id, found {job_id!r}, which is unknown")
        return jobs

    def _node(self, words: Sequence[str]) -> str:
        if len(words) != 2 or words[1] not in ("up", "down"):
            raise UserError("expected node NAME up, or node NAME down")
        if words[0] not in self.machine.nodes:
            raise UserError(f"expected a node's name ({', '.join(self.machine.nodes)}), found {words[0]!r}")
        node = self.machine.nodes[words[0]]
        node.down = words[1] == "down"
        node.changed = self.machine.wall()
        self.machine.disturb()
        return ""

    def _status(self, words: Sequence[str]) -> str:
        alive = self.machine.alive.values()
        running = sum(job.state in ("running", "starting") for job in alive)
        return (
            f"{self.options.system} with {len(self.machine.nodes)} nodes, speed {self.options.speed:g}, "
            f"fault {self.fault}: {running} jobs run, {len(alive) - running} wait or are suspended\n"
        )

    def _stop(self, words: Sequence[str]) -> str:
        self._server.stop()
        return ""


def _only(words: Sequence[str], usage: str) -> str:
    if len(words) != 1:
        raise UserError(f"expected {usage}")
    return words[0]


def _name(options: EmulatorOptions) -> str:
    return options.name or ("pbshost" if options.system == "pbs" else "emulated")


def _delay(options: EmulatorOptions) -> float:
    if options.start_delay is not None:
        return options.start_delay
    # PBS has the job on its nodes when qrun returns; LSF a second or two later.
    return 0.0 if options.system == "pbs" else 0.5


def _nodes(options: EmulatorOptions) -> list[Node]:
    hosts = options.hosts or tuple(f"node{number}" for number in range(1, options.nodes + 1))
    nodes = []
    for host in hosts:
        if options.system == "pbs" and options.vnodes > 1:
            # The host itself is listed with no processors, before its virtual nodes.
            nodes.append(Node(host, 0, options.memory, host))
            nodes += [
                Node(f"{host}[{number}]", options.processors, options.memory // options.vnodes, host)
                for number in range(options.vnodes)
            ]
        else:
            nodes.append(Node(host, options.processors, options.memory, host))
    return nodes


def _system(options: EmulatorOptions, machine: Machine) -> System:
    if options.system == "pbs":
        queues = options.queues or ("workq",)
        return pbs.Pbs(machine, server=_name(options), queues=queues, scheduling=options.scheduling)
    if options.system == "lsf":
        queues = options.queues or ("normal",)
        return lsf.Lsf(
            machine, cluster=_name(options), queues=queues, flavour=options.flavour, active=options.scheduling
        )
    raise UserError(f"emulate-commands: expected pbs or lsf, found {options.system!r}")


def memory_bytes(text: str) -> int:
    """Bytes of ``16gb``; raises :class:`UserError`."""
    try:
        return pbs_text.size(text)
    except ValueError:
        raise UserError(f"--memory: expected a size such as 16gb, found {text!r}") from None
