"""Slurm's own power saving: nodes sleep and wake through the site's Suspend- and ResumeProgram.

What Slurm shows of a node that sleeps and wakes (seen on 22.05): ``IDLE+POWER_DOWN`` until it has run
SuspendProgram, ``POWERING_DOWN`` for SuspendTimeout seconds, ``POWERED_DOWN``; after POWER_UP for a
moment ``POWER_UP+POWERED_DOWN``, then ``NOT_RESPONDING+POWERING_UP`` until its slurmd has registered
after a boot. If that takes longer than ResumeTimeout: ``DOWN+POWERED_DOWN+NOT_RESPONDING``, reason
"ResumeTimeout reached".

Decisions. Slurm accepts POWER_UP for a node that is falling asleep and then forgets it (also seen on
22.05): the wish is kept here and asked for once the node sleeps. A node that did not wake is drained,
so that it does not come back into service by itself when it registers late, and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Outcome
from headway_adapters.polling.actuators import OURS, Actuators
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import writer


class PowerSaving:
    """What was asked of Slurm's power saving and is not done yet."""

    def __init__(self) -> None:
        #: Sent to sleep, and not seen asleep since.
        self._leaving: set[str] = set()
        #: To be woken as soon as they sleep.
        self._recalled: set[str] = set()
        self._waking: set[str] = set()

    def down(self, nodes: Sequence[str], last: Snapshot | None) -> Sequence[str]:
        """The ``nodes`` that POWER_DOWN is to be asked for; the others sleep already."""
        self._recalled.difference_update(nodes)
        return [
            node for node in nodes if _state(node, last) in ("on", "waking") and node not in self._leaving
        ]

    def went(self, nodes: Iterable[str]) -> None:
        """POWER_DOWN was accepted for these."""
        self._leaving.update(nodes)

    def up(self, nodes: Iterable[str], last: Snapshot | None) -> Sequence[str]:
        """The ``nodes`` that POWER_UP is to be asked for now; the others wake later, or are on."""
        now = []
        for node in nodes:
            state = _state(node, last)
            if state == "falling asleep" or node in self._leaving:
                self._recalled.add(node)
            elif state == "asleep":
                now.append(node)
        return now

    def looked(self, snapshot: Snapshot) -> tuple[Sequence[str], Sequence[str]]:
        """After a look: the nodes to wake now because it was wished earlier, and the nodes that did
        not wake."""
        power = snapshot.power
        asleep = {node for node, state in power.items() if state == "asleep"}
        self._leaving -= asleep
        self._leaving &= snapshot.nodes.keys()
        wake = sorted(node for node in self._recalled & asleep if snapshot.nodes[node].available)
        self._recalled -= asleep
        waking = {node for node, state in power.items() if state == "waking"}
        failed = sorted(
            node for node in self._waking - waking
            if node in snapshot.nodes and not snapshot.nodes[node].available
        )  # fmt: skip
        self._waking = waking
        return wake, failed


class Power:
    """Asks Slurm for what :class:`PowerSaving` finds out. On the adapter's thread."""

    def __init__(self, commands: Commands, actuators: Actuators, log: Any) -> None:
        self._commands = commands
        self._actuators = actuators
        self._log = log
        self._saving = PowerSaving()

    def change(self, decision: d.PowerDown | d.PowerUp, last: Snapshot | None) -> Outcome:
        """Carry a decision out."""
        falls = isinstance(decision, d.PowerDown)
        word = "POWER_DOWN" if falls else "POWER_UP"
        try:
            argv = writer.power(decision.nodes, word)
        except writer.Unfit as error:
            return Outcome(False, str(error))
        if self._actuators.options.dry:
            return self._ask(argv)
        nodes = (self._saving.down if falls else self._saving.up)(decision.nodes, last)
        if not nodes:
            return Outcome(True)
        outcome = self._ask(writer.power(nodes, word))
        if falls and outcome.accepted:
            self._saving.went(nodes)
        return outcome

    def tend(self, snapshot: Snapshot) -> None:
        """Wake nodes that are to wake since they fell asleep, and drain nodes that did not wake."""
        wake, failed = self._saving.looked(snapshot)
        if wake:
            self._ask(writer.power(wake, "POWER_UP"))
        for node in failed:
            reason = snapshot.nodes[node].reason
            self._log.error("a node does not wake; it is drained", node=node, error=reason)
            self._ask(writer.drain(node, f"{OURS}did not wake in time"))

    def _ask(self, argv: tuple[str, ...]) -> Outcome:
        if self._actuators.options.dry:
            self._actuators.say_dry(argv)
            return Outcome(True, "dry: only logged")
        outcome = self._commands.run_steps([argv])
        if not outcome.accepted:
            self._log.warning(
                "a node's power could not be changed", command=" ".join(argv), error=outcome.message
            )
        return outcome


def _state(node: str, last: Snapshot | None) -> str:
    return last.power.get(node, "on") if last is not None else "on"
