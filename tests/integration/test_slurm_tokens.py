"""``headway serve`` takes tokens of a real Slurm (``scontrol token``), and none that only look like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml
from slurm_cluster import SlurmCluster
from slurm_releases import Release
from waiting import until
from web import Process, asked_of

pytestmark = [pytest.mark.slurm, pytest.mark.waits, pytest.mark.both_slurms]
USER = "nobody"
KEY = bytes(range(7, 39))


@dataclass
class Site:
    """A Slurm that gives tokens, and an interface with its key."""

    cluster: SlurmCluster
    port: int

    def token(self, *words: str, user: str | None = None) -> str:
        """What ``scontrol token`` gives this user; "" if it gives none."""
        done = self.cluster.call("scontrol", "token", *words, user=user)
        return done.stdout.strip().removeprefix("SLURM_JWT=") if done.returncode == 0 else ""

    def known(self, word: str) -> str:
        """The user that a token stands for; "": nobody."""
        status, said = asked_of(self.port, "/v1/self", Authorization=f"Bearer {word}")
        assert status in (200, 401)
        return str(said["user"]) if status == 200 else ""


@pytest.fixture
def site(slurm: Release, slurm_factory: Callable[..., SlurmCluster], tmp_path: Path) -> Iterator[Site]:
    if slurm.plugin("auth_jwt.so") is None:
        pytest.skip("Slurm gives no tokens here; missing Debian package: slurm-wlm-jwt-plugin")
    key = tmp_path / "jwt_hs256.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    words = ("--set", "AuthAltTypes=auth/jwt", "--set", f"AuthAltParameters=jwt_key={key}")
    cluster = slurm_factory(*words, nodes=1)
    config = tmp_path / "site.yaml"
    # A token ends on the second.
    jwts = {"key": str(key), "leeway": 0.0}
    serve = {"listen": ["127.0.0.1:0"], "jwt": jwts}
    config.write_text(yaml.safe_dump({"journal": str(tmp_path / "j.db"), "serve": serve}))
    process = Process(str(config), "--no-link")
    try:
        yield Site(cluster, int(process.line().rpartition(":")[2]))
    finally:
        process.end()


def test_a_token_of_slurms_is_its_user_until_it_ends(site: Site) -> None:
    assert site.known(site.token()) == "root"
    assert site.known(site.token(f"username={USER}", "lifespan=600")) == USER
    assert site.known(site.token(user=USER)) == USER
    short = site.token(f"username={USER}", "lifespan=3")
    assert short
    until(lambda: site.known(short) == "", "it is over")


def test_a_user_gets_no_token_of_another(site: Site) -> None:
    for name in ("root", "daemon"):
        # Slurm gives none, or one of the user's own.
        word = site.token(f"username={name}", user=USER)
        assert site.known(word) in ("", USER) if word else True


def test_what_only_looks_like_a_token_of_slurms_is_nobodys(site: Site) -> None:
    real = site.token(f"username={USER}")
    head, body, mark = real.split(".")
    claims: dict[str, Any] = jwt.decode(real, options={"verify_signature": False})
    root = {**claims, "sun": "root"}
    assert site.known(jwt.encode(claims, KEY, "HS256")) == USER, "so are they signed"
    forged = [
        jwt.encode(root, bytes(32), "HS256"),
        jwt.encode(root, "", "none"),
        f"{jwt.encode(root, '', 'none')}{mark}",
        f"{head}.{jwt.encode(root, '', 'none').split('.')[1]}.{mark}",
        f"{head}.{body}.",
        jwt.encode(root, KEY * 2, "HS512"),
        jwt.encode({**claims, "exp": claims["iat"] - 1}, KEY, "HS256"),
        jwt.encode({name: value for name, value in claims.items() if name != "exp"}, KEY, "HS256"),
    ]
    assert [site.known(word) for word in forged] == [""] * len(forged)
