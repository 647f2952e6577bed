"""What users write about their jobs: the words for headway, and the rest for plugins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.polling.marks import is_mark, marks
from headway_adapters.polling.remarks import LONGEST, noted, remarks, with_note


@pytest.mark.parametrize(
    ("text", "words", "rest"),
    [
        ("", [], ""),
        ("headway:dedicated", ["dedicated"], ""),
        ("headway:dedicated,malleable", ["dedicated", "malleable"], ""),
        ("headway:malleable scopred:app=ft;N=3", ["malleable"], "scopred:app=ft;N=3"),
        ("scopred:app=ft;N=3 and more", [], "scopred:app=ft;N=3 and more"),
        ("headway:job=a b, stage=2", ["job=a b", " stage=2"], ""),
        ("not headway:dedicated", [], "not headway:dedicated"),
        ("x" * 5000, [], "x" * LONGEST),
    ],
)
def test_words_and_rest(text, words, rest):
    assert remarks(text) == (words, rest)


def test_notes_stand_behind_what_the_user_wrote_and_are_taken_off_again():
    text = with_note(with_note("scopred:app=ft;N=3", "protect", "a=b"), "took", "a:1:2")
    assert text == "scopred:app=ft;N=3 headway-protect:a=b headway-took:a:1:2"
    assert noted(text) == ("scopred:app=ft;N=3", {"protect": "a=b", "took": "a:1:2"})
    assert noted(with_note(text, "protect", "c")) == ("scopred:app=ft;N=3", {"protect": "c", "took": "a:1:2"})
    assert noted(with_note("", "protect", "c")) == ("", {"protect": "c"})
    assert noted("headway:dedicated not-headway-x:1") == ("headway:dedicated not-headway-x:1", {})


@pytest.mark.parametrize(
    ("words", "attributes"),
    [
        (["deadline=1700000000"], {"deadline": 1.7e9}),
        (["deadline=2023-11-14T22:13:20"], {"deadline": 1.7e9}),
        (["deadline=2023-11-14T23:13:20+01:00"], {"deadline": 1.7e9}),
        (["deadline=soon"], {"deadline": "soon"}),
        (["bytes=5e9", "encryption=0.7-1.0"], {"security": {"bytes": 5e9, "encryption": [0.7, 1.0]}}),
        (["integrity=0.9"], {"security": {"integrity": [0.9, 0.9]}}),
        (["authentication=high", "bytes=all"], {"security": {"authentication": "high", "bytes": "all"}}),
        (["deadline=nan"], {"deadline": "nan"}),
        (["deadline=-inf", "bytes=1e999"], {"deadline": "-inf", "security": {"bytes": "1e999"}}),
        (["encryption=nan-nan"], {"security": {"encryption": "nan-nan"}}),
        (["job=nan", "stage=1", "reward=inf"], {"window": {"job": "nan", "stage": 1, "reward": "inf"}}),
    ],
)
def test_deadlines_and_security_levels(words, attributes):
    assert marks(words) == attributes


def test_attributes_that_the_configuration_names_can_be_said():
    said = ["saves-itself", "kind=long", "saves_itself", "moldable"]
    assert marks(said, {"saves-itself", "kind", "moldable"}) == {
        "saves-itself": True, "kind": "long", "moldable": True, "unread": ["saves_itself"],
    }  # fmt: skip
    assert is_mark("saves-itself", {"saves-itself"}) and not is_mark("saves-itself")


def test_words_that_nothing_reads_are_named():
    assert marks(["dedline=5", " bytes=1", "encrypt", ""]) == {
        "security": {"bytes": 1.0}, "unread": ["dedline=5", "encrypt"],
    }  # fmt: skip


@given(
    st.lists(st.text(max_size=20) | st.from_regex(r"(deadline|bytes|integrity|stage)=.{0,30}"), max_size=4)
)
def test_whatever_is_written_reads_alike_twice(words):
    # What is read otherwise each time would count as a change of the job at every look.
    assert marks(words) == marks(words)
