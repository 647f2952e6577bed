"""What holds of each request: the host, other sites, JSON; and of each answer: its headers."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from web import ByHeader, Told
from web import client as client_of

from headway.serve.app import make_app

USER = {"test-user": "alice"}


def client(host: str = "http://localhost", told: Told | None = None) -> TestClient:
    return client_of(make_app(told or Told(), ByHeader("read", "user")), USER, host)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8642", "127.0.0.1:1", "[::1]:8642", "localhost."])
def test_this_machine_has_names(host: str) -> None:
    assert client().get("/v1/jobs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.example:8642", "127.0.0.2", "", "[::2]", "["],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/jobs", "/"])
def test_a_name_that_was_bent_to_this_address_is_refused(host: str, path: str) -> None:
    answer = client().get(path, headers={"host": host})
    assert answer.status_code == 421
    assert "x" not in answer.json()["detail"].split()


def test_a_site_names_its_own() -> None:
    app = make_app(Told(), ByHeader(), hosts=["queue.site.example"])
    assert client_of(app, USER, "https://queue.site.example").get("/v1/jobs").status_code == 200


ACTION = {"job": "7", "command": "ET", "amount": 60}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"origin": "http://localhost"}, 200),
        ({"origin": "http://localhost:8642"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=application/json"}, 415),
        ({"content-type": ""}, 415),
    ],
    ids=str,
)
def test_writes_of_other_sites_are_refused(headers: dict[str, str], code: int) -> None:
    from headway.service.protocol import Reply

    told = Told(Reply("accepted", "done"))
    answer = client(told=told).post("/v1/actions/elastic", json=ACTION, headers=headers)
    assert answer.status_code == code
    assert len(told.asked) == (code == 200)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
def test_pages_of_other_sites_read_no_data_but_may_link_to_the_page(site: str) -> None:
    told = Told()
    asking = client(told=told)
    assert asking.get("/v1/jobs", headers={"sec-fetch-site": site}).status_code == 403
    assert not told.asked
    assert asking.get("/", headers={"sec-fetch-site": site}).status_code == 200


def test_no_site_is_asked_whether_it_may() -> None:
    """No answer has a header of CORS."""
    asking = client()
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answers = [
        asking.options("/v1/actions/elastic", headers=preflight),
        asking.get("/v1/jobs", headers={"origin": "http://evil.example"}),
    ]
    assert not any(name.startswith("access-control") for answer in answers for name in answer.headers)
    assert answers[0].status_code == 403


@pytest.mark.parametrize("path", ["/", "/v1/jobs", "/v1/none", "/none", "/v1/jobs?count=x"])
def test_each_answer_says_what_a_browser_may_do_with_it(path: str) -> None:
    headers = client().get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert (headers.get("cache-control") == "no-store") == path.startswith("/v1")
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd", "//etc/passwd",
     "/.%00./app.py", "/index.html%00.png", "/%00", "/" + "a" * 5000, "/..\\app.py", "/%5c..%5capp.py",
     "/v1/../app.py", "/page/../../app.py", "/%c0%ae%c0%ae/app.py", "/etc/passwd", "/./../resources.py"],
)  # fmt: skip
def test_paths_lead_nowhere_else(path: str) -> None:
    answer = client().get(path)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text and "import" not in answer.text


@pytest.mark.parametrize("job", ["..%2f..", "%00", "7%00", "%2e%2e", "%0a", "x" * 257, "%ff"])
def test_ids_are_text_and_nothing_else(job: str) -> None:
    told = Told()
    answer = client(told=told).get(f"/v1/jobs/{job}")
    assert answer.status_code in (200, 400, 404)
    for request, _ in told.asked:
        assert "\0" not in request.job and len(request.job) <= 256


def test_script_in_a_name_stays_text() -> None:
    answer = client().get("/v1/jobs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["data"]["jobs"][0]["name"] == "<b>x</b>"


def test_script_in_a_request_comes_back_as_json_alone() -> None:
    answer = client().get("/v1/jobs", params={"count": "<script>alert(1)</script>"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_what_breaks_is_told_in_the_log_alone(capfd: Any) -> None:
    class Broken(Told):
        async def ask(self, request: Any, caller: Any) -> Any:
            raise RuntimeError("a secret of the machine's")

    app = make_app(Broken(), ByHeader())
    asking = TestClient(app, "http://localhost", raise_server_exceptions=False, headers=USER)
    answer = asking.get("/v1/jobs")
    assert answer.status_code == 500
    assert "secret" not in answer.text and "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
