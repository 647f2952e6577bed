"""A job's word that it can be signalled holds for the execution that gave it, and for no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from building import described

from headway.adapter.migration import Move
from headway.errors import Failure
from headway_plugins.migration.images import Images
from headway_plugins.migration.ready import Ready

HERE, THERE = (("n1", 1),), (("n2", 1),)
#: When the first execution began, absolute seconds.
BEGAN = 1_000_000.0


def move(restarts: int, start: float | None) -> Move:
    return Move(described("7", 1), HERE, THERE, restarts, start=start)


@pytest.fixture
def images(tmp_path: Path) -> Images:
    images = Images(tmp_path, method="test")
    images.prepare("7", "")
    return images


def say(images: Images, when: float, text: str = "") -> None:
    path = images.place("7") / "ready"
    path.write_text(text)
    os.utime(path, (when, when))


def test_it_is_not_taken_for_the_next_executions_even_by_the_next_daemon(images: Images) -> None:
    """The next begins within the second that batch systems are unsure of."""
    say(images, BEGAN + 0.2)
    Ready(images, "ready").accept(move(0, BEGAN))
    again = Ready(images, "ready")
    again.accept(move(0, BEGAN))
    with pytest.raises(Failure, match="is not of this execution"):
        again.accept(move(1, BEGAN + 1.0))
    say(images, BEGAN + 1.5)
    again.accept(move(1, BEGAN + 1.0))


def test_it_is_not_either_where_restarts_are_not_counted(images: Images) -> None:
    say(images, BEGAN + 0.2)
    ready = Ready(images, "ready")
    ready.accept(move(0, BEGAN))
    with pytest.raises(Failure, match="is not of this execution"):
        ready.accept(move(0, BEGAN + 1.0))
    # A batch system may tell a start more exactly later.
    ready.accept(move(0, BEGAN + 0.5))


def test_one_that_says_which_execution_it_is_of_needs_not_have_been_accepted_before(images: Images) -> None:
    ready = Ready(images, "ready")
    say(images, BEGAN + 0.2, "0\n")
    with pytest.raises(Failure, match="expected 1 restarts, found 0"):
        ready.accept(move(1, BEGAN + 1.0))
    say(images, BEGAN + 1.2, "1\n")
    ready.accept(move(1, BEGAN + 1.0))
    # A text that is no number says nothing.
    say(images, BEGAN + 1.2, "I can be signalled")
    ready.accept(move(1, BEGAN + 1.0))


def test_one_that_is_older_than_the_execution_or_no_plain_file_is_none(images: Images) -> None:
    ready = Ready(images, "ready")
    say(images, BEGAN - 2.0)
    with pytest.raises(Failure, match="is not of this execution"):
        ready.accept(move(0, BEGAN))
    ready.withdraw("7")
    with pytest.raises(Failure, match="has not said"):
        ready.accept(move(0, BEGAN))
    (images.place("7") / "ready").mkdir()
    with pytest.raises(Failure, match="expected a plain file"):
        ready.accept(move(0, BEGAN))
    (images.place("7") / "ready").rmdir()
    (images.place("7") / "ready").symlink_to("/dev/null")
    with pytest.raises(Failure, match="has not said"):
        ready.accept(move(0, BEGAN))


def test_what_is_remembered_goes_with_the_image(images: Images) -> None:
    say(images, BEGAN)
    Ready(images, "ready").accept(move(0, BEGAN))
    assert images.record("7", "ready").exists()
    images.discard("7")
    assert not images.record("7", "ready").exists()
