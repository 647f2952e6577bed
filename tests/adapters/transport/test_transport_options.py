"""The keys of a transport: what is taken, what is refused, and which transport they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headway.config import parse_config
from headway_adapters.slurm import SlurmOptions
from headway_adapters.transport import LocalTransport, SshOptions, TransportOptions, make_transport
from headway_adapters.transport.options import parse_hop
from headway_adapters.transport.ssh import SshTransport


def test_without_ssh_commands_run_here() -> None:
    made = make_transport(TransportOptions(parallel_commands=3))
    assert isinstance(made, LocalTransport)
    assert (made.workers, made.where) == (3, "")


def test_three_lines_make_it_another_machine() -> None:
    here = {"partitions": ["batch"]}
    there = {**here, "ssh": {"host": "login", "user": "headway"}}
    made = make_transport(SlurmOptions.model_validate(there))
    assert isinstance(made, SshTransport)
    assert (made.user, made.where) == ("headway", "headway@login:22")


def test_the_shipped_files_for_here_and_there_differ_by_three_lines() -> None:
    etc = Path(__file__).parents[3] / "etc" / "slurm"
    here, there = ((etc / name).read_text().splitlines() for name in ("headway.yaml", "headway-ssh.yaml"))
    added = [line.partition("#")[0].split() for line in there if line not in here and line[0] != "#"]
    assert added == [["ssh:"], ["host:", "login.example.org"], ["user:", "headway"]]
    config = parse_config("\n".join(there))
    SlurmOptions.model_validate(config.cluster.options)


@pytest.mark.parametrize(
    ("text", "hop"),
    [
        ("gate", (None, "gate", 22)),
        ("ann@gate", ("ann", "gate", 22)),
        ("ann@gate.example.org:2222", ("ann", "gate.example.org", 2222)),
        ("10.0.0.1:99", (None, "10.0.0.1", 99)),
        ("ann@[fe80::1%eth0]:2222", ("ann", "fe80::1%eth0", 2222)),
    ],
)
def test_machines_on_the_way(text: str, hop: tuple[str | None, str, int]) -> None:
    found = parse_hop(text)
    assert (found.user, found.host, found.port) == hop


@pytest.mark.parametrize(
    "text", ["", "a b", "-oProxyCommand=x", "gate:0", "gate:99999", "a@b@c d", "gate;id", "x:y"]
)
def test_what_is_no_machine_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="user@host:port"):
        parse_hop(text)


def test_the_way_ends_at_the_machine() -> None:
    options = SshOptions.model_validate({"host": "login", "port": 23, "proxy_jump": "ann@gate:2222, inner"})
    assert [hop.address for hop in options.hops] == ["gate:2222", "inner:22", "login:23"]
    assert options == SshOptions(host="login", port=23, proxy_jump=("ann@gate:2222", "inner"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": ""}, {"host": "-oProxyCommand=id"}, {"host": "a b"}, {"host": "ann@login"}, {"port": 0},
        {"user": "-x"}, {"user": "a b"}, {"host_key": "SHA256:short"}, {"host_key": "no"},
        {"proxy_jump": ["a b"]}, {"connect_timeout": 0}, {"keepalive": -1}, {"max_sessions": 0},
        {"password": "secret"}, {"StrictHostKeyChecking": "no"},
    ],
)  # fmt: skip
def test_what_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SshOptions.model_validate({"host": "login", **wrong})
