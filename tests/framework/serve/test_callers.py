"""Who asks: by a token, by a proxy, by a session, by the system; and nobody else."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.testclient import TestClient
from web import FromUid, Told
from web import client as client_of

from headway.serve.app import make_app
from headway.serve.callers import ALL, Proxy, Ways
from headway.serve.doors import doors
from headway.serve.jwts import SlurmTokens
from headway.serve.sessions import LASTS, Sessions
from headway.serve.source import Caller
from headway.serve.tokens import Tokens

SECRET = bytes(range(32))
NOBODY = pwd.getpwnam("nobody")
ROOT = pwd.getpwuid(0)
#: A user other than the user of this process.
OTHER = NOBODY if os.geteuid() != NOBODY.pw_uid else ROOT


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Site:
    """An interface, and what its source was asked."""

    ways: Ways
    told: Told = field(default_factory=Told)

    def client(self, uid: int | None = None, **headers: str) -> TestClient:
        app = make_app(self.told, self.ways, more=doors(self.ways))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client_of(app if uid is None else FromUid(app, uid), named)

    def known(self, asking: TestClient) -> Caller | None:
        """As whom a client is known; None: as nobody."""
        self.told.asked.clear()
        answer = asking.get("/v1/jobs")
        assert (answer.status_code == 200) == bool(self.told.asked)
        if not self.told.asked:
            assert answer.status_code in (401, 403)
            return None
        return self.told.asked[0][1]


def bearer(word: str) -> str:
    return f"Bearer {word}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(tmp_path: Path, clock: Clock) -> Site:
    key = tmp_path / "key"
    key.write_bytes(SECRET)
    key.chmod(0o600)
    proxy = Proxy("X-Remote-User", {OTHER.pw_name}, {"testclient"}, b"a word of the proxy's")
    ways = Ways(
        Tokens(tmp_path / "tokens"), SlurmTokens.by_secret(key), frozenset({"read"}), proxy,
        Sessions(clock=clock), clock,
    )  # fmt: skip
    return Site(ways)


@pytest.fixture
def plain(site: Site) -> Site:
    """Without a proxy."""
    site.ways.proxy = None
    return site


def token(site: Site, *scopes: str, seconds: float = 100.0) -> str:
    assert site.ways.tokens is not None
    return site.ways.tokens.create("alice", scopes or ("read",), site.ways.clock(), seconds)


def slurms(user: Any = "bob", **changed: Any) -> str:
    return jwt.encode({"sun": user, "exp": 4e9, **changed}, SECRET, "HS256")


def test_nobody_is_known_without_a_way(plain: Site) -> None:
    answer = plain.client().get("/v1/jobs")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert plain.known(plain.client(X_Remote_User="root")) is None


def test_a_token_is_its_user_with_its_scopes(plain: Site) -> None:
    word = token(plain, "read", "operator")
    assert plain.known(plain.client(Authorization=bearer(word))) == Caller(
        "alice", frozenset({"read", "operator"})
    )


def test_a_token_without_the_scope_reads_nothing(plain: Site) -> None:
    asking = plain.client(Authorization=bearer(token(plain, "user")))
    assert plain.known(asking) is None
    assert asking.get("/v1/jobs").status_code == 403


def test_a_token_that_is_over_or_revoked_is_nobodys(plain: Site, clock: Clock) -> None:
    first, second = token(plain, seconds=50.0), token(plain)
    asking = plain.client(Authorization=bearer(second))
    assert plain.known(asking) is not None
    clock.now += 60.0
    assert plain.known(plain.client(Authorization=bearer(first))) is None
    tokens = plain.ways.tokens
    assert tokens is not None
    tokens.revoke(tokens.all()[1].id, clock.now)
    assert plain.known(asking) is None


def test_a_clock_that_is_set_back_brings_no_more_than_the_time_back(plain: Site, clock: Clock) -> None:
    """What the clock says now counts: a token is over when it says so, and so is a session of it."""
    word = token(plain, seconds=50.0)
    asking = plain.client(Authorization=bearer(word))
    clock.now += 60.0
    assert plain.known(asking) is None
    clock.now -= 60.0
    assert plain.known(asking) is not None


@pytest.mark.parametrize(
    "said",
    ["", "Bearer", "Bearer ", "Bearer headway_", "Bearer headway_x", "Basic {}", "Bearer {} {}", "{}",
     "Bearer x{}", "Bearer {}x", "Bearer \x00"],
)  # fmt: skip
def test_a_wrong_word_is_nobodys_also_where_another_way_is_open(site: Site, said: str) -> None:
    word = token(site)
    asking = site.client(os.geteuid(), Authorization=said.format(word, word))
    assert site.known(asking) is None


def test_two_words_are_nobodys(plain: Site) -> None:
    word = bearer(token(plain))
    asking = plain.client()
    answer = asking.get("/v1/jobs", headers=[("Authorization", word), ("Authorization", word)])  # type: ignore[arg-type]
    assert answer.status_code == 401


def test_slurms_token_is_its_user(plain: Site) -> None:
    assert plain.known(plain.client(Authorization=bearer(slurms()))) == Caller("bob", frozenset({"read"}))
    assert plain.known(plain.client(Authorization=bearer(slurms(exp=5.0)))) is None
    for user in ("", "two words", "line\nfeed", "x" * 300, "zero\0"):
        assert plain.known(plain.client(Authorization=bearer(slurms(user)))) is None


def test_the_system_says_who_is_at_a_unix_socket(plain: Site) -> None:
    me = Caller(pwd.getpwuid(os.geteuid()).pw_name, ALL, itself=True)
    assert plain.known(plain.client(os.geteuid())) == me
    assert plain.known(plain.client(OTHER.pw_uid)) == Caller(OTHER.pw_name, ALL)
    assert plain.known(plain.client(3_999_999_999)) == Caller("uid:3999999999", ALL)


def test_a_header_of_a_users_own_names_nobody(site: Site) -> None:
    """Of a proxy that this is not."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    found = site.known(site.client(os.geteuid(), X_Remote_User="carol"))
    assert found is not None and found.user == me


