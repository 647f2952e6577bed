"""The process: where it listens, whom it lets in, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_daemon import Start, scripted
from waiting import HANG
from web import Process, asked

from headway.errors import UserError
from headway.serve.running import Serving
from headway.serve.tokens import Tokens
from headway.service.protocol import Reply

pytestmark = pytest.mark.waits
ME = pwd.getpwuid(os.geteuid()).pw_name


class OverUnix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=HANG)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANG)
        self.sock.connect(str(self.path))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


@pytest.fixture
def serve() -> Iterator[Callable[..., Process]]:
    running: list[Process] = []

    def begin(config: str, *words: str) -> Process:
        running.append(Process(config, *words))
        return running[-1]

    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def test_a_link_lets_in_once_and_nobody_else_is_known(
    start: Start, serve: Callable[..., Process], tmp_path: Path
) -> None:
    config, _ = start()
    running = serve(config, "--port", "0", "--link")
    address = running.line().removeprefix("serving on http://")
    link = running.line().removeprefix("your way in, once: ")
    connection = http.client.HTTPConnection(address, timeout=HANG)
    assert asked(connection, "/v1/status")[0] == 401
    status, headers, _ = asked(connection, link.removeprefix(f"http://{address}"))
    assert status == 303
    cookie = headers["set-cookie"].partition(";")[0]
    status, _, told = asked(connection, "/v1/status", Cookie=cookie)
    assert (status, told["data"]["cluster"]) == (200, "tc")
    assert asked(connection, "/v1/self", Cookie=cookie)[2]["user"] == ME
    assert asked(connection, link.removeprefix(f"http://{address}"))[0] == 403
    code, said = running.end()
    assert (code, said) == (0, "")


def test_streams_end_with_the_process_and_without_a_word(
    start: Start, serve: Callable[..., Process], tmp_path: Path
) -> None:
    config, _ = start()
    path = tmp_path / "w"
    running = serve(config, "--listen", f"unix:{path}")
    running.line()
    connection = OverUnix(path)
    connection.request("GET", "/v1/stream")
    answer = connection.getresponse()
    assert answer.readline() == b": headway\n"
    code, said = running.end()
    assert code == 0 and "Traceback" not in said and "ASGI" not in said
    # Whole, as the last piece of a chunked answer is there.
    assert b"event: failed" not in answer.read()


def test_without_a_terminal_there_is_no_link_and_it_is_said_that_nobody_is_known(
    start: Start, serve: Callable[..., Process]
) -> None:
    config, _ = start()
    running = serve(config, "--port", "0")
    address = running.line().removeprefix("serving on http://")
    assert asked(http.client.HTTPConnection(address, timeout=HANG), "/v1/status")[0] == 401
    code, said = running.end(signal.SIGINT)
    assert code == 0 and "no user can be known" in said


def test_two_addresses_at_once(start: Start, serve: Callable[..., Process], tmp_path: Path) -> None:
    config, _ = start()
    path = tmp_path / "web.sock"
    running = serve(config, "--listen", f"unix:{path}", "--listen", "127.0.0.1:0")
    assert running.line() == f"serving on unix:{path}: the system says who asks"
    address = running.line().removeprefix("serving on http://")
    assert asked(OverUnix(path), "/v1/self")[2]["user"] == ME
    word = Tokens(tmp_path / "j.db.tokens").create("alice", ("read",), time.time(), 60.0)
    over_tcp = http.client.HTTPConnection(address, timeout=HANG)
    assert asked(over_tcp, "/v1/self", Authorization=f"Bearer {word}")[2]["user"] == "alice"
    running.end()
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_at_the_socket_is_that_user(
    start: Start, serve: Callable[..., Process], tmp_path: Path
) -> None:
    config, _ = start()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    running = serve(config, "--listen", f"unix:{tmp_path / 'web.sock'}")
    running.line()
    asking = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
        "s.connect(sys.argv[1]); s.sendall(b'GET /v1/self HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); "
        "print(s.makefile().read())"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", asking, str(tmp_path / "web.sock")], capture_output=True, text=True,
        timeout=HANG,
    )  # fmt: skip
    assert json.loads(done.stdout.rpartition("\n\n")[2])["user"] == "nobody", done.stderr


def test_a_path_that_is_taken(start: Start, serve: Callable[..., Process], tmp_path: Path) -> None:
    config, _ = start()
    path = tmp_path / "web.sock"
    first = serve(config, "--listen", f"unix:{path}")
    first.line()
    second = serve(config, "--listen", f"unix:{path}")
    _, said = second.process.communicate(timeout=HANG)
    assert second.process.returncode == 1
    assert "another process listens there" in said
    first.process.kill()
    first.process.wait()
    third = serve(config, "--listen", f"unix:{path}")
    assert third.line().startswith("serving on unix:")
    third.end()
    path.write_text("a file")
    fourth = serve(config, "--listen", f"unix:{path}")
    _, said = fourth.process.communicate(timeout=HANG)
    assert fourth.process.returncode == 2 and "found another file" in said
    assert path.read_text() == "a file"


def settings(**given: Any) -> Any:
    from headway.config.serve import ServeConfig

    return ServeConfig.model_validate(given)


HERE = {"listen": ["127.0.0.1:0"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"listen": ["0.0.0.0:8642"]}, "needs serve.tls"),
        ({"listen": ["127.0.0.1:0", "[::]:0"]}, "needs serve.tls"),
        ({"listen": ["node7:8642"]}, "needs serve.tls"),
        ({"listen": ["127.0.0.1"]}, "expected HOST:PORT"),
        ({"listen": ["127.0.0.1:99999"]}, "expected HOST:PORT"),
        ({"listen": ["unix:web.sock"]}, "a whole path"),
        ({"listen": ["unix:/" + "x" * 200]}, "at most 107 bytes"),
        ({"proxy": {"addresses": ["127.0.0.1"], "secret": "/none"}, **HERE}, "cannot be read"),
        ({"tls": {"certificate": "/none", "key": "/none"}, **HERE}, "cannot be read"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_safe_or_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    from web import Told

    with pytest.raises(UserError, match=said):
        Serving(Told(), settings(**given)).run(lambda text: pytest.fail(text))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"proxy": {"addresses": ["127.0.0.1"]}}, "secret beside addresses"),
        ({"tls": {"key": "k"}}, "certificate and key"),
        ({"jwt": {"key": "k", "jwks": "j"}}, "found both"),
        ({"mode": "0999"}, "pattern"),
        ({"listen": []}, "at least 1"),
    ],
    ids=str,
)
def test_half_a_setting_is_refused(given: dict[str, Any], said: str) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError, match=said):
        settings(**given)


def test_tls_by_files(start: Start, serve: Callable[..., Process], tmp_path: Path) -> None:
    import shutil
    import ssl

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    config, _ = start(Reply("accepted"))
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    with Path(config).open("a") as file:
        file.write(f"serve: {{listen: ['0.0.0.0:0'], tls: {{certificate: {certificate}, key: {key}}}}}\n")
    running = serve(config)
    port = int(running.line().rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection("localhost", port, timeout=HANG, context=context)
    assert asked(connection, "/v1/status")[0] == 401
    plainly = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(plainly, "/v1/status")
    key.chmod(0o644)
    refused = serve(config)
    _, said = refused.process.communicate(timeout=HANG)
    assert refused.process.returncode == 2 and "serve.tls.key" in said
