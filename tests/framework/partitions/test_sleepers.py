"""The bridge over nodes that sleep: the dossier's sequences of partitions, as far as nothing is wired."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.partitions.bridge import ACTIVE, PartitionSpec, PartitionState, Status
from headway.partitions.sleepers import Sleepers

NODES = ("n1", "n2", "n3", "n4")
P1, P2 = PartitionSpec("P1", ("n1", "n2")), PartitionSpec("P2", ("n2", "n3"))
OK, INCOMPATIBLE, NOT_FOUND = Status.OK, Status.INCOMPATIBLE_STATE, Status.NOT_FOUND
FREE, CONFIGURING, READY, BUSY, DEALLOCATING = (
    PartitionState.FREE, PartitionState.CONFIGURING, PartitionState.READY, PartitionState.BUSY,
    PartitionState.DEALLOCATING,
)  # fmt: skip


class World:
    """All nodes asleep, and somebody who carries orders out when he is told to."""

    def __init__(self):
        self.seen = []
        self.it = Sleepers(NODES, lambda p: self.seen.append((p.spec.id, p.state)))
        for node in NODES:
            self.it.node_power(node, "asleep")
        self.power = dict.fromkeys(NODES, "asleep")
        for spec in (P1, P2):
            assert self.it.add_partition(spec).status is OK

    def state(self, name):
        return self.it.get_partition(name).state

    def tell(self, node, power):
        self.power[node] = power
        self.it.node_power(node, power)

    def carry_out(self):
        wake, sleep = self.it.orders()
        for node in wake:
            self.tell(node, "waking")
        for node in sleep:
            assert self.power[node] == "on", "only who is on is sent to sleep"
            self.tell(node, "falling asleep")
        return wake, sleep

    def arrive(self):
        for node, power in list(self.power.items()):
            self.tell(node, {"waking": "on", "falling asleep": "asleep"}.get(power, power))

    def boot(self, name):
        assert self.it.create_partition(name).ok
        self.carry_out()
        self.arrive()


def test_a_partition_is_ready_once_all_its_nodes_are_on():
    world = World()
    assert world.it.create_partition("P1").changed
    assert world.it.orders() == (("n1", "n2"), ())
    assert world.it.orders() == ((), ()), "each order is given once"
    world.tell("n1", "waking")
    world.tell("n1", "on")
    assert world.state("P1") is CONFIGURING
    world.tell("n2", "on")
    assert world.state("P1") is READY
    assert [state for _, state in world.seen] == [CONFIGURING, READY]


def test_where_nothing_was_told_or_asked_nobody_looks_at_the_nodes(monkeypatch):
    world = World()
    world.boot("P1")
    world.it.orders()
    looked = []
    monkeypatch.setattr(world.it, "_wanted", lambda: looked.append(True) or set())
    assert world.it.orders() == ((), ())
    assert not looked


def test_partitions_that_share_a_node_are_active_together_and_the_last_one_lets_it_sleep():
    world = World()
    world.boot("P1")
    assert world.it.create_partition("P2").ok
    assert world.carry_out() == (("n3",), ())
    world.arrive()
    assert world.it.destroy_partition("P1").ok
    assert world.carry_out() == ((), ("n1",))
    assert world.state("P1") is DEALLOCATING
    world.arrive()
    assert [world.state("P1"), world.state("P2")] == [FREE, READY]
    world.it.destroy_partition("P2")
    assert world.carry_out() == ((), ("n2", "n3"))


def test_what_is_wanted_again_before_it_was_ordered_to_sleep_stays_on():
    world = World()
    world.boot("P1")
    world.it.destroy_partition("P1")
    world.it.create_partition("P2")
    assert world.it.orders() == (("n3",), ("n1",))


def test_what_falls_asleep_and_is_wanted_again_is_recalled():
    world = World()
    world.boot("P1")
    world.it.destroy_partition("P1")
    world.it.orders()
    assert world.it.create_partition("P1").status is INCOMPATIBLE, "it is on its way to be free"
    world.it.create_partition("P2")
    assert world.it.orders() == (("n2", "n3"), ()), "also before the cluster shows that it falls asleep"
    world.tell("n2", "falling asleep")
    assert world.it.orders() == ((), ())
    world.tell("n2", "asleep")
    world.tell("n2", "waking")
    world.tell("n2", "on")
    world.tell("n3", "on")
    assert world.state("P2") is READY


def test_a_node_that_does_not_wake_is_a_failed_boot_and_the_others_sleep_again():
    world = World()
    world.it.create_partition("P1")
    world.carry_out()
    world.it.node_broken("n1", "did not wake in time")
    found = world.it.get_partition("P1")
    assert (found.state, found.message) == (DEALLOCATING, "node n1: did not wake in time")
    assert world.it.orders() == ((), ()), "who is waking is let come first"
    world.tell("n2", "on")
    assert world.it.orders() == ((), ("n2",))
    world.tell("n2", "asleep")
    assert world.it.get_partition("P1").message == "node n1: did not wake in time"
    assert world.state("P1") is FREE
    assert world.it.create_partition("P1").status is INCOMPATIBLE
    world.it.node_there("n1")
    assert world.it.create_partition("P1").ok


def test_a_refused_order_to_wake_is_given_again_and_a_refused_sleep_is_not():
    world = World()
    world.it.create_partition("P1")
    world.it.orders()
    world.it.refused(["n1"])
    assert world.it.orders() == (("n1",), ())
    for node in P1.nodes:
        world.tell(node, "on")
    world.it.destroy_partition("P1")
    assert world.it.orders() == ((), ("n1", "n2"))
    world.it.refused(["n1", "n2"])
    assert (world.it.orders(), world.state("P1")) == (((), ()), FREE)


def test_a_refused_sleep_is_ordered_again_once_the_reason_may_be_gone():
    world = World()
    world.tell("n4", "on")
    world.it.let_sleep(["n4"])
    assert world.it.orders() == ((), ("n4",))
    world.it.refused(["n4"])
    world.it.let_sleep(["n4"])
    assert world.it.orders() == ((), ()), "the same again would be refused again"
    world.it.may_sleep(["n4"])
    world.it.let_sleep(["n4"])
    assert world.it.orders() == ((), ("n4",))


def test_a_partition_with_a_job_is_not_destroyed_and_ready_after_it():
    world = World()
    world.boot("P1")
    world.it.occupy("P1", "J")
    assert world.it.destroy_partition("P1").status is INCOMPATIBLE
    assert (world.state("P1"), world.it.get_partition("P1").job) == (BUSY, "J")
    world.it.vacate("P1")
    assert world.state("P1") is READY
    assert world.it.destroy_partition("P1").changed


def test_a_node_that_somebody_puts_to_sleep_is_woken_again():
    world = World()
    world.boot("P1")
    world.tell("n1", "falling asleep")
    assert world.state("P1") is CONFIGURING
    assert world.it.orders() == (("n1",), ())


def test_nodes_in_no_partition_sleep_unless_somebody_wants_them():
    world = World()
    world.boot("P1")
    world.tell("n4", "on")
    world.it.let_sleep(["n1", "n4"])
    assert world.it.orders() == ((), ("n4",))
    assert world.it.leaving() == ["n4"]
    assert world.it.orders() == ((), ())


def test_calls_in_no_order_and_twice():
    it = Sleepers(NODES)
    assert it.get_partition("P1") is None
    assert {
        call("P1").status for call in (it.create_partition, it.destroy_partition, it.remove_partition)
    } == {NOT_FOUND}
    assert it.add_partition(P1).changed and it.add_partition(P1) == it.destroy_partition("P1")
    assert it.add_partition(PartitionSpec("P1", ("n3",))).status is Status.EXISTS
    assert it.add_partition(PartitionSpec("P9", ("n9",))).status is NOT_FOUND
    assert it.add_partition(PartitionSpec("P8", ("n1",), "torus")).status is INCOMPATIBLE
    it.create_partition("P1")
    assert it.create_partition("P1").status is OK and it.remove_partition("P1").status is INCOMPATIBLE
    it.destroy_partition("P1")
    assert not it.destroy_partition("P1").changed


PARTS = [
    PartitionSpec(f"P{a}{b}", tuple(f"n{k}" for k in range(a, b + 1))) for a in (1, 2, 3) for b in (3, 4)
]
STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "destroy", "orders", "arrive", "break", "mend"]), st.integers(0, 5)),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=150)
def test_nobody_sleeps_who_is_wanted_and_all_comes_to_rest(steps):
    world = World()
    for spec in PARTS:
        world.it.add_partition(spec)
    for what, which in steps:
        spec = PARTS[which]
        if what in ("create", "destroy"):
            getattr(world.it, f"{what}_partition")(spec.id)
        elif what == "orders":
            _, sleep = world.carry_out()
            active = [p for p in world.it.get_machine().partitions if p.state in (CONFIGURING, READY)]
            assert not set(sleep) & {node for p in active for node in p.spec.nodes}
        elif what == "arrive":
            world.arrive()
        elif what == "break":
            world.it.node_broken(f"n{which % 4 + 1}", "broken")
        else:
            world.it.node_there(f"n{which % 4 + 1}")
    for node in NODES:
        world.it.node_there(node)
    for _ in range(6):
        world.carry_out()
        world.arrive()
    states = {p.state for p in world.it.get_machine().partitions}
    assert states <= {FREE, READY}
    active = {node for p in world.it.get_machine().partitions if p.state in ACTIVE for node in p.spec.nodes}
    assert all(world.power[node] == "on" for node in active)


@pytest.mark.parametrize("spec", PARTS, ids=lambda spec: spec.id)
def test_all_is_asleep_again_in_the_end(spec):
    world = World()
    world.it.add_partition(spec)
    world.boot(spec.id)
    world.it.destroy_partition(spec.id)
    world.carry_out()
    world.arrive()
    assert set(world.power.values()) == {"asleep"}
