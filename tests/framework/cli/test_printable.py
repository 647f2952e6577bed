"""Nothing that users wrote commands the terminal of who reads it."""

from __future__ import annotations

import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from headway.cli.as_json import collecting
from headway.cli.common import console, say, wall_clock
from headway.cli.log_output import set_up_log
from headway.cli.printable import printable
from headway.config import LogConfig

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\udce9name"


@given(st.text())
def test_what_is_printed_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs" for c in shown)
    assert len(shown) == len(text)
    shown.encode()


@pytest.mark.parametrize("blank", ["\u202f", "\xa0", "\u2009", "\u3000"])
def test_blanks_of_any_width_stay(blank: str) -> None:
    assert printable(f"3{blank}241") == f"3{blank}241"


@pytest.mark.parametrize("line_end", ["\u2028", "\u2029", "\x85", "\r"])
def test_line_ends_of_other_kinds_do_not(line_end: str) -> None:
    assert line_end not in printable(f"a{line_end}b")


def test_sentences_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"Job {HOSTILE} waits.")
    table = Table("job")
    table.add_row(HOSTILE)
    console().print(table)
    out = capsys.readouterr().out
    assert out.count("name") == 2
    assert not set(out) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("terminal", ["", "1"])
def test_what_looks_like_markup_is_text(
    terminal: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", terminal)
    named = "[red]x[/red] [link=file:///etc/passwd]y[/link] :boom: [/] <b>"
    table = Table(f"account {named}", title=named)
    table.add_row(named)
    console().print(table)
    console().print(named)
    out = capsys.readouterr().out
    assert out.count(named) == 4
    assert "\x1b[31m" not in out and "\x1b]8" not in out
    with collecting(as_json=True):
        console().print(table)
    assert capsys.readouterr().out.count(named) == 3


@pytest.mark.parametrize("time", [258_352_051_501.0, 1e18, 1e300, -1e18])
def test_a_moment_that_no_calendar_has(time: float) -> None:
    """A job of ``sbatch -t 2147483647`` takes 4,083 years: who waits for two of them has no calendar."""
    assert wall_clock(time) == f"{time:.0f} s after 1970"
    assert wall_clock(0.0)[:4] in ("1969", "1970") and wall_clock(float("inf")) == "never"


@pytest.mark.parametrize("kind", ["console", "json"])
def test_the_log(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import structlog

    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    before = structlog.get_config()
    try:
        set_up_log(LogConfig(format=kind))
        structlog.get_logger("x").warning("odd", what=HOSTILE, job="\x1b[2J")
    finally:
        structlog.configure(**before)
    said = stream.getvalue()
    assert "name" in said and not set(said) & set("\x1b\x07\x9b\u202e")
