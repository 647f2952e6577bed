"""Slurm's tokens: one algorithm, one kind of key, an end, a user."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from headway.errors import UserError
from headway.serve.jwts import SlurmTokens

rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
SECRET = bytes(range(32))
SOON = 4e9


def claims(**changed: Any) -> dict[str, Any]:
    return {"iat": 1.0, "exp": SOON, "sun": "alice", **changed}


def signed(said: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", **header: Any) -> str:
    return jwt.encode(said, key, algorithm, header)


@pytest.fixture
def by_secret(tmp_path: Path) -> SlurmTokens:
    path = tmp_path / "jwt_hs256.key"
    path.write_bytes(SECRET)
    path.chmod(0o400)
    return SlurmTokens.by_secret(path)


@pytest.fixture(scope="module")
def private() -> Any:
    return rsa.generate_private_key(65537, 2048)


def public_of(key: Any, **changed: Any) -> dict[str, Any]:
    found = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(key.public_key()))
    return {**found, "kid": "one", "alg": "RS256", "use": "sig", **changed}


def key_file(folder: Path, *keys: dict[str, Any]) -> Path:
    path = folder / "jwks.json"
    path.write_text(json.dumps({"keys": keys}))
    return path


@pytest.fixture
def by_public(tmp_path: Path, private: Any) -> SlurmTokens:
    return SlurmTokens.by_public_keys(key_file(tmp_path, public_of(private)))


def part(said: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


def test_slurms_token_names_the_user_and_its_end(by_secret: SlurmTokens) -> None:
    named = by_secret.read(signed(claims()))
    assert named is not None and (named.user, named.ends) == ("alice", SOON)


@pytest.mark.parametrize(
    "said",
    [
        claims(exp=1.0),
        {"sun": "alice"},
        {"exp": SOON},
        claims(sun=None),
        claims(sun=""),
        claims(sun=7),
        claims(sun=["root"]),
        claims(exp="never"),
        claims(nbf=SOON),
        claims(aud="another"),
    ],
    ids=str,
)
def test_what_is_no_valid_token_names_nobody(by_secret: SlurmTokens, said: dict[str, Any]) -> None:
    assert by_secret.read(signed(said)) is None


def test_a_clock_that_differs_a_little_locks_nobody_out(by_secret: SlurmTokens) -> None:
    now = time.time()
    assert by_secret.read(signed(claims(iat=now + 3600.0))) is not None
    assert by_secret.read(signed(claims(exp=now - 2.0))) is not None
    assert by_secret.read(signed(claims(exp=now - 60.0))) is None


def test_a_foreign_key_and_a_changed_token_name_nobody(by_secret: SlurmTokens) -> None:
    assert by_secret.read(signed(claims(), bytes(32))) is None
    head, _, mark = signed(claims()).split(".")
    assert by_secret.read(f"{head}.{part(claims(sun='root'))}.{mark}") is None


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 7])
def test_a_token_without_a_signature_names_nobody(
    by_secret: SlurmTokens, by_public: SlurmTokens, algorithm: Any
) -> None:
    head = part({"alg": algorithm, "typ": "JWT", "kid": "one"})
    for mark in ("", signed(claims()).rpartition(".")[2]):
        for tokens in (by_secret, by_public):
            assert tokens.read(f"{head}.{part(claims())}.{mark}") is None


def test_other_algorithms_of_the_same_key_name_nobody(by_secret: SlurmTokens) -> None:
    for algorithm in ("HS384", "HS512"):
        assert by_secret.read(signed(claims(), SECRET * 2, algorithm)) is None


def test_keys_of_a_file_check_the_signature(by_public: SlurmTokens, private: Any) -> None:
    named = by_public.read(signed(claims(), private, "RS256", kid="one"))
    assert named is not None and named.user == "alice"
    assert by_public.read(signed(claims(), private, "RS256", kid="two")) is None
    assert by_public.read(signed(claims(), private, "RS256")) is None
    foreign = rsa.generate_private_key(65537, 2048)
    assert by_public.read(signed(claims(), foreign, "RS256", kid="one")) is None
    for algorithm in ("RS512", "PS256"):
        assert by_public.read(signed(claims(), private, algorithm, kid="one")) is None


def test_a_public_key_is_no_shared_secret(by_public: SlurmTokens, private: Any, tmp_path: Path) -> None:
    """HS256 with the public key's text as the secret: everybody has that text."""
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), (tmp_path / "jwks.json").read_bytes()):
        text = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(claims())}"
        mark = base64.urlsafe_b64encode(hmac.digest(secret, text.encode(), hashlib.sha256)).decode()
        assert by_public.read(f"{text}.{mark.rstrip('=')}") is None


def test_a_key_that_comes_with_the_token_is_not_looked_at(by_public: SlurmTokens) -> None:
    foreign = rsa.generate_private_key(65537, 2048)
    sent = signed(
        claims(), foreign, "RS256", kid="one", jwk=public_of(foreign), jku="http://127.0.0.1/keys", x5u="x"
    )
    assert by_public.read(sent) is None


@pytest.mark.parametrize("word", ["", ".", "..", "a.b.c", "\0", "x" * 100_000, "é.é.é", "e30.e30."])
def test_what_is_no_token_at_all_names_nobody(
    by_secret: SlurmTokens, by_public: SlurmTokens, word: str
) -> None:
    assert by_secret.read(word) is None
    assert by_public.read(word) is None


@pytest.mark.parametrize("kid", [7, None, ["one"], {"one": 1}, "", "../one"])
def test_the_name_of_a_key_may_be_anything(by_public: SlurmTokens, private: Any, kid: Any) -> None:
    head = part({"alg": "RS256", "kid": kid})
    mark = signed(claims(), private, "RS256", kid="one").rpartition(".")[2]
    assert by_public.read(f"{head}.{part(claims())}.{mark}") is None


def test_keys_that_are_none_are_refused(tmp_path: Path, private: Any) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(UserError, match="at least 32 bytes, found 5"):
        SlurmTokens.by_secret(path)
    public = b"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n"
    path.write_bytes(public)
    with pytest.raises(UserError, match="expected a key for HS256"):
        SlurmTokens.by_secret(path)
    path.chmod(0o644)
    with pytest.raises(UserError, match="others may not read or change, found mode 0644"):
        SlurmTokens.by_secret(path)
    with pytest.raises(UserError, match="cannot be read"):
        SlurmTokens.by_secret(tmp_path / "none")


def test_files_without_a_usable_public_key_are_refused(tmp_path: Path, private: Any) -> None:
    small = rsa.generate_private_key(65537, 1024)
    secret = {"kty": "oct", "kid": "one", "k": part("x" * 32), "alg": "HS256"}
    whole = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(private))
    of_no_use = [
        public_of(small), secret, public_of(private, use="enc"), public_of(private, alg="RS512"),
        public_of(private, kid=""), public_of(private, kid=7), {**whole, "kid": "one"},
    ]  # fmt: skip
    with pytest.raises(UserError, match="found none"):
        SlurmTokens.by_public_keys(key_file(tmp_path, *of_no_use))
    path = tmp_path / "jwks.json"
    for text in ("", "[]", "{}", '{"keys": [{"kty": "RSA", "kid": "one"}]}'):
        path.write_text(text)
        with pytest.raises(UserError, match=r"serve\.jwt\.jwks"):
            SlurmTokens.by_public_keys(path)
    os.chmod(key_file(tmp_path, public_of(private)), 0o666)
    with pytest.raises(UserError, match="others may not change"):
        SlurmTokens.by_public_keys(path)
