"""Actuators: the site's own commands for frequencies and power, with confirmation and time-outs.

What a batch system cannot do itself (a job's frequency after its submission, switching a node off
through its service processor) is done by commands of the site, stated under
``cluster: options: actuators:``. Each is an argument vector; ``{node}``, ``{job}``, ``{hertz}`` and
``{state}`` in it are replaced by checked values. No shell sees them here; ``ssh`` gives its words to
one on the other side, which is why a value holds letters, digits and ``. _ - [ ]`` alone.

Putting a node to sleep and waking it takes minutes and many steps, so each is a small program of its
own (a generator that yields what it waits for) which :meth:`Actuators.advance` drives on the
adapter's thread; commands run on a pool of threads. Nothing here blocks the adapter.

A node that sleeps through a command is drained first, with the reason ``headway: falling asleep``,
so that the batch system starts nothing on it and does not miss it. The reason is also the memory: a
daemon that begins anew reads from it which nodes sleep. An administrator that replaces the reason by another
has the node: it counts as drained from then on.

Decisions. A command to wake that fails or hangs is tried again until ``wake_timeout``; then the node is
drained and reported. A node that cannot be put to sleep goes back into service. ``PowerUp`` for a node
that is falling asleep is remembered and done once it sleeps. Several ``SetFrequency`` for a job while
one is being carried out: the last one counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headway import decisions as d
from headway import events as ev
from headway.errors import Failure
from headway.model import Placement
from headway_adapters.polling.programs import Pause, Program, Programs, Run, run_one
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.polling.words import Argv, Unfit, matching
from headway_adapters.transport import Result

Seconds = Annotated[float, Field(gt=0, le=86400)]
Words = Annotated[tuple[str, ...], Field(min_length=1)]

#: Drain reasons that are ours, and the power state that each stands for.
ASLEEP, FALLING_ASLEEP, WAKING = "headway: asleep", "headway: falling asleep", "headway: waking"
_MARKS = {ASLEEP: "asleep", FALLING_ASLEEP: "falling asleep", WAKING: "waking"}
#: Beginning of every drain reason that we write.
OURS = "headway: "

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\[\]-]{0,99}")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
#: Command -> placeholders that it may and that it must have.
_PLACEHOLDERS: dict[str, tuple[set[str], set[str]]] = {
    "set_frequency": ({"node", "job", "hertz"}, {"node", "hertz"}),
    "reset_frequency": ({"node", "job"}, {"node"}),
    "power_down": ({"node"}, {"node"}),
    "power_up": ({"node"}, {"node"}),
    "confirm_power": ({"node", "state"}, {"node"}),
}


class ActuatorOptions(BaseModel):
    """``cluster: options: actuators:``. Commands are lists of words; times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Sets the clock of a job's processors on one of its nodes: {node}, {job}, {hertz}.
    set_frequency: Words | None = None
    #: Gives the clock back when such a job has ended: {node}, {job}.
    reset_frequency: Words | None = None
    #: Puts a node to sleep: {node}.
    power_down: Words | None = None
    #: Wakes a node: {node}.
    power_up: Words | None = None
    #: Exit status 0: the node is as {state} says ("on", "off"); without {state}: it is on.
    confirm_power: Words | None = None
    #: After which a command is ended and counts as failed.
    timeout: Seconds = 30.0
    #: Between two questions whether a node is on or off, and between two attempts to wake it.
    confirm_interval: Seconds = 5.0
    #: How long a node may take to go off; then it counts as on.
    confirm_timeout: Seconds = 120.0
    #: How long a node may take until the batch system can use it again; then it is drained.
    wake_timeout: Seconds = 600.0
    #: Commands that run at the same time.
    parallel: Annotated[int, Field(ge=1, le=256)] = 16
    #: Only log what would be done. Also for the batch system's own power saving.
    dry: bool = False

    @model_validator(mode="after")
    def _commands_make_sense(self) -> ActuatorOptions:
        for name, (may, must) in _PLACEHOLDERS.items():
            words = getattr(self, name)
            if words is None:
                continue
            found = {key for word in words for key in _PLACEHOLDER.findall(word)}
            if unknown := sorted(found - may):
                known = ", ".join("{" + key + "}" for key in sorted(may))
                raise ValueError(f"{name}: {{{unknown[0]}}} has no meaning here. Known: {known}")
            if missing := sorted(must - found):
                raise ValueError(f"{name}: expected {{{missing[0]}}} in the command")
            if not words[0] or _PLACEHOLDER.search(words[0]):
                raise ValueError(f"{name}: expected a program as the first word, found {words[0]!r}")
            if any("\0" in word for word in words):
                raise ValueError(f"{name}: words cannot hold a null character")
        if (self.power_down is None) != (self.power_up is None):
            raise ValueError("power_down and power_up: expected both or neither")
        return self


