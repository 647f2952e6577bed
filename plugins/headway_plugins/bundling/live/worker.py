"""A worker: runs on a node of a subjob, asks the manager what is to run there, and does it.

A manager that is silent changes nothing: what runs goes on, and the exit codes of what ends are written
into the bundle's directory. All processes of a launch end with the worker, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from headway.adapter.descendants import NEVER_BECAME, adopt_orphans, end_descendants, with_its_parent
from headway.adapter.user_side import Allocation
from headway.errors import Failure
from headway.link import Client, read_key
from headway_plugins.bundling.live.messages import Launch, Orders, Report, Told
from headway_plugins.bundling.live.place import Place
from headway_plugins.bundling.live.specification import Specification

#: What the batch system tells jobs; the application is no step of any of them.
_BATCH = (
    "SLURM", "SBATCH", "SRUN", "PBS", "LSB", "LSF", "PMI", "PMIX", "OMPI_COMM_", "OMPI_UNIVERSE", "OMPI_APP",
    "OMPI_FILE", "OMPI_NUM", "OMPI_FIRST", "OMPI_ARGV", "OMPI_COMMAND",
)  # fmt: skip
#: A user's own settings of Open MPI; inside a job of Open MPI that job's.
_SETTINGS = ("OMPI_", "PRTE_")
#: Seconds for an answer.
_ANSWER = 10.0
#: A process that a signal ended may be the first of the processes that the batch system ends, seconds.
_GRACE = 1.0
#: An end that no manager heard of for so long is enough: the processors are given back, seconds.
_ENOUGH = 900.0
#: Orphans that are let go at once.
_MOST_BURIED = 10_000


class _Process:
    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        #: When it was seen to have ended, on the monotonic clock.
        self.ended: float | None = None
        self.kept = False

    @property
    def code(self) -> int:
        found = self.process.returncode
        return found if found >= 0 else 128 - found


class Worker:
    """The worker of a node."""

    def __init__(
        self, place: Place, spec: Specification, allocation: Allocation, *, note: Callable[[str], None],
        alone: bool = False,
    ) -> None:  # fmt: skip
        """``alone``: nothing else runs in this process, and orphans are its children (:func:`adopt_orphans`):
        all that descends from it is the application's."""
        self._place = place
        self._spec = spec
        self._allocation = allocation
        self._note = note
        self._key = read_key(place.key)
        self._client: Client | None = None
        self._life = secrets.token_hex(8)
        self._launch = 0
        self._processes: list[_Process] = []
        #: Exit codes of processes that could not be started.
        self._never: dict[int, int] = {}
        self._signals = 0
        self._leaving = False
        self._heard = True
        self._silent_since: float | None = None
        self._alone = alone
        self._said = ""

    def terminate(self) -> None:
        """The batch system ends the subjob: say so, and end."""
        self._leaving = True

    def run(self) -> int:
        """Until told to leave; the exit code."""
        while True:
            self._reap()
            orders = self._ask()
            if self._leaving:
                self._stop()
                return 128 + signal.SIGTERM
            if orders is not None:
                if orders.leave is not None:
                    self._stop()
                    return orders.leave
                self._obey(orders)
            elif (result := self._place.result()) is not None:
                self._stop()
                return result.exit_code if result.placeholder == self._allocation.job else 0
            elif self._processes and not self._live() and self._silent_for() > _ENOUGH:
                self._note("all processes ended and no manager answers: the processors are given back")
                return 0
            time.sleep(self._spec.beat)

    # ------------------------------------------------------------------ the link

    def _ask(self) -> Orders | None:
        report = Report(
            self._allocation.job, self._allocation.node, self._allocation.placement, self._life,
            self._launch, self._live(), self._ended(), self._signals, self._leaving,
            next((one.process.pid for one in self._processes if one.ended is None), 0),
        )  # fmt: skip
        try:
            address = self._place.address
            if not address:
                raise Failure("no manager has answered yet")
            if self._client is None or self._client.address != address:
                if self._client is not None:
                    self._client.close()
                self._client = Client(address, self._key, _ANSWER, peer="manager")
            answer = self._client.ask(msgspec.to_builtins(Told(report), str_keys=True))
            orders = msgspec.convert(answer, type=Orders)
        except (Failure, msgspec.ValidationError) as error:
            if self._heard:
                self._note(f"{error}; the processes that run go on")
            self._heard = False
            if self._silent_since is None:
                self._silent_since = time.monotonic()
            self._write_ends()
            return None
        self._heard, self._silent_since = True, None
        return orders

    def _silent_for(self) -> float:
        return 0.0 if self._silent_since is None else time.monotonic() - self._silent_since

    def _write_ends(self) -> None:
        """Save the exit codes that no manager hears of: the next manager finds them."""
        for one in self._processes:
            if one.ended is not None and not one.kept and self._certain(one):
                with contextlib.suppress(OSError):
                    self._place.end_of(self._launch, one.number, one.code)
                    one.kept = True

    # ------------------------------------------------------------------ processes

    def _reap(self) -> None:
        if self._alone:
            bury_orphans({one.process.pid for one in self._processes})
        for one in self._processes:
            if one.ended is None and one.process.poll() is not None:
                one.ended = time.monotonic()

    def _live(self) -> int:
        return sum(one.ended is None for one in self._processes)

    def _certain(self, one: _Process) -> bool:
        """Whether it ended by itself, and not with its subjob."""
        if one.ended is None or self._leaving:
            return False
        return one.code == 0 or time.monotonic() > one.ended + _GRACE

    def _ended(self) -> dict[int, int]:
        return self._never | {one.number: one.code for one in self._processes if self._certain(one)}

    def _obey(self, orders: Orders) -> None:
        if orders.launch.number != self._launch:
            self._stop()
            try:
                hosts = self._hostfiles(orders.launch) if orders.launch.processes else {}
            except OSError as error:
                # Asked again it is tried again: the launch is not said to be carried out.
                why = f"nothing can be launched: {error.filename}: {error.strerror}"
                if why != self._said:
                    self._note(why)
                self._said = why
                return
            self._launch, self._signals, self._never = orders.launch.number, 0, {}
            self._start(orders.launch, hosts)
        if orders.signals > self._signals:
            self._signals = orders.signals
            with contextlib.suppress(AttributeError):
                self._signal(getattr(signal, f"SIG{orders.signal}"))

    def _signal(self, number: int) -> None:
        for one in self._processes:
            if one.ended is None:
                # The process alone: what it started hears of it from it.
                with contextlib.suppress(ProcessLookupError):
                    one.process.send_signal(number)

    def _stop(self) -> None:
        """End all that runs, and what it started."""
        for one in self._processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, signal.SIGKILL)
        if self._alone:
            end_descendants()
        for one in self._processes:
            one.process.wait()
        self._processes = []

    def _start(self, launch: Launch, hosts: Mapping[str, str]) -> None:
        if not launch.processes:
            return
        environment = environment_of(self._spec, launch, hosts)
        pins = processors_here(self._allocation)
        for number, index in launch.processes:
            mine = {
                **environment,
                "HEADWAY_PROCESS": str(number),
                "HEADWAY_PROCESSOR": f"{self._allocation.job}/{self._allocation.node}/{index}",
            }
            pin = {pins[index]} if self._spec.launch == "each" and index < len(pins) else None
            try:
                made = subprocess.Popen(
                    self._spec.command, env=mine, cwd=self._spec.directory, stdin=subprocess.DEVNULL,
                    start_new_session=True, preexec_fn=_with_worker(pin),
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                self._note(f"{self._spec.command[0]}: cannot be started: {error}")
                self._never[number] = NEVER_BECAME
                continue
            self._processes.append(_Process(number, made))

    def _hostfiles(self, launch: Launch) -> dict[str, str]:
        """Files that launchers of MPI read: which host runs how many processes. Raises OSError."""
        base = self._place.path / f"hosts.{launch.number}.{os.getpid()}"
        slots, counts = base.with_suffix(".slots"), base.with_suffix(".counts")
        slots.write_text("".join(f"{host} slots={count}\n" for host, count in launch.hosts))
        counts.write_text("".join(f"{host}:{count}\n" for host, count in launch.hosts))
        return {"slots": str(slots), "counts": str(counts)}


def environment_of(spec: Specification, launch: Launch, hosts: Mapping[str, str]) -> dict[str, str]:
    """The environment of a launch's processes: that of the submission, without the batch system's words.

    ``hosts``: the host files, as Open MPI ("slots") and as Hydra ("counts") have them.
    """
    batch = _BATCH if "OMPI_COMM_WORLD_RANK" not in spec.environment else (*_BATCH, *_SETTINGS)
    kept = {key: value for key, value in spec.environment.items() if not key.startswith(batch)}
    return {
        **kept,
        **launch.variables,
        "HEADWAY_HOSTFILE": hosts["slots"],
        "OMPI_MCA_orte_default_hostfile": hosts["slots"],
        "PRTE_MCA_prte_default_hostfile": hosts["slots"],
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "HYDRA_HOST_FILE": hosts["counts"],
        "HYDRA_BINDING": "none",
    }


def processors_here(allocation: Allocation) -> list[int]:
    """The processors of this machine that the batch system confined the subjob to, in order; none if it did
    not: then processes go where the kernel puts them."""
    given = dict(allocation.placement).get(allocation.node, 0)
    found = sorted(os.sched_getaffinity(0))
    return found if len(found) == given else []


def bury_orphans(known: Collection[int]) -> None:
    """Let children go that ended and that are not waited for; ``known``: the children that are."""
    with contextlib.suppress(ChildProcessError):
        for _ in range(_MOST_BURIED):
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, 0)


