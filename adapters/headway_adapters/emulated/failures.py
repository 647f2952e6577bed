"""Nodes break and are repaired, after exponential times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headway.errors import UserError
from headway_adapters.emulated.ends import Ends
from headway_adapters.emulated.faults import Faults
from headway_adapters.emulated.machine import Machine


class Failures:
    """Breaks nodes and repairs them."""

    def __init__(self, machine: Machine, ends: Ends, faults: Faults, rng: np.random.Generator) -> None:
        """Raises :class:`UserError` when nodes are to fail where there are none."""
        self._machine = machine
        self._ends = ends
        self._faults = faults
        self._rng = rng
        #: Told of each node that broke, once its jobs are gone, and of each that can be used again.
        self.broken: Callable[[str], None] = lambda name: None
        self.mended: Callable[[str], None] = lambda name: None
        if faults.node_mtbf:
            cluster = machine.cluster
            if flat := [repr(p.name) for p in cluster.pools if p.flat]:
                raise UserError(
                    "emulation.faults.node_mtbf: node failures need pools made of nodes, found the flat pool "
                    + ", ".join(flat)
                )
            for name in [node.name for node in cluster.nodes if node.available]:
                machine.agenda.at(machine.now + rng.exponential(faults.node_mtbf), self.fail, name)

    def fail(self, name: str) -> None:
        """A node breaks; its jobs end, or go back to the queue."""
        machine = self._machine
        machine.nodes.set_available(name, False)
        for execution in list(machine.running.values()):
            if any(node == name for node, _ in execution.placement):
                if self._faults.requeue:
                    execution.book(machine.now)
                    self._ends.back_to_queue(execution, f"node {name} failed")
                else:
                    self._ends.cut_off(execution, "node failure", f"node {name} failed")
        machine.set_available(name, False, "failed")
        self.broken(name)
        delay = self._rng.exponential(self._faults.node_repair)
        machine.agenda.at(machine.now + delay, self._repair, name)

    def _repair(self, name: str) -> None:
        machine = self._machine
        machine.set_available(name, True)
        self.mended(name)
        delay = self._rng.exponential(self._faults.node_mtbf)
        machine.agenda.at(machine.now + delay, self.fail, name)

    def woken(self, name: str) -> None:
        """A node that was woken is there, or it is broken."""
        faults = self._faults
        if faults.wake_failure_rate and self._rng.random() < faults.wake_failure_rate:
            self.drain(name, "did not wake")

    def drain(self, name: str, reason: str) -> None:
        """A node that is not in use is broken until it is repaired."""
        machine = self._machine
        machine.set_available(name, False, reason)
        delay = self._rng.exponential(self._faults.node_repair)
        machine.agenda.at(machine.now + delay, self._mend, name)

    def _mend(self, name: str) -> None:
        self._machine.set_available(name, True)
        self.mended(name)