def test_a_proxy_at_a_unix_socket_names_the_user(site: Site) -> None:
    assert site.known(site.client(OTHER.pw_uid, X_Remote_User="carol")) == Caller("carol", ALL)


@pytest.mark.parametrize("name", ["", "two words", "x" * 300])
def test_a_proxy_that_names_nobody_is_nobody(site: Site, name: str) -> None:
    assert site.known(site.client(OTHER.pw_uid)) is None
    assert site.known(site.client(OTHER.pw_uid, X_Remote_User=name)) is None
    both = [("X-Remote-User", "carol"), ("X-Remote-User", "root")]
    assert site.client(OTHER.pw_uid).get("/v1/jobs", headers=both).status_code == 401  # type: ignore[arg-type]


def test_a_proxy_at_an_address_brings_the_secret(site: Site) -> None:
    secret = {"X_Headway_Proxy_Secret": "a word of the proxy's"}
    assert site.known(site.client(X_Remote_User="carol", **secret)) == Caller("carol", ALL)
    assert site.known(site.client(X_Remote_User="carol")) is None
    assert site.known(site.client(X_Remote_User="carol", X_Headway_Proxy_Secret="another")) is None
    assert site.ways.proxy is not None
    site.ways.proxy = Proxy("X-Remote-User", (), {"10.0.0.1"}, b"a word of the proxy's")
    assert site.known(site.client(X_Remote_User="carol", **secret)) is None


# ---------------------------------------------------------------------- sessions