def fill(words: Sequence[str], **values: str) -> Argv:
    """A command with its placeholders replaced, whole words or parts of one.

    Raises :class:`Unfit` for a value that is not what its name says.
    """
    checks = {"node": _NODE, "job": _JOB, "hertz": re.compile(r"[0-9]{1,12}"), "state": re.compile("on|off")}
    what = {
        "node": "the name of a node",
        "job": "the id of a job",
        "hertz": "a frequency",
        "state": "a state",
    }
    for key, value in values.items():
        matching(value, checks[key], what[key])
    return tuple(_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in words)


def capabilities(options: ActuatorOptions | None, *, drains: bool) -> frozenset[type[d.Decision]]:
    """What these actuators add. ``drains``: the adapter can take a node out of service."""
    found: set[type[d.Decision]] = set()
    if options is not None and options.set_frequency is not None:
        found.add(d.SetFrequency)
    if options is not None and options.power_down is not None and drains:
        found |= {d.PowerDown, d.PowerUp}
    return frozenset(found)


class Host(Protocol):
    """What the actuators need of their adapter."""

    def act(self, argv: Sequence[str], timeout: float) -> Result:
        """Run one command that changes something, on any thread. Raises :class:`Failure`."""

    def drain(self, node: str, reason: str) -> Argv:
        """The command that takes a node out of service; again: with another reason.

        Raises :class:`Failure` for a node that cannot be.
        """

    def undrain(self, node: str) -> Argv:
        """The command that puts it back."""

    def usable(self, node: str) -> bool:
        """Whether the batch system, at the last look, could start jobs there."""

    def poke(self) -> None:
        """Make the adapter call :meth:`Actuators.advance` soon. Called on any thread."""


@dataclass
class _Speed:
    """A job whose frequency is being set."""

    nodes: tuple[str, ...]
    #: The last wish that came meanwhile.
    next: d.SetFrequency | None = None


@dataclass
class _Changes:
    """What became of the actuators' work since it was last asked for."""

    events: list[ev.Event] = field(default_factory=list)
    #: Commands ran that a look under way may not have seen.
    acted: bool = False
    #: The power state of some node is another one.
    moved: bool = False


