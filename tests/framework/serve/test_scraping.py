"""``/metrics``: the figures as text, for those that may read."""

from __future__ import annotations

import pytest
from web import ByHeader, Told
from web import client as client_of

from headway.errors import Failure
from headway.measured.report import Measured
from headway.serve.app import make_app
from headway.serve.source import Caller
from headway.service import protocol as p

FIGURES = p.Reply("accepted", metrics=Measured("0", "drive", "tc", 1, 0.0))


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics"),
    ],
)
def test_figures_are_text_of_the_kind_that_is_wanted(accept: str, kind: str) -> None:
    source = Told(FIGURES)
    asking = client_of(make_app(source, ByHeader()), {"test-user": "prometheus", "accept": accept})
    answer = asking.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.text.startswith("# ") and answer.text.rstrip().endswith("# EOF") == (kind[0] == "a")
    assert source.asked == [(p.Metrics(), Caller("prometheus"))]


def test_the_same_is_a_resource_as_json() -> None:
    answer = client_of(make_app(Told(FIGURES), ByHeader()), {"test-user": "a"}).get("/v1/metrics")
    assert answer.status_code == 200 and "plugin_seconds" in answer.json()["data"]


@pytest.mark.parametrize(("scopes", "user", "code"), [(("user",), "alice", 403), (("read",), "", 401)])
def test_who_may_not_read_gets_none(scopes: tuple[str, ...], user: str, code: int) -> None:
    source = Told(FIGURES)
    asking = client_of(make_app(source, ByHeader(*scopes)), {"test-user": user} if user else None)
    assert asking.get("/metrics").status_code == code
    assert not source.asked


@pytest.mark.parametrize("reply", [Failure("no daemon answers"), p.Reply("failed", "not now")])
def test_without_figures_there_is_no_text(reply: p.Reply | Failure) -> None:
    asking = client_of(make_app(Told(reply), ByHeader()), {"test-user": "alice"})
    assert asking.get("/metrics").status_code == 503
