"""Digests, signatures and ciphers by the names that profiles of security levels have for them."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

#: Name -> the name that ``hashlib`` knows it by.
DIGESTS = {"SHA-256": "sha256", "BLAKE2b": "blake2b", "SHA-512": "sha512", "SHA3-256": "sha3_256"}
#: Bytes of a cipher's key.
CIPHERS = {"AES-128-GCM": 16, "ChaCha20-Poly1305": 32, "AES-256-GCM": 32}
#: The signature that needs a shared secret; all other signatures need a pair of keys.
HMAC = "HMAC-SHA-256"
BUFFER = 1 << 20


def digest_of(path: Path, option: str) -> tuple[str, int]:
    """A file's digest, in hexadecimal digits, and its bytes. Raises :class:`OSError`."""
    with open(path, "rb") as stream:
        made = hashlib.new(DIGESTS[option])
        count = 0
        while data := stream.read(BUFFER):
            made.update(data)
            count += len(data)
    return made.hexdigest(), count


def cipher_of(option: str, key: bytes) -> Any:
    """An AEAD of the package ``cryptography`` with ``encrypt`` and ``decrypt``."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

    return ChaCha20Poly1305(key) if option == "ChaCha20-Poly1305" else AESGCM(key)


def derived(secret: bytes, purpose: str, length: int, salt: bytes = b"") -> bytes:
    """A key for a single purpose from a secret: HKDF with SHA-256."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(hashes.SHA256(), length, salt or None, f"headway {purpose}".encode()).derive(secret)


def signature(option: str, key: Any, message: bytes) -> bytes:
    """``key``: bytes for :data:`HMAC`, else a private key of the package."""
    if option == HMAC:
        return hmac.digest(key, message, "sha256")
    made: bytes = key.sign(message, *_padding(option))
    return made


def is_signature(option: str, key: Any, message: bytes, signed: bytes) -> bool:
    """``key``: bytes for :data:`HMAC`, else a public key."""
    from cryptography.exceptions import InvalidSignature

    if option == HMAC:
        return hmac.compare_digest(hmac.digest(key, message, "sha256"), signed)
    try:
        key.verify(signed, message, *_padding(option))
    except InvalidSignature:
        return False
    return True


def _padding(option: str) -> tuple[Any, ...]:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    if option != "RSA-3072-PSS":
        return ()
    return padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.MAX_LENGTH), hashes.SHA256()


def new_key(option: str) -> Any:
    """A private key; None where the installed package or OpenSSL does not have the algorithm."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    if option == "Ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if option == "RSA-3072-PSS":
        return rsa.generate_private_key(public_exponent=65537, key_size=3072)
    try:
        from cryptography.hazmat.primitives.asymmetric import mldsa

        return mldsa.MLDSA65PrivateKey.generate()
    except (ImportError, UnsupportedAlgorithm):
        return None


def is_of(option: str, key: Any) -> bool:
    """Whether a private or public key belongs to the algorithm."""
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    if option == "Ed25519":
        return isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey)
    if option == "RSA-3072-PSS":
        return isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey) and key.key_size >= 3072
    return type(key).__name__.upper().startswith("MLDSA65")
