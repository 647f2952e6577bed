"""Is it the machine that we mean: known_hosts files as OpenSSH writes and reads them, and pins."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from sshd import make_key

from headway.errors import Failure
from headway_adapters.transport.host_keys import HostKeys, fingerprint, kind_of, read_known_hosts


def public(kind: str, body: bytes) -> bytes:
    """A public key's bytes, of no use but to be compared."""
    return len(kind).to_bytes(4, "big") + kind.encode() + body


A, B = public("ssh-ed25519", b"a" * 36), public("ssh-ed25519", b"b" * 36)
RSA = public("ssh-rsa", b"r" * 36)


def line(names: str, key: bytes, marker: str = "") -> str:
    return f"{marker} {names} {kind_of(key)} {base64.b64encode(key).decode()} a comment\n".lstrip()


def known(tmp_path: Path, *lines: str, pinned: str | None = None) -> HostKeys:
    file = tmp_path / "known_hosts"
    file.write_text("".join(lines))
    return HostKeys([str(file)], pinned)


def refusal(keys: HostKeys, host: str, port: int, key: bytes, *, target: bool = True) -> str:
    with pytest.raises(Failure) as raised:
        keys.verify(host, port, key, target=target)
    return str(raised.value)


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("login", "login", 22),
        ("login", "LOGIN", 22),
        ("other,login,10.0.0.1", "10.0.0.1", 22),
        ("[login]:2222", "login", 2222),
        ("*.example.org", "login.example.org", 22),
        ("login?", "login1", 22),
        ("[*.example.org]:2222", "a.example.org", 2222),
        ("::1", "::1", 22),
    ],
)
def test_lines_that_speak_of_the_machine(tmp_path: Path, names: str, host: str, port: int) -> None:
    known(tmp_path, "# a comment\n", "\n", line("else", B), line(names, A)).verify(host, port, A, target=True)


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("login", "login2", 22),
        ("login", "login", 2222),
        ("[login]:2222", "login", 22),
        ("*.example.org,!bad.example.org", "bad.example.org", 22),
        ("login.", "loginx", 22),
        ("|1|nonsense", "login", 22),
    ],
)
def test_lines_that_do_not(tmp_path: Path, names: str, host: str, port: int) -> None:
    assert "unknown host key" in refusal(known(tmp_path, line(names, A)), host, port, A)


def test_an_unknown_key_is_refused_with_its_fingerprint_and_what_to_do(tmp_path: Path) -> None:
    said = refusal(known(tmp_path), "login", 2222, A)
    for words in (
        "login:2222", "ssh-ed25519", fingerprint(A), str(tmp_path / "known_hosts"),
        "ssh-keyscan -p 2222 login", f'host_key: "{fingerprint(A)}"',
    ):  # fmt: skip
        assert words in said
    # The key of a machine on the way cannot be pinned.
    assert "host_key" not in refusal(known(tmp_path), "login", 22, A, target=False)


def test_a_changed_key_is_refused_and_both_are_said(tmp_path: Path) -> None:
    said = refusal(known(tmp_path, "\n", line("login", A)), "login", 22, B)
    for words in ("changed", fingerprint(A), fingerprint(B), "line 2", "ssh-keygen -R login"):
        assert words in said


def test_a_key_of_another_type_than_the_known_one_is_a_changed_key(tmp_path: Path) -> None:
    keys = known(tmp_path, line("login", RSA))
    assert keys.kinds("login", 22, target=True) == ["ssh-rsa"]
    assert "ssh-rsa SHA256" in refusal(keys, "login", 22, A)


def test_a_revoked_key_is_refused_even_if_another_line_takes_it(tmp_path: Path) -> None:
    keys = known(tmp_path, line("login", A), line("*", A, "@revoked"), line("login", B))
    assert "revoked" in refusal(keys, "login", 22, A)
    keys.verify("login", 22, B, target=True)


def test_certificate_authorities_are_passed_over(tmp_path: Path) -> None:
    keys = known(tmp_path, line("login", A, "@cert-authority"))
    assert "unknown host key" in refusal(keys, "login", 22, A)


def test_hashed_names(tmp_path: Path) -> None:
    """Written by OpenSSH itself."""
    key = make_key(tmp_path / "key")
    words = Path(f"{key}.pub").read_text().split()
    file = tmp_path / "known_hosts"
    file.write_text(f"login {words[0]} {words[1]}\n[login]:2222 {words[0]} {words[1]}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "login" not in file.read_text()
    body = base64.b64decode(words[1])
    HostKeys([str(file)]).verify("login", 22, body, target=True)
    HostKeys([str(file)]).verify("login", 2222, body, target=True)
    assert "unknown" in refusal(HostKeys([str(file)]), "nigol", 22, body)
    shown = subprocess.run(["ssh-keygen", "-lf", f"{key}.pub"], check=True, capture_output=True, text=True)
    assert fingerprint(body) == shown.stdout.split()[1]


@pytest.mark.parametrize(
    "pin", [fingerprint(A), fingerprint(A) + "=", f"ssh-ed25519 {base64.b64encode(A).decode()}"]
)
def test_a_pinned_key_counts_alone(tmp_path: Path, pin: str) -> None:
    keys = known(tmp_path, line("login", B), pinned=pin)
    keys.verify("login", 22, A, target=True)
    said = refusal(keys, "login", 22, B)
    assert fingerprint(A) in said and fingerprint(B) in said and "ssh.host_key" in said
    # Machines on the way are looked up as ever.
    keys.verify("login", 22, B, target=False)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing")
    assert missing in refusal(HostKeys([missing]), "login", 22, A)


def test_lines_that_make_no_sense_are_passed_over() -> None:
    text = "login\nlogin ssh-ed25519\nlogin ssh-ed25519 !!!\n@else login ssh-ed25519 AAAA\n" + line(
        "login", A
    )
    assert [entry.key for entry in read_known_hosts(text, "f")] == [A]
