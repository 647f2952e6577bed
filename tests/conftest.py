"""What all tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sshd import Sshd, missing


@pytest.fixture(scope="session")
def trace_dir() -> Path:
    """The directory of the real traces; skips where there is none."""
    directory = Path(os.environ.get("HEADWAY_TRACES") or Path(__file__).parents[2] / "shared" / "traces")
    if not directory.is_dir():
        pytest.skip(f"needs the real traces: no directory {directory}; set HEADWAY_TRACES to theirs")
    return directory


@pytest.fixture(scope="session")
def sshd_factory() -> Iterator[Callable[..., Sshd]]:
    """Start SSH servers: ``sshd_factory(MaxSessions="3")``; they run until the end of the tests.

    Skips, or with CI=true fails, where OpenSSH's server is not installed.
    """
    if packages := missing():
        text = f"OpenSSH's server is not installed; missing Debian packages: {' '.join(packages)}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text)
        pytest.skip(text)
    base = Path(tempfile.mkdtemp(prefix="hw-sshd-"))
    started: list[Sshd] = []

    def start(*, key: Path | None = None, **settings: str) -> Sshd:
        started.append(Sshd(base / f"s{len(started)}", key=key, **settings))
        return started[-1]

    yield start
    for server in started:
        server.stop()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def sshd(sshd_factory: Callable[..., Sshd]) -> Sshd:
    """One SSH server with Debian's usual settings, for all tests: leave it as it was."""
    return sshd_factory()
