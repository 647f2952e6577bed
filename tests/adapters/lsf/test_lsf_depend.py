"""Dependency conditions, judged on a listing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model import Dependency
from headway_adapters.lsf import depend
from headway_adapters.lsf.depend import DONE, EXITED, PENDING, STARTED, Condition, Known


def listed() -> depend.Jobs:
    return depend.Jobs(
        (
            Known("1", "alice", "prep", DONE, 0),
            Known("2", "alice", "bad", EXITED, 3),
            Known("3", "alice", "run1", STARTED),
            Known("4", "alice", "run2", PENDING),
            Known("5", "alice", "run2", PENDING, held=True),
            Known("6", "bob", "run1", DONE, 0),
            Known("7[1]", "alice", "arr[1]", DONE, 0, array="7", index=1),
            Known("7[2]", "alice", "arr[2]", STARTED, array="7", index=2),
            Known("7[3]", "alice", "arr[3]", PENDING, array="7", index=3),
            Known("8", "alice", "123", PENDING),
        )
    )


def judged(text: str, index: int | None = None, user: str = "alice") -> Condition:
    return depend.judge(text, listed(), user=user, index=index)


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "done(1)", 'done("prep")', "prep", "1", "ended(2)", "exit(2)", "exit(2,3)", "exit(2,>2)",
        "exit(2, != 0)", "started(3)", "started(1)", "done(1) && ended(2)", "done(3) || done(1)", "!done(4)",
        "(done(1))", "done(7[1])", 'done("arr[1]")', "numdone(7, 1)", "numended(7, >= 1)", "numrun(7,1)",
        "numpend(7[*], < 2)", "!(done(3) && done(4))", "started(7[2])",
    ],
)  # fmt: skip
def test_what_is_met_falls_away(text: str) -> None:
    assert judged(text) == depend.FREE


@pytest.mark.parametrize(
    ("text", "dependencies", "either"),
    [
        ("done(3)", [("completed", "3")], False),
        ('done("run1")', [("completed", "3")], False),
        ("run1", [("completed", "3")], False),
        ("ended(3)", [("ended", "3")], False),
        ("exit(3)", [("failed", "3")], False),
        ("started(4)", [("started", "4")], False),
        ("done(1) && done(3)", [("completed", "3")], False),
        ("done(3) && ended(4)", [("completed", "3"), ("ended", "4")], False),
        ("done(3) || ended(4)", [("completed", "3"), ("ended", "4")], True),
        ('done("run2")', [("completed", "4"), ("completed", "5")], False),
        ('done("run*")', [("completed", "3"), ("completed", "4"), ("completed", "5")], False),
        ("done(7)", [("completed", "7[2]"), ("completed", "7[3]")], False),
        ("done(7[*])", [("completed", "7[2]"), ("completed", "7[3]")], False),
        ("done(2)", [("completed", "2")], False),
        ('done("123")', [("completed", "8")], False),
        ("(done(1) && done(3)) || done(4)", [("completed", "3"), ("completed", "4")], True),
    ],
)
def test_what_is_left_are_dependencies(text: str, dependencies: list[tuple[str, str]], either: bool) -> None:
    found = judged(text)
    assert found.dependencies == tuple(Dependency(*each) for each in dependencies)
    assert (found.either, found.held) == (either, False)
    assert "is not met" in found.waits


def test_elements_of_arrays_depend_element_by_element() -> None:
    assert judged("done(7[*])", index=1) == depend.FREE
    assert judged('done("arr[*]")', index=2).dependencies == (Dependency("completed", "7[2]"),)


def test_a_name_means_ones_own_jobs() -> None:
    assert judged('done("run1")', user="bob") == depend.FREE
    assert judged('done("prep")', user="bob").held


@pytest.mark.parametrize(
    "text",
    [
        "done(99)", 'done("nobody")', "post_done(1)", "external(1, ready)", "done(", "done(1) &&", "&&",
        "done(1))",
        "exit(2,x)", "numdone(99, 1)", "numdone(7)", "numdone(7, x)", "(" * 200 + "done(1)" + ")" * 200,
        "!!done(99)", 'done("x', "done(1) done(2)", "frob(1)",
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_never_met(text: str) -> None:
    found = judged(text)
    assert found.held and "cannot be judged" in found.waits and not found.dependencies


@pytest.mark.parametrize(
    "text",
    ["!done(1)", "exit(2,4)", "numdone(7,*)", "done(3) && (done(4) || ended(5))", "!started(3) && done(4)"],
)
def test_what_dependencies_cannot_say_is_judged_again_at_the_next_look(text: str) -> None:
    found = judged(text)
    assert found.held and "is not met" in found.waits and not found.dependencies


@given(
    st.text(max_size=60) | st.from_regex(r"(done|exit|ended)\([0-9a-z\[\]*\",<> ]{0,12}\)", fullmatch=True)
)
def test_no_text_breaks_the_judgement(text: str) -> None:
    found = judged(text)
    assert not (found.held and found.dependencies)
    assert bool(found.waits) == (found != depend.FREE)
