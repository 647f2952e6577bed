"""How `make test` hands its tests to the workers."""

from __future__ import annotations

from itertools import pairwise

from distribution import REAL_UNTIL, Group, in_turn


def test_every_group_has_one_turn() -> None:
    groups = [Group(f"g{n}", 1 + n % 5, real=n % 3 == 0, long=n % 7 == 0) for n in range(50)]
    assert sorted(in_turn(groups)) == sorted(group.name for group in groups)


def test_real_systems_are_spread_among_what_computes() -> None:
    groups = [Group(f"r{n}", 5, real=True) for n in range(10)] + [
        Group(f"f{n}", 5, real=False) for n in range(100)
    ]
    turns = in_turn(groups)
    real = [at for at, name in enumerate(turns) if name.startswith("r")]
    assert real[0] == 0
    assert {later - earlier for earlier, later in pairwise(real)} <= {8, 9}
    assert real[-1] < REAL_UNTIL * len(turns), "a run does not end with a test that waits"


def test_what_takes_longest_begins_first() -> None:
    groups = [
        Group("small", 2, real=True), Group("torture", 1, real=True, long=True),
        Group("large", 50, real=True), Group("quick", 100, real=False),
        Group("slow", 1, real=False, long=True),
    ]  # fmt: skip
    turns = in_turn(groups)
    assert [name for name in turns if name in ("small", "torture", "large")] == ["large", "torture", "small"]
    assert [name for name in turns if name in ("quick", "slow")] == ["slow", "quick"]


def test_the_order_does_not_hang_on_chance() -> None:
    groups = [Group(f"g{n}", 1, real=n % 2 == 0) for n in range(40)]
    assert in_turn(groups) == in_turn(list(groups))
    assert [name for name in in_turn(groups) if int(name[1:]) % 2] == [f"g{n}" for n in range(1, 40, 2)]


def test_one_kind_alone() -> None:
    assert in_turn([]) == []
    assert in_turn([Group("a", 1, real=True)]) == ["a"]
    assert in_turn([Group("b", 1, real=False)]) == ["b"]
