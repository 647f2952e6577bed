"""``headway token``: a token is shown once, listed without its word, and revoked."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from commandline import Headway

from headway.serve.tokens import Tokens


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(f"journal: {tmp_path / 'j.db'}\n")
    return path


def test_a_token_from_its_making_to_its_end(headway: Headway, config: Path) -> None:
    made = headway("token", "create", "--user", "alice", "--scope", "read", "--name", "script", "-c", config)
    word = made.out.strip()
    assert made.code == 0 and "only time" in made.err
    found = Tokens(config.parent / "j.db.tokens").named(word, 0.0)
    assert found is not None and (found.user, found.scopes) == ("alice", ("read",))
    assert round(found.expires - found.created) == 30 * 86400
    listed = headway("token", "list", "-c", config)
    assert found.id in listed.out and "alice" in listed.out and word not in listed.out
    told = json.loads(headway("token", "list", "--json", "-c", config).out)
    assert [one["id"] for one in told["tokens"]] == [found.id]
    assert headway("token", "revoke", found.id, "-c", config).code == 0
    assert "revoked 2" in headway("token", "list", "-c", config).out
    assert headway("token", "prune", "-c", config).out.strip() == "no tokens are removed"


def test_what_was_pruned_is_told(headway: Headway, config: Path) -> None:
    tokens = Tokens(config.parent / "j.db.tokens")
    for day in range(40, 0, -1):
        tokens.create("alice", ("read",), time.time() - day * 86400.0, 3600.0, f"{day} days ago")
    first, *_, last = tokens.all()
    assert (first.name, last.name) == ("31 days ago", "1 days ago")
    pruned = headway("token", "prune", "-c", config).out
    assert f"{first.id}  alice" in pruned and "1 token removed" in pruned and last.id not in pruned
    told = json.loads(headway("token", "prune", "--over", "1h", "--json", "-c", config).out)
    assert len(told["tokens"]) == 29 + 1
    assert headway("token", "list", "-c", config).out.strip() == "no tokens"


def test_as_json_it_is_one_line_on_standard_output(headway: Headway, config: Path) -> None:
    made = headway("token", "create", "--user", "alice", "--json", "-c", config)
    assert json.loads(made.out)["token"].startswith("headway_")
    assert made.err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create"], "--user"),
        (["create", "--user", ""], "expected a name"),
        (["create", "--user", "a\nb"], "expected a name"),
        (["create", "--user", "alice", "--name", "x" * 300], "expected a name"),
        (["create", "--user", "alice", "--scope", "all"], "--scope"),
        (["create", "--user", "alice", "--for", "100000d"], "ten years"),
        (["revoke", "none"], "found 'none'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(headway: Headway, config: Path, words: list[str], said: str) -> None:
    ran = headway("token", *words, "-c", config)
    assert ran.code == 2 and said in ran.err
    assert not (config.parent / "j.db.tokens").exists()


def test_a_journal_that_is_no_file_needs_a_path(headway: Headway, config: Path) -> None:
    config.write_text("journal: postgresql://host/headway\n")
    ran = headway("token", "list", "-c", config)
    assert ran.code == 2 and "serve.tokens: expected a path" in ran.err
