"""What a user can have in a letter commands no mailer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.decisions import Tell
from headway.errors import Failure
from headway.inputs.placeholders import filled
from headway.letters.letter import MOST_SUBJECT, MOST_TEXT, letter_of


@pytest.mark.parametrize(
    "user",
    [
        "", "-s", "-oQ/tmp", "--", "ann\n", "ann\nbcc: all", "a b", "ann,ben", "|sh", "/etc/passwd", "ann/x",
        "+box", "ann!host", "an\0n", "\u202eann", "<ann>", "ann;id", "$(id)", "`id`", "a'b", 'a"b', "@", ".",
        "ann%relay@host", "x" * 129, None, 7,
    ],
)  # fmt: skip
def test_a_name_that_could_be_something_else_to_a_mailer_is_refused(user):
    with pytest.raises(Failure, match=r"expected a user's name .*; found "):
        letter_of(Tell(user, "subject", "text"))


@pytest.mark.parametrize(
    "user", ["ann", "a", "_apt", "ann.b-c", "1000", "ann@REALM.ORG", "DOMAIN\\ann", "jürgen"]
)
def test_a_users_name_is_taken_as_it_is(user):
    assert letter_of(Tell(user, "s", "t")).user == user


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ("metajob m1 has lost a part", "metajob m1 has lost a part"),
        ("job x\nBcc: all@example.org\r\n\r\nbody", "job x Bcc: all@example.org body"),
        ("a\u2028Bcc: b\u0085c\vd\fe\x1cf\0g", "a Bcc: b c d e f g"),
        ("-s evil", "s evil"),
        ("- --x", "x"),
        ("\u202e-x", "x"),
        ("50 % of {user} in {subject} $(id) `id` ; | &", "50 % of {user} in {subject} $(id) `id` ; | &"),
        (" \n ", "(no subject)"),
        ("---", "(no subject)"),
        ("\ud800x", "x"),
        ("Grüße", "Grüße"),
    ],
)  # fmt: skip
def test_a_subject_is_one_printable_line_that_is_no_option(given, subject):
    assert letter_of(Tell("ann", given, "t")).subject == subject


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("two\nlines\twith a tab", "two\nlines\twith a tab\n"),
        ("~!id\n~r /etc/passwd", " ~!id\n ~r /etc/passwd\n"),
        ("before\n.\nbehind", "before\n .\nbehind\n"),
        (".profile", ".profile\n"),
        ("a\r\nb\rc\n\n", "a\nb\nc\n"),
        ("a\x1b[2Jb\0c", "a [2Jb c\n"),
        ("\ud800", "\n"),
        ("", "\n"),
    ],
)
def test_a_text_holds_no_command_of_a_mailer_and_no_control_character(given, text):
    assert letter_of(Tell("ann", "s", given)).text.decode() == text


def test_what_is_huge_is_cut_and_says_so():
    letter = letter_of(Tell("ann", "s" * 10**6, "\U0001f600" * 10**6))
    assert len(letter.subject) == MOST_SUBJECT and letter.subject.endswith("... (cut)")
    text = letter.text.decode()
    assert len(text) == MOST_TEXT + 1 and text.endswith("... (cut)\n")


@given(st.text(), st.text())
def test_whatever_is_written_a_letter_is_a_line_and_a_text_that_can_be_sent(subject, text):
    letter = letter_of(Tell("ann", subject, text))
    assert letter.subject.isprintable() and not letter.subject.startswith("-") and letter.subject
    lines = letter.text.decode().split("\n")
    assert not any(line.startswith("~") or line == "." for line in lines)
    assert all(c.isprintable() or c == "\t" for line in lines for c in line)


def test_a_placeholder_in_a_value_is_not_read_again():
    words = ["mail", "-s", "[headway] {subject}", "{user}", "{user}@{user}", "{}", "{other}"]
    assert filled(words, user="ann", subject="{user} {subject} \\1 %s") == [
        "mail", "-s", "[headway] {user} {subject} \\1 %s", "ann", "ann@ann", "{}", "{other}",
    ]  # fmt: skip
