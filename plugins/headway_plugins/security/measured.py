"""How fast this machine encrypts, hashes and signs, as a profile of security levels.

One thread, buffers of 1 MiB, the median of five measurements. The levels are a site's policy and not a
matter of speed: today the stronger option is often faster. So the numbers here are suggestions, and
weak algorithms are not offered. Needs the package ``cryptography`` (extra ``security``).
"""

from __future__ import annotations

import hashlib
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import yaml

from headway.inputs.extras import need_security
from headway_plugins.security.levels import SERVICES

BUFFER = 1 << 20
ROUNDS = 5
#: What is signed: a job script's digest and a few words.
MESSAGE = b"\x5a" * 256

#: Suggested levels, by service: option -> level.
LEVELS: dict[str, dict[str, float]] = {
    "encryption": {"AES-128-GCM": 0.7, "ChaCha20-Poly1305": 0.9, "AES-256-GCM": 1.0},
    "integrity": {"SHA-256": 0.7, "BLAKE2b": 0.8, "SHA-512": 0.9, "SHA3-256": 1.0},
    "authentication": {"HMAC-SHA-256": 0.5, "Ed25519": 0.8, "RSA-3072-PSS": 0.8, "ML-DSA-65": 1.0},
}


@dataclass(frozen=True)
class Figure:
    """An algorithm's speed in MB/s (10^6 bytes), or its seconds where that does not grow with the data."""

    service: str
    option: str
    level: float
    speed: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Figures:
    """All that was measured, and on what."""

    figures: tuple[Figure, ...]
    about: dict[str, str]

    def of(self, service: str) -> list[Figure]:
        """The figures of a service, levels rising."""
        return sorted((f for f in self.figures if f.service == service), key=lambda f: f.level)


def measure(seconds: float = 0.2, clock: Callable[[], float] = time.thread_time) -> Figures:
    """Measure every option of :data:`LEVELS` for five times ``seconds`` of processor time."""
    need_security("headway security measure")
    import cryptography

    calls = {**_encryption(), **_integrity()}
    found = []
    for service, levels in LEVELS.items():
        for option, level in levels.items():
            if service == "authentication":
                call = _authentication(option)
                if call is None:
                    continue
                each = _median(call, seconds, clock)
                found.append(Figure(service, option, level, seconds=each))
            else:
                each = _median(calls[option], seconds, clock)
                found.append(Figure(service, option, level, speed=BUFFER / each / 1e6))
    about = {
        "machine": f"{platform.machine()}, {_processor()}",
        "cryptography": cryptography.__version__,
        "openssl": _openssl(),
    }
    return Figures(tuple(found), about)


def profile_text(figures: Figures) -> str:
    """The figures as a profile, as :func:`headway_plugins.security.levels.parse_profile` reads it."""
    profile: dict[str, object] = {"name": "measured", "measured": figures.about}
    for service in SERVICES:
        options = []
        for figure in figures.of(service):
            option: dict[str, object] = {"level": figure.level, "option": figure.option}
            if figure.speed is not None:
                option["speed"] = float(f"{figure.speed:.4g}")
            else:
                option["seconds"] = float(f"{max(figure.seconds, 1e-9):.4g}")
            options.append(option)
        profile[service] = options
    return yaml.safe_dump(profile, sort_keys=False, allow_unicode=True)


def _median(call: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
    """Seconds that a call takes: the median of :data:`ROUNDS` means."""
    call()
    means = []
    for _ in range(ROUNDS):
        count, begin = 0, clock()
        while True:
            call()
            count += 1
            passed = clock() - begin
            if passed >= seconds:
                break
        means.append(passed / count)
    return statistics.median(means)


def _encryption() -> dict[str, Callable[[], object]]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

    data, nonce = os.urandom(BUFFER), os.urandom(12)
    ciphers: dict[str, AESGCM | ChaCha20Poly1305] = {
        "AES-128-GCM": AESGCM(AESGCM.generate_key(128)),
        "ChaCha20-Poly1305": ChaCha20Poly1305(ChaCha20Poly1305.generate_key()),
        "AES-256-GCM": AESGCM(AESGCM.generate_key(256)),
    }
    # The same nonce again and again: nothing that is encrypted here is ever kept.
    return {name: partial(cipher.encrypt, nonce, data, None) for name, cipher in ciphers.items()}


def _integrity() -> dict[str, Callable[[], object]]:
    data = os.urandom(BUFFER)
    names = {"SHA-256": "sha256", "BLAKE2b": "blake2b", "SHA-512": "sha512", "SHA3-256": "sha3_256"}
    return {name: partial(_digest, algorithm, data) for name, algorithm in names.items()}


def _digest(algorithm: str, data: bytes) -> bytes:
    return hashlib.new(algorithm, data).digest()


def _authentication(option: str) -> Callable[[], object] | None:
    """Sign and verify; None where the installed OpenSSL or package does not have it."""
    import hmac

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

    if option == "Ed25519":
        edwards = ed25519.Ed25519PrivateKey.generate()
        known = edwards.public_key()
        return lambda: known.verify(edwards.sign(MESSAGE), MESSAGE)
    if option == "RSA-3072-PSS":
        key = rsa.generate_private_key(public_exponent=65537, key_size=3072)
        public, digest = key.public_key(), hashes.SHA256()
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.MAX_LENGTH)
        return lambda: public.verify(key.sign(MESSAGE, pss, digest), MESSAGE, pss, digest)
    if option == "ML-DSA-65":
        try:
            from cryptography.exceptions import UnsupportedAlgorithm
            from cryptography.hazmat.primitives.asymmetric import mldsa

            lattice = mldsa.MLDSA65PrivateKey.generate()
        except (ImportError, UnsupportedAlgorithm):
            return None
        shown = lattice.public_key()
        return lambda: shown.verify(lattice.sign(MESSAGE), MESSAGE)
    secret = os.urandom(32)

    def both() -> bool:
        return hmac.compare_digest(
            hmac.digest(secret, MESSAGE, "sha256"), hmac.digest(secret, MESSAGE, "sha256")
        )

    return both


def _openssl() -> str:
    from cryptography.hazmat.backends.openssl import backend

    return backend.openssl_version_text()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next(
                (ln.split(":", 1)[1].strip() for ln in lines if ln.startswith("model name")), "unknown"
            )
    except OSError:
        return platform.processor() or "unknown"
