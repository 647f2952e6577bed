"""Bounded room for many users: each has a share, and pushes out nothing but its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.serve.shares import Shares


def test_a_user_with_its_share_gives_up_its_own_oldest() -> None:
    shares: Shares[int] = Shares(most=100, most_each=2)
    shares.put("alice", "a", 1)
    for number in range(5):
        shares.put("mallory", number, number)
    assert [shares.get(key) for key in ("a", 2, 3, 4)] == [1, None, 3, 4]


def test_where_all_is_taken_the_user_with_most_gives_one_up() -> None:
    shares: Shares[int] = Shares(most=3, most_each=3)
    for user, key in (("alice", "a"), ("mallory", "b"), ("mallory", "c"), ("bob", "d")):
        shares.put(user, key, 0)
    assert [shares.get(key) for key in "abcd"] == [0, None, 0, 0]


def test_what_is_dropped_makes_room() -> None:
    shares: Shares[int] = Shares(most=2, most_each=1)
    shares.put("alice", "a", 1)
    shares.drop("a")
    shares.drop("a")
    assert shares.get("a") is None and shares.oldest() is None and len(shares) == 0
    shares.put("alice", "b", 2)
    assert shares.oldest() == ("b", 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_no_more_is_kept_than_may_be(done: list[tuple[str, bool]]) -> None:
    """And a user that is within its share loses nothing as long as there is room."""
    shares: Shares[str] = Shares(most=4, most_each=2)
    mine: dict[str, list[int]] = {}
    for number, (user, drops) in enumerate(done):
        if drops and (first := shares.oldest()) is not None:
            shares.drop(first[0])
        else:
            shares.put(user, number, user)
            mine.setdefault(user, []).append(number)
        there = {name: [n for n in numbers if shares.get(n) == name] for name, numbers in mine.items()}
        assert len(shares) == sum(map(len, there.values())) <= 4
        assert all(len(numbers) <= 2 for numbers in there.values())
