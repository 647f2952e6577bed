"""Nodes fall asleep and wake. Without an energy profile nothing sleeps."""

from __future__ import annotations

from collections.abc import Mapping

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.failures import Failures
from headway_adapters.emulated.machine import Machine

_NO_PROFILE = "the emulated cluster has no energy profile, so its nodes have no sleep state"


class Sleep:
    """Takes nodes through their power states."""

    def __init__(self, machine: Machine, failures: Failures) -> None:
        self._machine = machine
        self._failures = failures

    def begin_asleep(self, power: Mapping[str, str]) -> None:
        """Have nodes in these power states from the beginning on; one on its way is at its first second."""
        machine = self._machine
        if machine.power is None:
            return
        for name, state in power.items():
            sleep = machine.power.model.class_of(name).sleep if name in machine.nodes.index else None
            if sleep is None:
                continue
            self._set(name, state)
            if state == "falling asleep":
                machine.agenda.at(machine.now + sleep.enter_time, self._asleep, name)
            elif state == "waking":
                machine.agenda.at(machine.now + sleep.leave_time, self._awake, name)

    def power_down(self, decision: dec.PowerDown) -> str:
        """Send idle nodes to sleep, all or none. Returns why not, or ""."""
        machine, power = self._machine, self._machine.power
        if power is None:
            return _NO_PROFILE
        for name in decision.nodes:
            at = machine.nodes.index.get(name)
            if at is None:
                return f"node {name} is not known"
            if power.model.class_of(name).sleep is None:
                return f"node {name} has no sleep state"
            if machine.nodes.free.processors[at] != machine.nodes.total[at] or machine.nodes.lenders[at]:
                return f"node {name} is not idle"
        for name in decision.nodes:
            if name in power.recalled:
                power.recalled.discard(name)
            elif name not in power.states:
                self._set(name, "falling asleep")
                sleep = power.model.class_of(name).sleep
                machine.agenda.at(machine.now + (sleep.enter_time if sleep else 0.0), self._asleep, name)
        return ""

    def power_up(self, decision: dec.PowerUp) -> str:
        """Wake nodes; a node that is falling asleep wakes after that. Returns why not, or ""."""
        machine, power = self._machine, self._machine.power
        if power is None:
            return _NO_PROFILE
        if unknown := [name for name in decision.nodes if name not in machine.nodes.index]:
            return f"unknown nodes: {', '.join(unknown)}"
        for name in decision.nodes:
            if power.states.get(name) == "falling asleep":
                power.recalled.add(name)
            elif power.states.get(name) == "asleep":
                self._begin_to_wake(name)
        return ""

    def _set(self, name: str, state: str) -> None:
        machine = self._machine
        assert machine.power is not None
        machine.power.set(machine.now, name, state)
        machine.nodes.set_power(name, state, machine.now)
        machine.news.append(ev.NodePowerChanged(machine.now, name, state))

    def _asleep(self, name: str) -> None:
        power = self._machine.power
        assert power is not None
        self._set(name, "asleep")
        if name in power.recalled:
            power.recalled.discard(name)
            self._begin_to_wake(name)

    def _begin_to_wake(self, name: str) -> None:
        machine = self._machine
        assert machine.power is not None
        self._set(name, "waking")
        sleep = machine.power.model.class_of(name).sleep
        machine.agenda.at(machine.now + (sleep.leave_time if sleep else 0.0), self._awake, name)

    def _awake(self, name: str) -> None:
        self._set(name, "on")
        self._failures.woken(name)
