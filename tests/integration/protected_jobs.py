"""Jobs that turn their input around between their security levels, whatever the batch system."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from headway_plugins.security.protection.keys import Keys
from headway_plugins.security.protection.manifest import list_files, read_manifest, write_manifest
from headway_plugins.security.protection.report import read_report
from headway_plugins.security.protection.sealed import seal, unseal

OPTIONS = {"encryption": "AES-256-GCM", "integrity": "SHA-512", "authentication": "Ed25519"}
LABEL = ",".join(f"{service}={option}" for service, option in OPTIONS.items())
#: Seconds that a test's policy plans beside each job's own.
MARGIN = 30
TURN = "import pathlib; pathlib.Path('out').write_bytes(pathlib.Path('in').read_bytes()[::-1])"


def wanted(size: int, deadline: float) -> list[str]:
    """The words of a job with ``size`` bytes of input and of output; ``deadline``: absolute seconds."""
    levels = ("encryption=1.0", "integrity=0.9", "authentication=0.8")
    return [f"deadline={deadline:.0f}", f"bytes={2 * size}", *levels]


def prepare(work: Path, size: int, keys: Keys) -> None:
    """A job's folder: the input, signed and sealed, and a copy of it."""
    work.mkdir()
    work.with_name("turn.py").write_text(TURN)
    (work / "in").write_bytes(os.urandom(size))
    write_manifest(work / "m", list_files([work / "in"], work), keys, ["Ed25519"])
    shutil.copy(work / "in", work / "kept")
    seal(work / "in", keys.data(), "AES-256-GCM")


def script(work: Path, headway: str, system: str, keys: Path) -> str:
    """The lines of the job; ``headway``: how a shell calls it."""
    return (
        f"cd {work} && {headway} protect --system {system} --keys {keys} --manifest m --input in "
        "--output out --outputs-manifest o --report took.json -- python3 ../turn.py 2> said"
    )


def assert_protected(work: Path, keys: Keys, size: int, job: str) -> None:
    """It read what was sealed, and all that it wrote is sealed, listed and signed."""
    assert {path.name for path in work.iterdir()} == {
        "in.sealed", "kept", "m", "o", "out.sealed", "said", "took.json",
    }  # fmt: skip
    unseal(work / "out", keys.data())
    assert (work / "out").read_bytes() == (work / "kept").read_bytes()[::-1]
    manifest = read_manifest(work / "o")
    manifest.authenticate("Ed25519", keys)
    assert manifest.check(manifest.files[0], "SHA-512") == size
    report = read_report(work / "took.json")
    assert (report.job, report.exit_code) == (job, 0)
    assert {s.service: s.option for s in report.services} == OPTIONS
