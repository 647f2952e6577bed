"""The link between daemon and agent: who has no key, or repeats what was said, is refused."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.errors import Failure, UserError
from headway.link import Channel, Client, Refused, Server, read_key
from headway.link.server import is_local

KEY = b"k" * 40


class Echo:
    """An agent that answers with what it was asked."""

    def __init__(self, address: str, key: bytes = KEY) -> None:
        self.asked: list[Any] = []
        self.notes: list[str] = []
        self.server = Server(address, key, self._answer, note=self.notes.append)

    def _answer(self, message: Any) -> Any:
        self.asked.append(message)
        return {"heard": message}


@pytest.fixture(params=["unix", "tcp"])
def echo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Echo]:
    address = f"unix:{tmp_path}/s" if request.param == "unix" else "127.0.0.1:0"
    one = Echo(address)
    with one.server:
        yield one


def test_question_and_answer(echo: Echo) -> None:
    client = Client(echo.server.address, KEY)
    for number in range(3):
        assert client.ask({"n": number}) == {"heard": {"n": number}}
    client.close()


def test_who_has_another_key_is_not_heard(echo: Echo) -> None:
    with pytest.raises(Failure):
        Client(echo.server.address, b"x" * 40).ask("hello")
    assert echo.asked == []


def test_an_agent_with_another_key_is_not_believed(tmp_path: Path) -> None:
    one = Echo(f"unix:{tmp_path}/s", b"x" * 40)
    with one.server, pytest.raises(Failure):
        Client(one.server.address, KEY).ask("hello")
    assert one.asked == []


class Tap:
    """Stands between two sides of a connection and writes down what the daemon says."""

    def __init__(self, there: str) -> None:
        self.said: list[bytes] = []
        self._there = there
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        here, _ = self._listening.accept()
        host, _, port = self._there.rpartition(":")
        there = socket.create_connection((host, int(port)))
        threading.Thread(target=self._back, args=(there, here), daemon=True).start()
        while part := here.recv(65536):
            self.said.append(part)
            there.sendall(part)

    def _back(self, there: socket.socket, here: socket.socket) -> None:
        while part := there.recv(65536):
            here.sendall(part)


def spoken(tap: Tap) -> list[bytes]:
    """The daemon's lines: its greeting, its proof, and its messages."""
    return b"".join(tap.said).splitlines(keepends=True)


def test_what_was_recorded_is_refused_on_another_connection() -> None:
    one = Echo("127.0.0.1:0")
    with one.server:
        tap = Tap(one.server.address)
        client = Client(tap.address, KEY)
        client.ask("kill job 7")
        client.close()
        host, _, port = one.server.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as again:
            again.recv(65536)
            again.sendall(b"".join(spoken(tap)))
            assert again.recv(65536) == b""
    assert one.asked == ["kill job 7"]
    assert any("not made with the site's key for this connection" in note for note in one.notes)


def test_what_was_said_is_refused_a_second_time_on_the_same() -> None:
    one = Echo("127.0.0.1:0")
    with one.server:
        host, _, port = one.server.address.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=5)
        channel = Channel(connection, KEY, agent=False)
        sent: list[bytes] = []
        channel._write = lambda line: (sent.append(line), connection.sendall(line + b"\n"))[1]  # type: ignore
        channel.send("once")
        assert channel.receive() == {"heard": "once"}
        connection.sendall(sent[0] + b"\n")
        with pytest.raises((Failure, OSError)):
            channel.receive()
        channel.close()
    assert one.asked == ["once"]
    assert any("a message was lost or repeated" in note for note in one.notes)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"x" * 100, json.dumps({"version": 9, "random": "0" * 64}).encode()]
)
def test_nonsense_is_refused(echo: Echo, line: bytes) -> None:
    from headway.link.channel import connect

    with connect(echo.server.address, 5.0) as connection:
        connection.recv(65536)
        connection.sendall(line + b"\n")
        assert connection.recv(65536) == b""
    assert echo.asked == []
    client = Client(echo.server.address, KEY)
    assert client.ask("still there") == {"heard": "still there"}
    client.close()


def test_an_agent_that_began_anew_is_found_again(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s"
    client = Client(address, KEY)
    with Echo(address).server:
        client.ask(1)
    with pytest.raises(Failure, match="agent at unix:"):
        client.ask(2)
    with Echo(address).server:
        assert client.ask(3) == {"heard": 3}
    client.close()


def test_one_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(Failure, match="agent at 127"):
        Client(address, KEY, seconds=0.2).ask("hello")
    silent.close()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(mode)
    with pytest.raises(UserError, match=f"only its owner can read .0600., found mode 0{mode:o}"):
        read_key(path)
    path.chmod(0o600)
    assert read_key(path) == KEY


def test_keys_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(UserError, match="cannot be read"):
        read_key(path)
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(UserError, match="expected a key of 32 to 4096 bytes, found 5"):
        read_key(path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_key(tmp_path / "link")
    if os.geteuid() == 0:
        path.write_bytes(KEY)
        os.chown(path, 12345, -1)
        with pytest.raises(UserError, match="found user 12345"):
            read_key(path)


def test_which_addresses_are_local() -> None:
    local = ["unix:/run/x", "127.0.0.1:1", "localhost:1", "[::1]:1"]
    assert [is_local(one) for one in [*local, "0.0.0.0:1", "10.0.0.1:1", "n1:1"]] == [True] * 4 + [False] * 3


def test_the_socket_is_the_owners_alone(tmp_path: Path) -> None:
    with Echo(f"unix:{tmp_path}/s").server:
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


def test_refused_is_a_failure() -> None:
    assert issubclass(Refused, Failure)
