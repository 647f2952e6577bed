"""A real Slurm of several nodes on this machine's loopback address, with daemons of its own for everything.

munged (own key, own socket), slurmctld and a slurmd for each node run as the calling user, with state, logs
and sockets in one folder, beside a Slurm that may be installed here. An ordinary user's nodes can run that
user's jobs only; root's run all users' jobs. The nodes have as many processors as they are told, whatever the
machine has, since the jobs sleep.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from headway.errors import Failure, UserError
from headway.inputs.shipped import shipped
from headway_adapters.lab.system import Access, Processes, Shape

#: Program -> the Debian package that has it.
PACKAGES = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "scontrol": "slurm-client",
    "sbatch": "slurm-client",
}
PLUGINS = "slurm-wlm-basic-plugins"
#: Where administration commands are, for a PATH.
SYSTEM = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARIES = ("usr/lib/*/slurm*", "usr/lib/slurm*", "usr/lib64/slurm*", "usr/local/lib/slurm*")

_PARTITION = "batch"
#: A socket's path has 107 bytes at most.
_LONGEST_FOLDER = 70
#: Seconds until the nodes must be idle.
_PATIENCE = 120.0
_STEP = 0.2
#: The line of the submit filter that says whose commands are the scheduler's.
_EXEMPT = "local EXEMPT = { [0] = true }"
#: And those that are changed for the fence (:mod:`headway_adapters.slurm.fence`).
_LEADERS, _FENCE = "local LEADERS = { [0] = true }", "/var/lib/slurm/slurmctld/headway.epoch"
#: The lines that say whose jobs wait for headway, and where headway shows that it is there.
_MANAGED = "local MANAGED = { batch = true }"
_HEARTBEAT = 'local HEARTBEAT = "/run/headway/heartbeat"'

_CONF = """\
ClusterName=lab
SlurmctldHost=localhost({address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
SlurmdParameters=config_overrides
JobSubmitPlugins=lua
ReturnToService=2
KillWait=2
MinJobAge=300
MailProg=/bin/true
"""
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


class SlurmLab:
    """Slurm's own daemons in a folder. See :class:`headway_adapters.lab.system.LabSystem`."""

    def __init__(self, folder: Path, shape: Shape, processes: Processes) -> None:
        """Raises :class:`UserError` where it cannot be: packages, a folder's path, a host's name."""
        _require_packages()
        if len(str(folder)) > _LONGEST_FOLDER or any(c in str(folder) for c in " \t\"'#\\,%()="):
            raise UserError(
                f"lab slurm: expected a folder of at most {_LONGEST_FOLDER} characters without blanks and "
                f"without any of \"'#\\,%()=, since slurm.conf names it; found {folder}"
            )
        self._folder, self._shape, self._processes = folder, shape, processes
        self._address = _own_address()
        self._conf = str(folder / "etc" / "slurm.conf")
        self._environment = _environment(self._conf)

    def start(self) -> Access:
        for name in ("etc", "run", "state", "spool", "munge"):
            (self._folder / name).mkdir()
        (self._folder / "munge").chmod(0o700)
        with _free_ports(self._address, 1 + self._shape.nodes) as ports:
            self._write_files(ports)
            self._start_munged()
        # Ports are free from here on, until their daemons have them.
        self._processes.start("slurmctld", self._daemon("slurmctld"), self._environment)
        self._wait("slurmctld", lambda: "UP" in self._asked("scontrol", "ping"))
        for name in self._nodes():
            self._processes.start(name, self._daemon("slurmd", "-N", name), self._environment)
        self._wait("idle nodes", self._all_idle)
        return Access(
            adapter="slurm",
            options={"slurm_conf": self._conf, "accounting": "no", "show_starts": True, **self._heartbeat()},
            queues="partitions",
            queue=_PARTITION,
            environment={"SLURM_CONF": self._conf},
            commands=("squeue --start", "sinfo -N", "sbatch -n 4 -t 2 -o /dev/null --wrap 'sleep 60'"),
        )

    def stop(self) -> None:
        """All of it are processes."""

    def _heartbeat(self) -> dict[str, str]:
        """A fresh Slurm has what a site has: it takes over when headway is away."""
        return {"heartbeat": str(self._folder / "heartbeat")} if self._shape.fresh else {}

    # -- files -------------------------------------------------------------------------------------

    def _write_files(self, ports: Sequence[int]) -> None:
        etc = self._folder / "etc"
        user = getpass.getuser()
        lines = [_CONF.format(address=self._address, port=ports[0], user=user, folder=self._folder)]
        for name, port in zip(self._nodes(), ports[1:], strict=True):
            (self._folder / "spool" / name).mkdir()
            lines.append(
                f"NodeName={name} NodeHostname=localhost NodeAddr={self._address} Port={port} "
                f"CPUs={self._shape.processors} RealMemory=4000 State=UNKNOWN\n"
            )
        lines.append(f"PartitionName={_PARTITION} Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")
        (etc / "slurm.conf").write_text("".join(lines), encoding="utf-8")
        (etc / "cgroup.conf").write_text(_CGROUP, encoding="utf-8")
        script = own_filter(os.getuid(), self._folder / "state")
        if self._shape.fresh:
            script = fresh_filter(script, self._folder / "heartbeat")
        (etc / "job_submit.lua").write_text(script, encoding="utf-8")

    def _start_munged(self) -> None:
        run, own = self._folder / "run", self._folder / "munge"
        key = own / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        argv = [
            _program("munged"), "--foreground", "--force", f"--key-file={key}",
            f"--socket={run / 'munge.sock'}", f"--pid-file={run / 'munged.pid'}",
            f"--log-file={own / 'munged.log'}", f"--seed-file={own / 'munged.seed'}",
            "--num-threads=4", f"--origin={self._address}",
        ]  # fmt: skip
        self._processes.start("munged", argv, self._environment)
        self._wait("munged", (run / "munge.sock").is_socket)

    # -- daemons -----------------------------------------------------------------------------------

    def _nodes(self) -> list[str]:
        return [f"node{number}" for number in range(1, self._shape.nodes + 1)]

    def _daemon(self, name: str, *words: str) -> list[str]:
        return [_program(name), "-D", "-f", self._conf, *words]

    def _asked(self, *argv: str) -> str:
        """What a command of Slurm's says; "" as long as it fails."""
        try:
            done = subprocess.run(
                [_program(argv[0]), *argv[1:]], env=self._environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=_PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout if done.returncode == 0 else ""

    def _all_idle(self) -> bool:
        states = self._asked("sinfo", "--noheader", "-N", "-o", "%T").split()
        return len(states) == self._shape.nodes and set(states) == {"idle"}

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not holds():
            self._processes.check()
            if time.monotonic() > end:
                raise Failure(
                    f"lab slurm: expected {what} within {_PATIENCE:g} s, found none; slurmctld said:\n"
                    f"{self._processes.tail('slurmctld')}"
                )
            time.sleep(_STEP)


def own_filter(user: int, state: Path) -> str:
    """The shipped submit filter, for a user (number) that submits jobs and runs headway, too: what headway
    does with that user's jobs is not taken for the user's own wish. ``state``: Slurm's StateSaveLocation."""
    text = shipped("slurm/job_submit.lua").read_text(encoding="utf-8")
    both = f"{{ [0] = true, [{user}] = true }}"
    text = _changed(text, _EXEMPT, f"local EXEMPT = {both}")
    text = _changed(text, _LEADERS, f"local LEADERS = {both}")
    return _changed(text, _FENCE, str(state / "headway.epoch"))


def fresh_filter(text: str, heartbeat: Path) -> str:
    """That filter while no job is headway's yet; it listens to this heartbeat."""
    text = _changed(text, _MANAGED, "local MANAGED = {}")
    return _changed(text, _HEARTBEAT, f'local HEARTBEAT = "{heartbeat}"')


def _changed(text: str, line: str, to: str) -> str:
    if line not in text:
        raise Failure(f"job_submit.lua: expected the line {line!r}, found none")
    return text.replace(line, to)


def _program(name: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM])
    return shutil.which(name, path=path) or name


def missing_packages() -> list[str]:
    """The Debian packages that a Slurm of this machine's lacks."""
    gone = sorted({package for program, package in PACKAGES.items() if not os.path.isabs(_program(program))})
    # Of Debian's multiarch folders, or Slurm's own.
    filters = (found for folder in _LIBRARIES for found in Path("/").glob(f"{folder}/job_submit_lua.so"))
    return gone if any(filters) else [*gone, PLUGINS]


def _require_packages() -> None:
    if gone := missing_packages():
        raise UserError(
            f"lab slurm: expected Slurm's programs, found these Debian packages missing: {' '.join(gone)}; "
            f"`apt-get install --no-install-recommends {' '.join(gone)}` brings them (their services need "
            "not run); `headway lab pbs` and `headway lab lsf` need none"
        )


def _environment(conf: str) -> dict[str, str]:
    """Without what would steer Slurm's programs otherwise."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM", "SBATCH_", "SQUEUE_", "SINFO_", "SCONTROL_", "SCANCEL_"))
    }
    path = os.pathsep.join([kept.get("PATH", ""), *SYSTEM])
    return {**kept, "PATH": path, "SLURM_CONF": conf, "LC_ALL": "C.UTF-8"}


def _own_address() -> str:
    """The loopback address that this host's name means. Slurm's daemons listen on what the host's name means,
    and a laboratory is nobody else's. Raises :class:`UserError`."""
    name = socket.gethostname()
    try:
        found = socket.gethostbyname(name)
    except OSError:
        found = ""
    if not found.startswith("127."):
        raise UserError(
            f"lab slurm: expected a host name that means a loopback address, found {name} = "
            f"{found or 'nothing'}. As root, `unshare --uts sh -c 'hostname localhost; headway lab slurm'` "
            f"gives the lab such a name; or add the line `127.0.1.1 {name}` to /etc/hosts"
        )
    return found


@contextmanager
def _free_ports(address: str, count: int) -> Iterator[list[int]]:
    """So many ports that nothing listens on; kept until the end, so that none is found twice."""
    with ExitStack() as kept:
        found = []
        for _ in range(count):
            one = kept.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            one.bind((address, 0))
            found.append(one.getsockname()[1])
        yield found
