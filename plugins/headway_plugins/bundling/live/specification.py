"""What a bundle is to be: fixed when it is submitted."""

from __future__ import annotations

from typing import Any

import msgspec

from headway_plugins.bundling.model import Model

#: Programs that start an application's processes themselves.
LAUNCHERS = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "charmrun"})


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle as its user asked for it. Times are seconds."""

    id: str
    user: str
    #: Absolute seconds.
    submitted: float
    #: P_t and R_t.
    processors: int
    walltime: float
    command: tuple[str, ...]
    #: "each": the command is run once a process; "once": it starts the processes itself.
    launch: str
    #: Where, and with what environment it is run.
    directory: str
    environment: dict[str, str]
    #: The batch system, and the options of its user's side; ``queue`` among them.
    system: str
    options: dict[str, Any]
    account: str = ""
    #: The migration handler, and its options.
    checkpoint: str
    checkpoint_options: dict[str, Any]
    omax: int = 8
    delta: float = 1.0
    migration: float = 120.0
    min_gain: float = 0.0
    slack: float = 1.05
    #: Between two checkpoints while nothing moves; 0: none.
    checkpoint_every: float = 1800.0
    #: Between two looks at the queue.
    poll: float = 15.0
    #: How long a subjob may wait before it is taken back.
    confirm: float = 60.0
    #: How long workers may be silent before their subjob is given up.
    silence: float = 60.0
    #: Between two questions of a worker.
    beat: float = 0.5
    #: Bytes of a process; 0: not stated, and nothing is asked for.
    memory: int = 0
    #: The host name or address on which the manager listens.
    listen: str = ""
    #: The socket of headway's own daemon, and the pool there; "": the batch system's queue is read.
    socket: str = ""
    pool: str = ""
    #: The command, in words, that tells what the batch system's own scheduler offers; empty: no such command.
    showbf: tuple[str, ...] = ()
    #: The absolute path of the program that runs workers.
    program: str

    @property
    def model(self) -> Model:
        return Model(self.processors, self.walltime, self.omax, self.delta, self.migration)

    @property
    def longest(self) -> float:
        """Seconds that no subjob's limit exceeds."""
        return self.slack * (max(1.0, self.delta) * self.omax * self.walltime + 2 * self.migration)
