"""How `make test` hands its tests to the workers."""

from __future__ import annotations

from distribution import Group, in_turn


def test_every_group_has_one_turn() -> None:
    groups = [Group(f"g{n}", 1 + n % 5, long=n % 7 == 0) for n in range(50)]
    assert sorted(in_turn(groups)) == sorted(group.name for group in groups)


def test_what_takes_longest_begins_first() -> None:
    groups = [
        Group("small", 2), Group("torture", 1, long=True), Group("large", 50), Group("slow", 3, long=True),
    ]  # fmt: skip
    assert in_turn(groups) == ["slow", "torture", "large", "small"]


def test_the_order_does_not_hang_on_chance() -> None:
    groups = [Group(f"g{n}", 1) for n in range(40)]
    assert in_turn(groups) == [group.name for group in groups]
