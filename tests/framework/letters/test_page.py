"""The script of docs/operators/letters.md keeps a letter's text from being read as headers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from waiting import HANG

from headway.config import parse_config
from headway.decisions import Tell
from headway.inputs.placeholders import filled
from headway.letters.letter import letter_of
from headway.letters.program import Program

PAGE = (Path(__file__).parents[3] / "docs" / "operators" / "letters.md").read_text(encoding="utf-8")


def test_the_configurations_of_the_page_load() -> None:
    shown = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [parse_config(text).letters.command[0] for text in shown] == ["mail", "/etc/headway/mail"]


def test_its_script_gives_a_mailer_the_headers_before_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    mailer = f'#!/bin/sh\necho "$*" > {tmp_path}/words\ncat > {tmp_path}/mail.txt\n'
    for name, text in (("mail", script), ("msmtp", mailer)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    letter = letter_of(Tell("ann", "100 %s\nCc: root", "Bcc: root\nis the text, %s"))
    words = filled([str(tmp_path / "mail"), "{user}", "{subject}"], user=letter.user, subject=letter.subject)
    Program().run(words, letter.text, HANG)
    headers, _, text = (tmp_path / "mail.txt").read_text().partition("\n\n")
    assert headers.splitlines() == [
        "To: ann", "Subject: 100 %s Cc: root", "Content-Type: text/plain; charset=utf-8",
    ]  # fmt: skip
    assert text == "Bcc: root\nis the text, %s\n" and (tmp_path / "words").read_text() == "-t\n"
