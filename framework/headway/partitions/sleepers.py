"""The partitions' half of a bridge over nodes that sleep: power saving in the place of a control system.

A partition is a set of nodes; it is booted when all of them are on. Nothing wires them, so no two partitions
conflict: a node that several have wakes with the first that is created and sleeps with the last that is
destroyed. What there is of the bridge's rules beside that:

- ``create_partition``: CONFIGURING until all nodes are on, READY at once where they are. A node that does not
  wake, or that breaks: the boot has failed, and nodes that no other partition has go back to sleep.
- ``destroy_partition``: DEALLOCATING until every node that no other active partition has is asleep. A node
  that is waking is let come first: not all systems can send one back that is on its way.
- A node under a READY partition that is put to sleep without an order from here: CONFIGURING again.
- A node whose sleep is refused counts as given back. It is not ordered to sleep again before a partition has
  wanted it, or :meth:`Sleepers.may_sleep` says that the reason may be gone. The reason may be a foreign job,
  or no answer at all. Nothing tells these apart, so the caller lets a while pass and asks again.

No I/O: it is told what became of nodes, and :meth:`Sleepers.orders` says what is to be done, each order once.
So it serves whatever can wake nodes and put them to sleep: Slurm's power saving, a site's commands on PBS and
LSF, emulated nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway.partitions.bridge import (
    ACTIVE,
    Partition,
    PartitionSpec,
    PartitionState,
    Provisioner,
    Reply,
    Snapshot,
    Status,
)

_OK, _CHANGED = Reply(Status.OK), Reply(Status.OK, changed=True)
#: In one of these a partition wants its nodes to be on.
_WANTED = frozenset({PartitionState.CONFIGURING, PartitionState.READY, PartitionState.BUSY})
_UP, _DOWN = "up", "down"


class _Record:
    """A partition's record."""

    __slots__ = ("job", "message", "spec", "state")

    def __init__(self, spec: PartitionSpec) -> None:
        self.spec = spec
        self.state = PartitionState.FREE
        self.message = ""
        self.job = ""

    def shown(self) -> Partition:
        return Partition(self.spec, self.state, self.message, self.job)


