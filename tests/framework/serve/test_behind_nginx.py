"""The shipped configuration of nginx, by a real nginx before a real ``headway serve``."""

from __future__ import annotations

import base64
import grp
import http.client
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from scripted_daemon import Start, scripted
from waiting import HANG, until
from web import Process, asked

from headway.serve.tokens import Tokens

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(NGINX is None, reason="needs nginx"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run nginx's workers as another user"),
]
SHIPPED = Path(__file__).parents[3] / "etc" / "web" / "nginx.conf"
NAME = "queue.example.org"
WORKERS = "nobody"
#: What is around a site's server, with all that is written beside the test.
AROUND = """
user {user} {group}; worker_processes 1; daemon off; pid {place}/nginx.pid; error_log {place}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
    include {place}/headway.conf;
}}
"""


def login(user: str, word: str = "secret") -> str:
    return "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode()


class Site:
    """Both processes, and connections to the outer one."""

    def __init__(self, place: Path, port: int, process: subprocess.Popen[bytes], tokens: Tokens) -> None:
        self.place, self.port, self.process, self.tokens = place, port, process, tokens

    def connection(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.place / "cert.pem"))
        made = http.client.HTTPSConnection(NAME, timeout=HANG, context=context)
        made.sock = context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), HANG), server_hostname=NAME
        )
        return made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    assert NGINX is not None
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-days", "2",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=HANG,
    )  # fmt: skip
    users = tmp_path / "users"
    users.write_text("ann:{PLAIN}secret\nroot:{PLAIN}secret\n")
    users.chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    web = tmp_path / "web.sock"
    text = SHIPPED.read_text()
    for shipped, here in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/queue.example.org.pem": str(certificate),
        "/etc/ssl/private/queue.example.org.key": str(key),
        "/etc/nginx/headway.users": str(users),
        "unix:/run/headway-web/web.sock": f"unix:{web}",
    }.items():
        assert shipped in text
        text = text.replace(shipped, here)
    (tmp_path / "headway.conf").write_text(text)
    around = tmp_path / "nginx.conf"
    group = grp.getgrgid(pwd.getpwnam(WORKERS).pw_gid).gr_name
    around.write_text(AROUND.format(user=WORKERS, group=group, place=tmp_path))
    with scripted(tmp_path) as start:
        config = begin(start, web)
        inner = Process(config, "--no-link")
        assert inner.line() == f"serving on unix:{web}: the system says who asks"
        outer = subprocess.Popen([NGINX, "-c", str(around)], stderr=subprocess.PIPE)
        try:
            until(lambda: answers(port) or outer.poll() is not None, "nginx listens")
            assert outer.poll() is None, outer.communicate()[1]
            yield Site(tmp_path, port, outer, Tokens(tmp_path / "j.db.tokens"))
        finally:
            outer.terminate()
            outer.communicate(timeout=HANG)
            inner.end()


def begin(start: Start, web: Path) -> str:
    config, _ = start()
    shipped = yaml.safe_load((SHIPPED.parent / "serve.yaml").read_text())["serve"]
    shipped["listen"] = [f"unix:{web}"]
    shipped["proxy"] = {"users": [WORKERS]}
    del shipped["tokens"]
    with open(config, "a") as file:
        yaml.safe_dump({"serve": shipped}, file)
    return config


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_who_logs_in_at_nginx_is_the_user_and_no_other_word_counts(site: Site) -> None:
    assert asked(site.connection(), "/v1/self")[0] == 401
    assert asked(site.connection(), "/v1/self", Authorization=login("ann", "wrong"))[0] == 401
    for more in ({}, {"X-Remote-User": "root"}, {"x-remote-user": "root"}, {"X_Remote_User": "root"}):
        status, _, told = asked(site.connection(), "/v1/self", Authorization=login("ann"), **more)
        assert (status, told["user"]) == (200, "ann")
    word = site.tokens.create("ben", ("read", "operator"), time.time(), 60.0)
    assert asked(site.connection(), "/v1/self", Authorization=f"Bearer {word}")[0] == 401
    assert asked(site.connection(), "/v1/status", Authorization=login("ann"))[0] == 200
    status, _, page = asked(site.connection(), "/", Authorization=login("ann"))
    assert status == 200 and b"<title>" in page


def test_a_stream_comes_through_nginx_at_once_and_what_is_too_large_does_not(site: Site) -> None:
    connection = site.connection()
    connection.request("GET", "/v1/stream", headers={"Authorization": login("ann")})
    answer = connection.getresponse()
    assert answer.status == 200 and answer.readline() == b": headway\n"
    other = site.connection()
    # It is refused by its length; a body on its way could meet a connection that is closed.
    other.putrequest("POST", "/v1/actions/elastic")
    other.putheader("Authorization", login("ann"))
    other.putheader("Content-Length", "20000")
    other.endheaders()
    assert other.getresponse().status == 413


def test_a_page_of_another_site_acts_for_nobody(site: Site) -> None:
    connection = site.connection()
    headers = {
        "Authorization": login("ann"), "Origin": "https://evil.example.net",
        "Content-Type": "application/json",
    }  # fmt: skip
    connection.request("POST", "/v1/actions/unreserve", b'{"reservation": "r1"}', headers)
    assert connection.getresponse().status == 403
