"""A hundred starts over one SSH connection, against OpenSSH's own client over a shared connection.

Target: no slower than 1.2 times the same commands run one by one through an ``ssh`` ControlMaster
connection, both measured in one run, in turns, on the same server.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sshd import Sshd

from headway_adapters.transport import Transport, TransportOptions, make_transport
from headway_adapters.transport.quoting import quote

pytestmark = [pytest.mark.benchmark, pytest.mark.sshd]

COUNT, ROUNDS = 100, 3
#: Stands in for a start: what is measured is the way there.
COMMAND = ["true", "JobId=4711", "ReqNodeList=node[1-4]", 'AdminComment=headway:it\'s "quoted"']


@pytest.fixture
def master(sshd: Sshd, tmp_path: Path) -> Iterator[list[str]]:
    """The words before a command that goes through an OpenSSH ControlMaster connection."""
    argv = [
        "ssh", "-F", "none", "-p", str(sshd.port), "-i", str(sshd.key), "-o", "IdentitiesOnly=yes",
        "-o", f"UserKnownHostsFile={sshd.known_hosts}", "-o", "BatchMode=yes",
        "-o", f"ControlPath={tmp_path}/c", f"{sshd.user}@127.0.0.1",
    ]  # fmt: skip
    opened = subprocess.run([*argv[:-1], "-M", "-f", "-N", argv[-1]], stdin=subprocess.DEVNULL)
    assert opened.returncode == 0
    yield argv
    subprocess.run([*argv[:-1], "-O", "exit", argv[-1]], capture_output=True)


@pytest.fixture
def transport(sshd: Sshd) -> Iterator[Transport]:
    made = make_transport(TransportOptions.model_validate({"ssh": sshd.options()}))
    made.run(["true"], 20)
    yield made
    made.close()


def test_a_hundred_starts(transport: Transport, master: list[str]) -> None:
    line = (b"exec " + quote(["env", "LC_ALL=C", *COMMAND])).decode()
    ours, theirs, single = [], [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(COUNT):
            subprocess.run([*master, line], check=True, stdin=subprocess.DEVNULL)
        theirs.append(time.perf_counter() - began)
        began = time.perf_counter()
        results = transport.run_many([COMMAND] * COUNT, 20)
        ours.append(time.perf_counter() - began)
        assert len(results) == COUNT and all(result.ok for result in results)
        began = time.perf_counter()
        for _ in range(COUNT):
            assert transport.run(COMMAND, 20).ok
        single.append(time.perf_counter() - began)
    control, many, one = (statistics.median(times) for times in (theirs, ours, single))
    print(
        f"\n{COUNT} commands, median of {ROUNDS}: ssh ControlMaster one by one {control:.2f} s; headway "
        f"{many:.2f} s ({many / control:.2f} times), one by one {one:.2f} s ({one / control:.2f} times)"
    )
    assert many <= 1.2 * control
