"""The metajob: what a user wants of several sites at once, and whether it can be met at all.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5: the fields of a metajob and its three usages.

- ``multiple``: nodes of several machines at the same time.
- ``single``: all nodes on one of several machines, as early as possible.
- ``pipeline``: stages on machines, one after another. The paper only outlines it: an offset for each machine.

A *machine* is a name in the configuration of the search: a site with what its nodes must have.

Ours: an offset that is not given is the end of the stage before, and the time that the transfer takes. A
machine that the preference list leaves out comes after its last name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headway.errors import UserError

Usage = Literal["multiple", "single", "pipeline"]


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a metajob wants of a machine; nodes."""

    min: int
    max: int
    account: str = ""
    user: str = ""
    #: Where the site sends word if it cannot keep a reservation.
    email: str = ""


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a pipeline; seconds."""

    machine: str
    nodes: int
    duration: float
    #: Seconds after the start of the metajob; None: at the end of the stage before, and ``transfer`` later.
    offset: float | None = None
    transfer: float = 0.0


class Metajob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user's request to several sites; times are seconds since the epoch, durations are seconds."""

    id: str
    usage: Usage
    earliest: float
    latest: float
    #: Of ``multiple`` and ``single``; a stage has its own.
    total: int = 0
    duration: float = 0.0
    preference: tuple[str, ...] = ()
    #: Whether the machines may be taken in another order than that of the preference list.
    reorder: bool = True
    machines: dict[str, Machine] = {}
    stages: tuple[Stage, ...] = ()

    @property
    def preferred(self) -> list[str]:
        """All machines, in the order of the preference list."""
        return [*self.preference, *(name for name in self.machines if name not in self.preference)]

    def offsets(self) -> list[float]:
        """When each stage starts, in seconds after the start of the metajob."""
        found: list[float] = []
        over = 0.0
        for stage in self.stages:
            offset = over + stage.transfer if stage.offset is None else stage.offset
            found.append(offset)
            over = offset + stage.duration
        return found

    @property
    def span(self) -> float:
        """Seconds from the start of the metajob to the end of its last part."""
        if self.usage != "pipeline":
            return self.duration
        ends = (offset + stage.duration for offset, stage in zip(self.offsets(), self.stages, strict=True))
        return max(ends, default=0.0)


def of_record(record: Mapping[str, Any]) -> Metajob:
    """The metajob of a mapping with the fields of :class:`Metajob`; a stage may be a list of its fields.

    Raises :class:`UserError` that names the field.
    """
    stages = [
        dict(zip(Stage.__struct_fields__, stage, strict=False)) if isinstance(stage, list | tuple) else stage
        for stage in record.get("stages", ())
    ]
    try:
        return msgspec.convert({**record, "stages": stages}, Metajob)
    except msgspec.ValidationError as error:
        raise UserError(f"metajob {record.get('id', '')}: {error}") from None


def to_record(metajob: Metajob) -> dict[str, Any]:
    """The metajob in JSON values; :func:`of_record` reads them."""
    record: dict[str, Any] = msgspec.to_builtins(metajob)
    return record


def mistakes(metajob: Metajob) -> list[str]:
    """Why no search for this metajob can succeed or begin, a line each; empty: it may begin."""
    found = [*_of_names(metajob), *_of_numbers(metajob)]
    if metajob.usage == "pipeline":
        found += _of_stages(metajob)
    else:
        found += _of_machines(metajob)
    if not found and metajob.latest - metajob.earliest < metajob.span:
        found.append(
            f"latest: expected at least {metajob.span:g} s after earliest, which is how long the metajob "
            f"takes, found {metajob.latest - metajob.earliest:g} s"
        )
    return found


def check(metajob: Metajob) -> None:
    """Raises :class:`UserError` with all :func:`mistakes`."""
    found = mistakes(metajob)
    if found:
        raise UserError("\n".join(f"metajob {metajob.id}: {line}" for line in found))


def _of_names(metajob: Metajob) -> list[str]:
    found = []
    if not metajob.id or "-" in metajob.id:
        found.append(f"id: expected a name without a hyphen, found {metajob.id!r}")
    unknown = [name for name in metajob.preference if name not in metajob.machines]
    if metajob.usage != "pipeline" and unknown:
        found.append(f"preference: {', '.join(unknown)} is not among the machines")
    if len(set(metajob.preference)) < len(metajob.preference):
        found.append("preference: a machine is named twice")
    return found


def _of_numbers(metajob: Metajob) -> list[str]:
    found = []
    if metajob.usage != "pipeline":
        if metajob.duration <= 0:
            found.append(f"duration: expected more than 0 s, found {metajob.duration:g}")
        if metajob.total < 1:
            found.append(f"total: expected at least 1 node, found {metajob.total}")
    for name, machine in metajob.machines.items():
        if not 0 <= machine.min <= machine.max:
            found.append(
                f"machines: {name}: expected 0 <= min <= max, found min {machine.min}, max {machine.max}"
            )
    return found


def _of_machines(metajob: Metajob) -> list[str]:
    """Whether the machines can have the nodes."""
    machines, total = metajob.machines.values(), metajob.total
    if not machines:
        return ["machines: expected at least one"]
    if metajob.usage == "single":
        if any(machine.min <= total <= machine.max for machine in machines):
            return []
        return [f"total: no machine takes {total} nodes between its min and its max"]
    least, most = sum(machine.min for machine in machines), sum(machine.max for machine in machines)
    if least <= total <= most:
        return []
    return [f"total: expected {least} to {most} nodes, the sums of min and max, found {total}"]


def _of_stages(metajob: Metajob) -> list[str]:
    if not metajob.stages:
        return ["stages: expected at least one"]
    found = []
    for number, stage in enumerate(metajob.stages, 1):
        where = f"stages: {number} ({stage.machine})"
        machine = metajob.machines.get(stage.machine)
        if metajob.machines and machine is None:
            found.append(f"{where}: the machine is not among the machines")
        if stage.nodes < 1 or stage.duration <= 0:
            found.append(
                f"{where}: expected at least 1 node and more than 0 s, found {stage.nodes} nodes, "
                f"{stage.duration:g} s"
            )
        if machine is not None and not machine.min <= stage.nodes <= machine.max:
            found.append(f"{where}: expected {machine.min} to {machine.max} nodes, found {stage.nodes}")
        if (stage.offset is not None and stage.offset < 0) or stage.transfer < 0:
            found.append(f"{where}: expected an offset and a transfer of at least 0 s")
    return found