def test_a_link_lets_the_user_of_this_process_in_once(plain: Site) -> None:
    word = plain.ways.sessions.link(Caller("me", ALL, itself=True))
    asking = plain.client()
    answer = asking.get(f"/enter?word={word}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert plain.known(asking) == Caller("me", ALL, itself=True)
    assert plain.client().get(f"/enter?word={word}").status_code == 403
    assert plain.client().get("/enter").status_code == 403
    assert plain.client().get("/enter?word=x&word=y").status_code == 403


def test_a_session_ends_by_itself_and_by_its_user(plain: Site, clock: Clock) -> None:
    asking = plain.client()
    asking.get(f"/enter?word={plain.ways.sessions.link(Caller('me'))}")
    kept = dict(asking.cookies)
    clock.now += LASTS - 1
    assert plain.known(asking) is not None
    assert asking.delete("/v1/session", headers={"content-type": "application/json"}).status_code == 204
    assert plain.known(asking) is None
    stolen = plain.client()
    stolen.cookies.update(kept)
    assert plain.known(stolen) is None
    other = plain.client()
    other.get(f"/enter?word={plain.ways.sessions.link(Caller('me'))}")
    clock.now += LASTS + 1
    assert plain.known(other) is None


def begun(site: Site, word: str) -> TestClient:
    asking = site.client()
    headers = {"Authorization": bearer(word), "content-type": "application/json"}
    assert asking.post("/v1/session", headers=headers).status_code == 204
    return asking


def test_a_session_of_a_token_is_the_tokens(plain: Site, clock: Clock) -> None:
    word = token(plain)
    asking = begun(plain, word)
    assert plain.known(asking) == Caller("alice", frozenset({"read"}))
    clock.now += 101.0
    assert plain.known(asking) is None
    asking = begun(plain, token(plain))
    tokens = plain.ways.tokens
    assert tokens is not None
    tokens.revoke(tokens.all()[-1].id, clock.now)
    assert plain.known(asking) is None


def test_a_session_of_slurms_token_ends_with_it(plain: Site, clock: Clock) -> None:
    import time

    clock.now = time.time()
    asking = begun(plain, slurms(exp=clock.now + 60.0))
    assert plain.known(asking) == Caller("bob", frozenset({"read"}))
    clock.now += 61.0
    assert plain.known(asking) is None


def test_no_session_begins_without_a_token(plain: Site) -> None:
    asking = plain.client(os.geteuid())
    assert asking.post("/v1/session", json={}).status_code == 401
    wrong = {"Authorization": "Bearer headway_x"}
    assert asking.post("/v1/session", json={}, headers=wrong).status_code == 401


def test_a_token_beside_a_cookie_counts_alone(plain: Site) -> None:
    asking = plain.client()
    asking.get(f"/enter?word={plain.ways.sessions.link(Caller('me', ALL))}")
    asking.headers["Authorization"] = "Bearer headway_x"
    assert plain.known(asking) is None


def test_old_sessions_make_room(plain: Site) -> None:
    first = plain.ways.sessions.begin(Caller("me"))
    for _ in range(1000):
        last = plain.ways.sessions.begin(Caller("me"))
    assert plain.ways.sessions.find(first) is None
    assert plain.ways.sessions.find(last) is not None


def test_sessions_of_a_user_take_no_room_from_another(plain: Site) -> None:
    """A token begins as many as its user likes."""
    first = plain.ways.sessions.begin(Caller("me"))
    for _ in range(1100):
        plain.ways.sessions.begin(Caller("mallory"))
    assert plain.ways.sessions.find(first) is not None


def test_a_file_of_tokens_that_cannot_be_used_is_told_once(plain: Site, capsys: Any) -> None:
    asking = plain.client(Authorization=bearer(token(plain)))
    assert plain.ways.tokens is not None
    plain.ways.tokens.path.chmod(0o644)
    for _ in range(3):
        assert plain.known(asking) is None
    said = capsys.readouterr()
    assert (said.out + said.err).count("the tokens cannot be used") == 1
