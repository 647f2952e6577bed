"""Starts of heterogeneous jobs, as commands: which component goes where, and how that is taken back. Pure.

Slurm's command changes no node list of the component that has the number of the whole, the leader, but it
changes the nodes that are excluded: the leader is sent to its nodes by excluding all others. What is asked
of the leader's number is asked of all components, so this comes first, and each of the others is then given
back what its user had excluded, and its nodes. All are held meanwhile, and released together by the leader's
number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from headway import decisions as d
from headway.model import Placement
from headway_adapters.polling.words import Argv, Unfit
from headway_adapters.slurm import marker, writer
from headway_adapters.slurm.reader import Detail


@dataclass(frozen=True)
class Steps:
    """Commands: the leader's, then the commands of the others, in any order."""

    leader: Argv
    others: tuple[Argv, ...]


def start(
    decision: d.Start,
    detail: Detail,
    placements: Sequence[Placement],
    pool: Collection[str],
    *,
    reserved: bool,
    shown: marker.Shown | None = None,
) -> tuple[Steps, tuple[marker.Pin, ...]]:
    """Pin each component to its nodes of ``placements``; the pins, the leader's first.

    ``pool``: all nodes of the partition. ``reserved``, ``shown``: as for
    :func:`headway_adapters.slurm.writer.start`. Raises :class:`Unfit`.
    """
    leader = writer.job(decision.job_id)
    if len(placements) != len(detail.parts) or not all(placements):
        raise Unfit(f"job {leader}: a start on Slurm must name nodes for each of its components")
    if len({node for placement in placements for node, _ in placement}) < len(decision.placement):
        raise Unfit(f"job {leader}: each of its components must have nodes of its own")
    first, placed = detail.parts[0][1], placements[0]
    chosen = tuple(node for node, _ in placed)
    writer.nodes(chosen)
    if strange := set(chosen) - set(pool):
        raise Unfit(f"job {leader}: its partition has no node {', '.join(sorted(strange))}")
    if missing := set(first.node_list) - set(chosen):
        raise Unfit(f"job {leader}: its user also asked for {', '.join(sorted(missing))}")
    pin = marker.Pin(
        nodes=chosen, asked=first.node_list, least=first.least_nodes, most=first.most_nodes, placement=placed,
        restarts=first.restarts, reserved=reserved, excluded=tuple(part.excluded for _, part in detail.parts),
        shown=shown,
    )  # fmt: skip
    away = dict.fromkeys([*first.excluded, *sorted(set(pool) - set(chosen))])
    command = ["scontrol", "update", f"JobId={leader}", f"ExcNodeList={writer.nodes(away)}"]
    if shown is not None:
        command.append("StartTime=now")
    if reserved:
        command.append(f"ReservationName={writer.own_reservation(leader)}")
    if detail.comment_free:
        command.append(f"AdminComment={pin.text()}")
    pins, others = [pin], []
    for (record, part), placement in zip(detail.parts[1:], placements[1:], strict=True):
        own = msgspec.structs.replace(decision, job_id=record, placement=placement)
        plan = writer.start(own, part, "", mark=detail.comment_free)
        assert plan.pin is not None
        pins.append(plan.pin)
        others.append((*plan.steps[0], f"ExcNodeList={writer.nodes(part.excluded)}"))
    return Steps(tuple(command), tuple(others)), tuple(pins)


def restore(detail: Detail, leader: str, pins: Sequence[marker.Pin | None], *, mark: bool) -> Steps:
    """Hold all components, and give each back what its user had asked for.

    ``pins``: of each component that has one. Raises :class:`Unfit`.
    """
    command = ["scontrol", "update", f"JobId={writer.job(leader)}", "Priority=0"]
    command.append(f"ExcNodeList={writer.nodes(detail.parts[0][1].excluded)}")
    if any(pin is not None and pin.reserved for pin in pins):
        command.append("ReservationName=")
    if mark:
        command.append(f"AdminComment={marker.held(shown=pins[0].shown if pins[0] is not None else None)}")
    others = []
    for (record, part), pin in zip(detail.parts[1:], pins[1:], strict=True):
        excluded = f"ExcNodeList={writer.nodes(part.excluded)}"
        if pin is not None and not pin.excluded:
            others.append((*writer.restore(record, pin, mark=mark), excluded))
        else:
            others.append(("scontrol", "update", f"JobId={writer.job(record)}", excluded))
    return Steps(tuple(command), tuple(others))
