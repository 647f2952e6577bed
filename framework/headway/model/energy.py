"""What nodes draw, and how fast they are: node classes, frequency levels, sleep states."""

from __future__ import annotations

import msgspec


class FrequencyLevel(msgspec.Struct, frozen=True, gc=False):
    """A frequency at which a processor can run, and the voltage that it needs there."""

    #: Hertz.
    frequency: float
    #: Volts.
    voltage: float


class SleepState(msgspec.Struct, frozen=True, gc=False):
    """What a sleeping node draws, and what it costs to get there and back."""

    name: str
    #: Watts of the whole node.
    power: float
    #: Seconds and joules from "on" to asleep.
    enter_time: float
    enter_energy: float
    #: Seconds and joules from asleep to "on".
    leave_time: float
    leave_energy: float


class NodeClass(msgspec.Struct, frozen=True, gc=False):
    """Nodes that draw alike.

    A busy processor draws ``capacitance * voltage**2 * frequency + static_power`` watts, an idle processor
    ``idle_power``, and each node that is on ``node_power`` beside its processors.
    """

    name: str
    #: Fastest first; never empty. Voltages do not rise as frequencies fall.
    levels: tuple[FrequencyLevel, ...]
    #: Work done per second at the fastest level, in seconds of work as the workload states it.
    speed: float = 1.0
    #: A*C of P = A*C*v^2*f: watts per volt squared and hertz.
    capacitance: float = 0.0
    static_power: float = 0.0
    idle_power: float = 0.0
    node_power: float = 0.0
    sleep: SleepState | None = None


class EnergyProfile(msgspec.Struct, frozen=True, gc=False):
    """The node classes of a cluster, in the order in which a scheduler should like them best."""

    name: str
    #: Never empty; the first is that of a node that nothing else is said of.
    classes: tuple[NodeClass, ...]
    #: ``(pattern of node names, class)``, such as ``("gpu*", "accelerated")``; the first that matches.
    assign: tuple[tuple[str, str], ...] = ()
    #: The share of a job's time that follows the frequency, 0 to 1, where the job does not say.
    sensitivity: float = 1.0
    #: False: A*C is not calibrated, so figures compare with one another and are no joules.
    absolute: bool = True