def _with_worker(pin: set[int] | None) -> Callable[[], None]:
    """What a process does before it becomes the application: it is to end with its worker."""
    end_with_it = with_its_parent()

    def prepare() -> None:
        end_with_it()
        if pin is not None:
            os.sched_setaffinity(0, pin)

    return prepare


def work(place: Place, allocation: Allocation, note: Callable[[str], None]) -> int:
    """Run a worker in this process; its exit code."""
    adopt_orphans()
    worker: Any = Worker(place, place.specification(), allocation, note=note, alone=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.terminate())
    code: int = worker.run()
    return code


def everywhere(here: Sequence[str], elsewhere: Sequence[tuple[str, ...]], note: Callable[[str], None]) -> int:
    """Run a worker on this node and, with commands of the batch system, on a job's other nodes; the exit code
    of this node's. Raises :class:`Failure`."""
    started: list[subprocess.Popen[bytes]] = []

    def end(number: int = signal.SIGTERM, frame: object = None) -> None:
        for one in started:
            with contextlib.suppress(ProcessLookupError):
                one.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        for argv in (here, *elsewhere):
            try:
                started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
            except OSError as error:
                raise Failure(f"{argv[0]}: a worker cannot be started: {error.strerror}") from error
        others = dict(zip(elsewhere, started[1:], strict=True))
        while (code := started[0].poll()) is None:
            for argv, one in list(others.items()):
                if one.poll() is not None:
                    note(
                        f"{argv[0]}: exit code {others.pop(argv).returncode}; the worker on this node goes on"
                    )
            time.sleep(_GRACE / 2)
        return code if code >= 0 else 128 - code
    finally:
        end()
