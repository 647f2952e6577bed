"""A journal in a folder that the user may not look into, as an operator's unit makes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.cli import check, explain
from headway.errors import HeadwayError
from headway.journal import Journal

NOBODY = 65534


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[str]:
    """A journal in such a folder. (What is needed is loaded by now: the user may not be able to load it.)"""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    path = str(closed / "journal.db")
    with pytest.raises(HeadwayError):
        Journal.open(path, create=False, read_only=True)
    Path(path).touch()
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    else:
        closed.chmod(0)
    yield path
    os.seteuid(user)
    closed.chmod(0o700)


def test_a_user_is_told_that_the_journal_cannot_be_read(journal: str) -> None:
    lines, failure = explain._history(journal, "7", needed=True)
    assert "cannot be read: Permission denied" in lines[0] and failure == ""


def test_it_is_a_check_that_fails_and_no_end_of_the_checks(journal: str) -> None:
    found = check._journal(journal)
    assert not found.ok and "cannot be read: Permission denied" in found.detail
