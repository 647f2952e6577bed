"""A test's own directory leaves room for a socket, wherever pytest puts its directories."""

from __future__ import annotations

import socket
from pathlib import Path


def test_a_test_with_a_name_as_long_as_they_come_can_have_a_socket_beside_a_journal(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.bind(str(tmp_path / "journal.sqlite.sock"))
