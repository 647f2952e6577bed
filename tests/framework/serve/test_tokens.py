"""Own tokens: kept as hashes, for a time, until they are revoked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from headway.errors import Failure, UserError
from headway.serve.tokens import KEPT, PREFIX, Token, Tokens


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "j.db.tokens")


def test_a_token_names_its_user_until_it_ends(tokens: Tokens) -> None:
    word = tokens.create("alice", ("read", "user"), 100.0, 50.0, "script")
    (kept,) = tokens.all()
    assert kept == Token(kept.id, "alice", ("read", "user"), 100.0, 150.0, "script")
    assert tokens.named(word, 149.9) == kept
    assert tokens.named(word, 150.0) is None
    assert tokens.still(kept.id, 149.9) == kept
    assert tokens.still(kept.id, 150.0) is None


def test_the_token_itself_is_kept_nowhere(tokens: Tokens, tmp_path: Path) -> None:
    word = tokens.create("alice", ("read",), 0.0, 9.0)
    assert word.startswith(PREFIX) and len(word) >= len(PREFIX) + 43
    assert [path.name for path in tmp_path.iterdir()] == ["j.db.tokens"]
    assert word.removeprefix(PREFIX) not in tokens.path.read_text()
    assert tokens.path.stat().st_mode & 0o777 == 0o600


def test_another_reader_sees_what_was_changed_at_once(tokens: Tokens) -> None:
    reader = Tokens(tokens.path)
    assert reader.named("headway_none", 0.0) is None
    word = tokens.create("alice", ("read",), 0.0, 9.0)
    found = reader.named(word, 0.0)
    assert found is not None
    tokens.revoke(found.id, 1.0)
    assert reader.named(word, 0.0) is None
    assert reader.still(found.id, 0.0) is None


def test_a_change_is_on_disk_before_it_is_told(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was revoked does not come back with a power cut: the file's new name is kept as well."""
    synced: list[tuple[str, list[float | None]]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append(("folder" if path.is_dir() else "file", [one.revoked for one in tokens.all()]))
        real(descriptor)

    tokens.create("alice", ("read",), 0.0, 9.0)
    (kept,) = tokens.all()
    monkeypatch.setattr(os, "fsync", fsync)
    tokens.revoke(kept.id, 1.0)
    assert synced == [("file", [None]), ("folder", [1.0])]


def test_no_token_is_lost_when_several_are_made_at_once(tokens: Tokens) -> None:
    threads = [
        Thread(target=lambda: Tokens(tokens.path).create("alice", ("read",), 0.0, 9.0)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.id for one in tokens.all()}) == 8


def test_what_is_not_there_cannot_be_revoked(tokens: Tokens) -> None:
    tokens.create("alice", ("read",), 0.0, 9.0)
    with pytest.raises(UserError, match="expected the id of a token, found 'none'"):
        tokens.revoke("none", 0.0)


def test_a_revoked_token_is_listed_and_nothing_of_its_word_is_kept(tokens: Tokens) -> None:
    word = tokens.create("alice", ("read",), 0.0, 9.0)
    (made,) = tokens.all()
    gone = tokens.revoke(made.id, 5.0)
    assert tokens.all() == (gone,) and (gone.id, gone.revoked, gone.over) == (made.id, 5.0, 5.0)
    assert json.loads(tokens.path.read_text())["tokens"][0]["hash"] == ""
    # Nor does it come back with the clock.
    assert tokens.named(word, 1.0) is None and tokens.still(made.id, 1.0) is None
    with pytest.raises(UserError, match="was revoked before"):
        tokens.revoke(made.id, 6.0)


def test_tokens_that_are_over_are_removed_some_time_after(tokens: Tokens) -> None:
    """By what changes the file anyway: yesterday's are still there to be listed."""
    tokens.create("long over", ("read",), 0.0, 9.0)
    tokens.create("revoked", ("read",), 0.0, 10 * KEPT)
    tokens.create("yesterday", ("read",), KEPT, 9.0)
    tokens.create("holds", ("read",), 0.0, 10 * KEPT)
    tokens.revoke(tokens.all()[1].id, 9.0)
    assert len(tokens.all()) == 4
    tokens.create("new", ("read",), KEPT + 9.0, 9.0)
    assert [one.user for one in tokens.all()] == ["yesterday", "holds", "new"]


def test_tokens_that_are_over_are_removed_when_told(tokens: Tokens) -> None:
    for user, seconds in (("first", 5.0), ("second", 50.0), ("holds", 500.0)):
        tokens.create(user, ("read",), 0.0, seconds)
    assert [one.user for one in tokens.prune(60.0, 20.0)] == ["first"]
    assert [one.user for one in tokens.prune(60.0, 0.0)] == ["second"]
    stood = tokens.path.stat().st_ino
    assert tokens.prune(60.0, 0.0) == ()
    assert [one.user for one in tokens.all()] == ["holds"] and tokens.path.stat().st_ino == stood


def test_nothing_is_made_where_nothing_is_pruned(tokens: Tokens) -> None:
    assert tokens.prune(0.0, 0.0) == () and not tokens.path.exists()


def test_no_token_is_lost_when_others_are_pruned_at_once(tokens: Tokens) -> None:
    def make(number: int) -> None:
        Tokens(tokens.path).create(f"user{number}", ("read",), 100.0, 9.0)
        Tokens(tokens.path).prune(100.0, 0.0)

    for number in range(8):
        tokens.create(f"over{number}", ("read",), 0.0, 9.0)
    threads = [Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.user for one in tokens.all()) == [f"user{number}" for number in range(8)]


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_others_reach_lets_nobody_in(tokens: Tokens, mode: int) -> None:
    word = tokens.create("alice", ("read",), 0.0, 9.0)
    tokens.path.chmod(mode)
    with pytest.raises(Failure, match="expected the mode 0600"):
        tokens.named(word, 0.0)


@pytest.mark.parametrize("text", ["", "[]", '{"tokens": 3}', '{"tokens": [{"hash": "x"}]}'])
def test_a_damaged_file_lets_nobody_in(tokens: Tokens, text: str) -> None:
    word = tokens.create("alice", ("read",), 0.0, 9.0)
    assert tokens.named(word, 0.0) is not None
    tokens.path.write_text(text)
    for _ in range(2):
        with pytest.raises(Failure, match="expected tokens as `headway token` writes them"):
            tokens.named(word, 0.0)


def test_a_link_in_the_place_of_the_file_is_not_followed(tokens: Tokens, tmp_path: Path) -> None:
    other = Tokens(tmp_path / "other")
    word = other.create("root", ("operator",), 0.0, 9.0)
    tokens.path.symlink_to(other.path)
    with pytest.raises(Failure, match="cannot be read"):
        tokens.named(word, 0.0)


def test_a_hash_is_no_token(tokens: Tokens) -> None:
    tokens.create("alice", ("read",), 0.0, 9.0)
    kept = json.loads(tokens.path.read_text())["tokens"][0]
    assert tokens.named(kept["hash"], 0.0) is None
    assert tokens.named(kept["token"]["id"], 0.0) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_what_root_makes_is_the_folders_users(tokens: Tokens, tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    tokens.create("alice", ("read",), 0.0, 9.0)
    assert tokens.path.stat().st_uid == 65534
    assert tokens.path.stat().st_mode & 0o777 == 0o600