class Sleepers(Provisioner):
    """Partitions of nodes that sleep and wake."""

    def __init__(
        self, nodes: Iterable[str], changed: Callable[[Partition], None] = lambda partition: None
    ) -> None:
        """``changed`` is told of each state that a partition comes to."""
        self._changed = changed
        self._nodes = dict.fromkeys(nodes)
        #: Power states of nodes that are not on.
        self._power: dict[str, str] = {}
        #: Nodes that cannot be used, and why.
        self._broken: dict[str, str] = {}
        #: What was ordered of a node and has not shown an effect.
        self._told: dict[str, str] = {}
        #: Nodes that are to sleep though they are in no partition that was destroyed.
        self._unwanted: set[str] = set()
        #: Nodes whose sleep was refused, until a partition wants them or they may be asked again.
        self._stay: set[str] = set()
        self._records: dict[str, _Record] = {}
        #: Something was told since the partitions' states were looked at last.
        self._news = False
        #: Something was told or asked since the orders were made last.
        self._asked = False

    # ------------------------------------------------------------------ what becomes of nodes

    def node_there(self, node: str) -> None:
        """A node is in order, and perhaps new."""
        self._nodes[node] = None
        self._broken.pop(node, None)
        self._news = self._asked = True

    def node_broken(self, node: str, reason: str) -> None:
        """A node cannot be used."""
        self._broken[node] = reason
        self._told.pop(node, None)
        self._news = self._asked = True

    def node_power(self, node: str, power: str) -> None:
        """A node is "on", "asleep", "falling asleep" or "waking"."""
        if power == "on":
            self._power.pop(node, None)
        else:
            self._power[node] = power
        told = self._told.get(node)
        if told == (_UP if power in ("on", "waking") else _DOWN):
            del self._told[node]
        self._news = self._asked = True

    def refused(self, nodes: Iterable[str]) -> None:
        """An order for these nodes was not carried out; one to wake is given again."""
        for node in nodes:
            if self._told.pop(node, None) == _DOWN:
                self._stay.add(node)
        self._news = self._asked = True

    def may_sleep(self, nodes: Iterable[str]) -> None:
        """Why the sleep of these was refused may no longer be so."""
        self._stay.difference_update(nodes)
        self._asked = True

    def occupy(self, partition: str, job: str) -> None:
        """A job is on a partition."""
        record = self._records[partition]
        record.job = job
        self._to(record, PartitionState.BUSY)

    def vacate(self, partition: str) -> None:
        """Its job is gone."""
        record = self._records[partition]
        record.job = ""
        if record.state is PartitionState.BUSY:
            self._to(record, PartitionState.READY)
            self._news = self._asked = True

    # ------------------------------------------------------------------ orders

    def leaving(self) -> list[str]:
        """Nodes that were ordered to sleep, whether they show it or not."""
        return [node for node, told in self._told.items() if told == _DOWN]

    def let_sleep(self, nodes: Iterable[str]) -> None:
        """These are in no partition, and need not be on."""
        self._unwanted.update(nodes)
        self._asked = self._asked or bool(self._unwanted)

    def orders(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The nodes that are to be woken now, and the nodes that are to be put to sleep, in order of
        nodes."""
        self._follow_nodes()
        if not self._asked:
            return (), ()
        self._asked = False
        wanted = self._wanted()
        left = {
            node
            for record in self._records.values()
            if record.state is PartitionState.DEALLOCATING
            for node in record.spec.nodes
        }
        left = (left | self._unwanted) - wanted
        self._unwanted.clear()
        wake = tuple(
            node
            for node in self._nodes
            if node in wanted
            and not self._is_on(node)
            and not self._coming(node)
            and node not in self._broken
        )
        sleep = tuple(node for node in self._nodes if node in left and self._can_sleep(node))
        self._told.update(dict.fromkeys(wake, _UP))
        self._told.update(dict.fromkeys(sleep, _DOWN))
        return wake, sleep

    def _wanted(self) -> set[str]:
        return {
            node for record in self._records.values() if record.state in _WANTED for node in record.spec.nodes
        }

    def _is_on(self, node: str) -> bool:
        return node not in self._power and self._told.get(node) is None

    def _coming(self, node: str) -> bool:
        return self._power.get(node) == "waking" or self._told.get(node) == _UP

    def _can_sleep(self, node: str) -> bool:
        return self._is_on(node) and node not in self._broken and node not in self._stay

    def _is_given_back(self, node: str, wanted: set[str]) -> bool:
        asleep = self._power.get(node) == "asleep" and node not in self._told
        return node in wanted or node in self._broken or node in self._stay or asleep

    # ------------------------------------------------------------------ states

    def _to(self, record: _Record, state: PartitionState, message: str = "") -> None:
        if record.state is not state:
            record.state = state
            record.message = message
            self._asked = True
            self._changed(record.shown())

    def _follow_nodes(self) -> None:
        """Take every partition where its nodes are."""
        if not self._news:
            return
        self._news = False
        for record in self._records.values():
            if record.state not in (PartitionState.CONFIGURING, PartitionState.READY):
                continue
            broken = [node for node in record.spec.nodes if node in self._broken]
            if broken:
                message = f"node {broken[0]}: {self._broken[broken[0]] or 'not usable'}"
                self._to(record, PartitionState.DEALLOCATING, message)
            else:
                on = all(map(self._is_on, record.spec.nodes))
                self._to(record, PartitionState.READY if on else PartitionState.CONFIGURING)
        wanted = self._wanted()
        for record in self._records.values():
            if record.state is PartitionState.DEALLOCATING and all(
                self._is_given_back(node, wanted) for node in record.spec.nodes
            ):
                self._to(record, PartitionState.FREE, record.message)

    # ------------------------------------------------------------------ the bridge

    def get_machine(self) -> Snapshot:
        self._follow_nodes()
        return Snapshot(
            tuple(self._nodes),
            frozenset(self._broken),
            tuple(record.shown() for record in self._records.values()),
            (),
        )

    def get_partition(self, partition: str) -> Partition | None:
        self._follow_nodes()
        record = self._records.get(partition)
        return record.shown() if record is not None else None

    def add_partition(self, spec: PartitionSpec) -> Reply:
        known = self._records.get(spec.id)
        if known is not None:
            if known.spec == spec:
                return _OK
            return Reply(Status.EXISTS, message=f"another partition {spec.id} exists")
        if spec.connection:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"no switch wires nodes as a {spec.connection}")
        strange = [node for node in spec.nodes if node not in self._nodes]
        if strange or not spec.nodes:
            return Reply(
                Status.NOT_FOUND, message=f"no node is called {strange[0]}" if strange else "no node"
            )
        self._records[spec.id] = _Record(spec)
        return _CHANGED

    def remove_partition(self, partition: str) -> Reply:
        self._follow_nodes()
        record = self._records.get(partition)
        if record is None:
            return _not_found(partition)
        if record.state is not PartitionState.FREE:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"partition {partition} is {record.state}")
        del self._records[partition]
        return _CHANGED

    def create_partition(self, partition: str) -> Reply:
        self._follow_nodes()
        record = self._records.get(partition)
        if record is None:
            return _not_found(partition)
        if record.state in _WANTED:
            return _OK
        if record.state is not PartitionState.FREE:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"partition {partition} is {record.state}")
        broken = [node for node in record.spec.nodes if node in self._broken]
        if broken:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"node {broken[0]}: {self._broken[broken[0]]}")
        self._stay.difference_update(record.spec.nodes)
        self._to(record, PartitionState.CONFIGURING)
        self._news = self._asked = True
        self._follow_nodes()
        return _CHANGED

    def destroy_partition(self, partition: str, *, force: bool = False) -> Reply:
        self._follow_nodes()
        record = self._records.get(partition)
        if record is None:
            return _not_found(partition)
        if record.state not in ACTIVE or record.state is PartitionState.DEALLOCATING:
            return _OK
        if record.state is PartitionState.BUSY and not force:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {record.job} is on partition {partition}")
        record.job = ""
        self._to(record, PartitionState.DEALLOCATING)
        self._news = self._asked = True
        self._follow_nodes()
        return _CHANGED


def _not_found(partition: str) -> Reply:
    return Reply(Status.NOT_FOUND, message=f"no partition is called {partition}")