class Actuators:
    """The site's commands for frequencies and power."""

    def __init__(
        self,
        options: ActuatorOptions,
        host: Host,
        *,
        log: Any,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` tells the time in absolute seconds."""
        self.options = options
        self._host = host
        self._log = log
        self._clock = clock
        self._programs = Programs(
            lambda argv: host.act(argv, options.timeout), host.poke, parallel=options.parallel
        )
        #: Nodes that are not on because of us, and how they are.
        self.power: dict[str, str] = {}
        self._recalled: set[str] = set()
        self._speeds: dict[str, _Speed] = {}
        #: Jobs whose frequency was set, and where.
        self._slowed: dict[str, tuple[str, ...]] = {}
        self._said: set[tuple[str, ...]] = set()
        self._changes = _Changes()

    # ------------------------------------------------------------------ wishes

    def set_frequency(self, wish: d.SetFrequency, placement: Placement) -> str:
        """Set a running job's frequency; "" or why not. Whether it was done is told by an event."""
        nodes = tuple(node for node, _ in placement)
        try:
            commands = self._frequency_commands(wish, nodes)
        except Unfit as error:
            return str(error)
        if not nodes:
            return f"job {wish.job_id} runs on no known nodes"
        if self.options.dry:
            for argv in commands:
                self.say_dry(argv)
            return ""
        speed = self._speeds.get(wish.job_id)
        if speed is not None:
            speed.next = wish
        else:
            self._speeds[wish.job_id] = _Speed(nodes)
            self._programs.begin(self._set_frequency(wish, nodes, commands))
        return ""

    def remember_frequency(self, job_id: str, placement: Placement) -> None:
        """An earlier run set a running job's frequency: it is given back when the job ends."""
        self._slowed[job_id] = tuple(node for node, _ in placement)

    def job_ended(self, job_id: str) -> None:
        """Give the clock of a job's processors back, if it was set."""
        speed = self._speeds.get(job_id)
        if speed is not None:
            speed.next = None
        nodes = self._slowed.pop(job_id, ())
        if nodes and self.options.reset_frequency is not None:
            self._programs.begin(self._reset_frequency(job_id, nodes))

    def power_down(self, wish: d.PowerDown) -> str:
        """Put idle nodes to sleep; "" or why not."""
        if problem := _unfit(wish.nodes):
            return problem
        for node in wish.nodes:
            if self.power.get(node) == "waking":
                return f"node {node} is waking"
            try:
                self._host.drain(node, FALLING_ASLEEP)
            except Failure as error:
                return str(error)
        for node in wish.nodes:
            state = self.power.get(node)
            self._recalled.discard(node)
            if state is not None:
                continue
            if self.options.dry:
                assert self.options.power_down is not None
                self.say_dry(fill(self.options.power_down, node=node))
                continue
            self._move(node, "falling asleep")
            self._programs.begin(self._fall_asleep(node))
        return ""

    def power_up(self, wish: d.PowerUp) -> str:
        """Wake nodes; "" or why not."""
        if problem := _unfit(wish.nodes):
            return problem
        for node in wish.nodes:
            state = self.power.get(node)
            if state == "falling asleep":
                self._recalled.add(node)
            elif self.options.dry:
                assert self.options.power_up is not None
                self.say_dry(fill(self.options.power_up, node=node))
            elif state == "asleep":
                self._wake(node)
        return ""

    # ------------------------------------------------------------------ what the adapter shows

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over the nodes that an earlier run put to sleep."""
        for name, node in snapshot.nodes.items():
            state = next((state for mark, state in _MARKS.items() if mark in node.reason), None)
            if state is not None and not node.available:
                # Whether an interrupted power_down did its work is not known; waking puts it right.
                self.power[name] = "waking" if state == "waking" else "asleep"

    def go_on_waking(self) -> None:
        """Wake the nodes that an earlier run was waking."""
        for name, state in list(self.power.items()):
            if state == "waking" and not self.options.dry:
                self._log.info("a node is still being woken since the last run", node=name)
                self._wake(name)

    def show(self, snapshot: Snapshot) -> Snapshot:
        """What a look shows, with the power states that only we know.

        A node that sleeps is in order: that it is drained and silent is our doing.
        """
        if not self.power:
            return snapshot
        nodes, power = dict(snapshot.nodes), dict(snapshot.power)
        for name, state in self.power.items():
            node = nodes.get(name)
            if node is None:
                continue
            power[name] = state
            if not node.available:
                nodes[name] = msgspec.structs.replace(node, available=True, reason="")
        return replace(snapshot, nodes=nodes, power=power)

    def looked(self, snapshot: Snapshot) -> None:
        """See in a look, as the batch system gave it, which sleepers an administrator has taken."""
        for name, state in list(self.power.items()):
            node = snapshot.nodes.get(name)
            if node is None or state != "asleep":
                continue
            if node.available or (node.reason and OURS not in node.reason):
                said = "it is in service" if node.available else node.reason
                self._log.warning(
                    "a sleeping node was taken by another program or user", node=name, found=said
                )
                self._move(name, "on")

    # ------------------------------------------------------------------ driving

    def advance(self) -> _Changes:
        """Let every program go on that has what it waits for; what became of it all."""
        if self._programs.advance():
            self._changes.acted = True
        changes, self._changes = self._changes, _Changes()
        return changes

    @property
    def due(self) -> float | None:
        """Seconds from now until :meth:`advance` has something to do without being poked."""
        if self._changes.events or self._changes.moved or self._changes.acted:
            return 0.0
        return self._programs.due

    @property
    def busy(self) -> bool:
        """Whether anything is being carried out."""
        return bool(self._programs)

    def close(self) -> None:
        """Begin nothing more. The transport ends commands that run."""
        self._programs.close()

    # ------------------------------------------------------------------ the programs

    def _frequency_commands(self, wish: d.SetFrequency, nodes: Iterable[str]) -> list[Argv]:
        words = self.options.set_frequency
        if words is None:
            raise Unfit("cluster.options.actuators has no set_frequency")
        hertz = str(round(wish.frequency))
        return [fill(words, node=node, job=wish.job_id, hertz=hertz) for node in nodes]

    def _set_frequency(self, wish: d.SetFrequency, nodes: tuple[str, ...], commands: list[Argv]) -> Program:
        self._slowed[wish.job_id] = nodes
        answers = yield Run(commands)
        problems = [
            f"node {node}: {answer.problem}"
            for node, answer in zip(nodes, answers, strict=True)
            if answer.problem
        ]
        if problems:
            more = f" (and {len(problems) - 1} more nodes)" if len(problems) > 1 else ""
            self._refuse(wish, problems[0] + more)
        else:
            self._log.info("set a job's frequency", job=wish.job_id, hertz=round(wish.frequency))
            self._changes.events.append(ev.JobFrequencyChanged(self._clock(), wish.job_id, wish.frequency))
        following = self._speeds.pop(wish.job_id).next
        if following is not None:
            self.set_frequency(following, tuple((node, 0) for node in nodes))

    def _reset_frequency(self, job_id: str, nodes: tuple[str, ...]) -> Program:
        assert self.options.reset_frequency is not None
        words = self.options.reset_frequency
        answers = yield Run([fill(words, node=node, job=job_id) for node in nodes])
        for node, answer in zip(nodes, answers, strict=True):
            if answer.problem:
                self._log.warning(
                    "a frequency could not be given back", job=job_id, node=node, error=answer.problem
                )

    def _fall_asleep(self, node: str) -> Program:
        options = self.options
        assert options.power_down is not None
        problem = yield from run_one(self._host.drain(node, FALLING_ASLEEP))
        if not problem:
            problem = yield from run_one(fill(options.power_down, node=node))
            if not problem and options.confirm_power is not None:
                deadline = time.monotonic() + options.confirm_timeout
                while not (yield from self._is(node, "off")):
                    if time.monotonic() >= deadline:
                        problem = f"it is still on after {options.confirm_timeout:g} s"
                        break
                    yield Pause(options.confirm_interval)
            if problem:
                yield from run_one(self._host.undrain(node))
        if problem:
            self._recalled.discard(node)
            self._log.warning("a node does not fall asleep and stays in service", node=node, error=problem)
            # How it is now is shown by the next look.
            del self.power[node]
            self._refuse(d.PowerDown((node,)), f"node {node}: {problem}")
            return
        unmarked = yield from run_one(self._host.drain(node, ASLEEP))
        if unmarked:
            self._log.warning("a sleeping node could not be marked as sleeping", node=node, error=unmarked)
        self._log.info("a node sleeps", node=node)
        self._move(node, "asleep")
        if node in self._recalled:
            self._wake(node)

    def _wake(self, node: str) -> None:
        self._recalled.discard(node)
        self._move(node, "waking")
        self._programs.begin(self._wake_up(node))

    def _wake_up(self, node: str) -> Program:
        began = time.monotonic()
        yield from run_one(self._host.drain(node, WAKING))
        problem = yield from self._switched_on(node, began + self.options.wake_timeout)
        if not problem:
            problem = yield from run_one(self._host.undrain(node))
        while not problem and not self._host.usable(node):
            if time.monotonic() >= began + self.options.wake_timeout:
                problem = "the batch system does not report the node as usable"
            else:
                yield Pause(min(1.0, self.options.confirm_interval))
        if not problem:
            self._log.info("a node is awake", node=node, seconds=round(time.monotonic() - began, 1))
            self._move(node, "on")
            return
        reason = f"{OURS}did not wake within {self.options.wake_timeout:g} s"
        undrained = yield from run_one(self._host.drain(node, reason))
        if undrained:
            self._log.error("a node that does not wake could not be drained", node=node, error=undrained)
        self._log.error("a node does not wake; it is drained", node=node, error=problem)
        # That it is down is shown by the next look.
        del self.power[node]
        self._refuse(d.PowerUp((node,)), f"node {node}: {problem}")

    def _switched_on(self, node: str, deadline: float) -> Generator[Run | Pause, Any, str]:
        """Run power_up until it does not fail, then wait until the node is on; why not, or ""."""
        options = self.options
        assert options.power_up is not None
        while problem := (yield from run_one(fill(options.power_up, node=node))):
            if time.monotonic() + options.confirm_interval >= deadline:
                return problem
            self._log.warning("a node could not be woken; trying again", node=node, error=problem)
            yield Pause(options.confirm_interval)
        while options.confirm_power is not None and not (yield from self._is(node, "on")):
            if time.monotonic() >= deadline:
                return "confirm_power does not report the node as on"
            yield Pause(options.confirm_interval)
        return ""

    def _is(self, node: str, state: str) -> Generator[Run | Pause, Any, bool]:
        """Whether the node is certainly "on", or "off"."""
        words = self.options.confirm_power
        assert words is not None
        [answer] = yield Run([fill(words, node=node, state=state)])
        if answer.result is None or answer.result.unanswered:
            return False
        asks_state = any("{state}" in word for word in words)
        return answer.result.ok if asks_state or state == "on" else not answer.result.ok

    # ------------------------------------------------------------------ what is told

    def _move(self, node: str, state: str) -> None:
        if state == "on":
            self.power.pop(node, None)
        else:
            self.power[node] = state
        self._changes.moved = True
        self._host.poke()

    def _refuse(self, wish: d.AnyDecision, message: str) -> None:
        name = type(wish).__name__
        self._log.warning("an actuator failed", decision=name, error=message)
        self._changes.events.append(ev.DecisionFailed(self._clock(), wish, message))

    def say_dry(self, argv: Sequence[str]) -> None:
        """Log a command instead of running it, each once: a wish that is not carried out comes again."""
        if tuple(argv) not in self._said:
            self._said.add(tuple(argv))
            self._log.info("dry: would run", command=" ".join(argv))


def _unfit(nodes: Sequence[str]) -> str:
    if not nodes:
        return "no nodes are named"
    bad = next((node for node in nodes if _NODE.fullmatch(node) is None), None)
    return "" if bad is None else f"{bad!r} is not the name of a node"
