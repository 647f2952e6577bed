"""Hosts that sleep and wake through IBM Spectrum LSF's power saving (``badmin hpower``).

LSF shows a host that sleeps and one that wakes alike (``closed_Power``; one that boots may be ``unavail``
or ``unreach``), and has no word for one that never wakes. So which hosts were sent a ``resume`` is kept here.
One that LSF cannot use after ``wake_timeout`` is reported and counts as down, so that jobs are placed around
it; once LSF can use it, it is in order. (After IBM's manual; not seen on a real one.)

A daemon that begins anew takes a host that never woke for one that sleeps, and finds it out once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from headway.model import NodeDescription

#: What LSF may say of a host that was told to wake and is not up yet.
_NOT_YET = frozenset({"closed_Power", "unavail", "unreach"})


class PowerSaving:
    """The hosts that were told to wake and are not seen awake."""

    def __init__(self, timeout: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``timeout``: seconds that a host may take to wake."""
        self._timeout = timeout
        self._monotonic = monotonic
        #: Host -> when it was told.
        self._waking: dict[str, float] = {}
        self._lost: set[str] = set()

    def resumed(self, hosts: Iterable[str], asleep: Mapping[str, str]) -> None:
        """``resume`` was accepted for these hosts; hosts that are not ``asleep`` are up already."""
        for host in hosts:
            if host in asleep:
                self._waking.setdefault(host, self._monotonic())
                self._lost.discard(host)

    def suspended(self, hosts: Iterable[str]) -> None:
        """``suspend`` was accepted for these."""
        for host in hosts:
            self._waking.pop(host, None)
            self._lost.discard(host)

    def show(
        self, states: Mapping[str, str], nodes: dict[str, NodeDescription], power: dict[str, str]
    ) -> list[str]:
        """Put what is known here into what a look shows (``states``: LSF's word for each host); the
        hosts that turned out not to wake."""
        lost = []
        for host, since in list(self._waking.items()):
            if states.get(host) not in _NOT_YET:
                self._waking.pop(host, None)
            elif self._monotonic() - since >= self._timeout:
                self._waking.pop(host, None)
                self._lost.add(host)
                lost.append(host)
            elif host in nodes:
                power[host] = "waking"
                nodes[host] = msgspec.structs.replace(nodes[host], available=True, reason="")
        for host in list(self._lost):
            if states.get(host) not in _NOT_YET:
                self._lost.discard(host)
            elif host in nodes:
                power.pop(host, None)
                why = f"headway: did not wake within {self._timeout:g} s"
                nodes[host] = msgspec.structs.replace(nodes[host], available=False, reason=why)
        return lost
