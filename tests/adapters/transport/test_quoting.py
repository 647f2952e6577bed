"""Words as one line of a shell: every shell gives back the words that went in."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.errors import Failure
from headway_adapters.transport.quoting import LONGEST, quote

#: What a program is told: anything but NUL; ill-formed bytes arrive as lone surrogates.
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)
BYTES = (
    st.binary(max_size=30).filter(lambda b: 0 not in b).map(lambda b: b.decode("utf-8", "surrogateescape"))
)
SHELLS = [path for name in ("sh", "bash", "dash", "zsh", "ksh") if (path := shutil.which(name))]


def through(shell: str, argv: list[str]) -> list[str]:
    """The words that a program gets when a shell reads the line."""
    line = b"printf '%s\\0' " + quote(argv)
    done = subprocess.run([shell, "-c", line], capture_output=True, check=True, env={})
    return [word.decode("utf-8", "surrogateescape") for word in done.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["squeue", "--json", "-a"], "squeue --json -a"),
        (["env", "TZ=UTC"], "env 'TZ=UTC'"),
        (["x", ""], "x ''"),
        (["x", "a b"], "x 'a b'"),
        (["x", "it's"], "x 'it'\"'\"'s'"),
        (["x", "$(reboot)", "`reboot`", ";reboot"], "x '$(reboot)' '`reboot`' ';reboot'"),
        (["x", "~", "*", "!!", "#"], "x '~' '*' '!!' '#'"),
        (["x", "a\nb"], "x 'a\nb'"),
        (["x", "größe"], "x 'größe'"),
        # zsh takes this for the path of ls.
        (["x", "=ls"], "x '=ls'"),
    ],
)
def test_vectors(argv: list[str], line: str) -> None:
    assert quote(argv).decode() == line
    assert shlex.split(line) == argv


@pytest.mark.parametrize("shell", SHELLS)
@given(st.lists(WORDS | BYTES, min_size=1, max_size=8))
@example(
    ["a'b\"c", "\n", "\\", "$HOME", "`id`", "-n", "!!", "ü", "\udcff\udc80", "a\\'b", "''", '"', "%s\\n"]
)
@settings(max_examples=60, deadline=None)
def test_a_real_shell_gives_the_same_words_back(shell: str, argv: list[str]) -> None:
    assert through(shell, argv) == argv


@given(st.lists(WORDS, min_size=1, max_size=8))
def test_words_are_those_of_a_posix_parser(argv: list[str]) -> None:
    assert shlex.split(quote(argv).decode("utf-8", "surrogateescape")) == argv


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "empty command"),
        (["scancel", "1\0;reboot"], "NUL"),
        (["x", "\ud800"], "cannot be encoded"),
        (["x", "a" * LONGEST], "more than"),
    ],
)
def test_what_cannot_be_said_is_refused(argv: list[str], said: str) -> None:
    with pytest.raises(Failure, match=said):
        quote(argv)


def test_the_longest_line_is_taken_by_the_shell() -> None:
    argv = ["a" * (LONGEST - 10)]
    assert through("/bin/sh", argv) == argv
