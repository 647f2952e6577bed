"""The page in headless Chromium, under a policy that allows nothing inline and no other host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import axe_core_python
import pytest
from devtools import Browser
from page_site import HOSTILE, OneUser, Site, served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from headway.serve.app import make_app
from headway.serve.source import Caller

pytestmark = [pytest.mark.browser, pytest.mark.waits]
AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
VIEWS = ["queue", "job", "gantt", "nodes", "time", "decisions", "shares", "when", "what-if"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_complaints(browser: Browser) -> Iterator[None]:
    """What the browser says against the page: errors, and what the policy has blocked."""
    browser.size(1280, 800)
    browser.theme("light")
    browser.complaints.clear()
    browser.requests.clear()
    yield
    # A refusal is no mistake of the page.
    assert [one for one in browser.complaints if "status of 4" not in one] == []


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(remark="only your own jobs are shown")


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(site) as found:
        yield found


def path_of(view: str) -> str:
    return f"#/{view}" + ("/100001" if view == "job" else "")


def findings(browser: Browser) -> list[list[str]]:
    """What axe finds that is serious or critical."""
    browser.run(AXE.read_text(encoding="utf-8") + ";0")
    found = browser.run(
        "axe.run(document, {resultTypes: ['violations']}).then(all => all.violations.map("
        "one => [one.impact, one.id, one.nodes.map(node => node.html)]))"
    )
    return [one for one in found if one[0] in ("serious", "critical")]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_finding_of_axe(browser: Browser, address: str, view: str, theme: str) -> None:
    browser.theme(theme)
    for width in (1280, 400):
        browser.size(width, 900)
        browser.view(address + path_of(view), view)
        assert findings(browser) == []
        assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("view", VIEWS)
def test_names_are_text(browser: Browser, address: str, view: str) -> None:
    browser.view(address + path_of(view), view)
    assert browser.run("document.querySelectorAll('#view img, #view script').length") == 0
    assert browser.run("window.hit") is None
    if view in ("queue", "job", "nodes", "decisions", "shares"):
        shown = browser.wait("document.getElementById('view').textContent")
        assert HOSTILE in shown


def test_the_chart_tells_of_a_reservation_in_words(browser: Browser, address: str) -> None:
    browser.view(address + "#/gantt", "gantt")
    browser.wait("document.querySelector('#view .said').textContent.includes('1 reservation')")
    # Below the jobs of the first node, beside now.
    browser.run(
        "(canvas => { const box = canvas.getBoundingClientRect();"
        "canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width * 0.6,"
        "clientY: box.top + (box.height - 38) * 0.23 + 4})); })"
        "(document.querySelector('#view canvas[tabindex]'))"
    )
    told = browser.wait("document.querySelector('#view .tip:not([hidden])').textContent")
    assert told.startswith(f"Reserved: {HOSTILE}") and "users ann" in told


def test_only_this_host_is_asked(browser: Browser, address: str) -> None:
    for view in VIEWS:
        browser.view(address + path_of(view), view)
    # The browser draws its own fields of time with pictures that it brings.
    assert {url for url in browser.requests if not url.startswith((address, "about:", "data:"))} == set()


def test_the_remark_of_the_server_is_shown(browser: Browser, address: str) -> None:
    browser.view(address + "#/queue", "queue")
    assert "only your own jobs are shown" in browser.run("document.getElementById('view').innerText")


def test_the_keyboard_goes_through_the_queue_to_a_job(browser: Browser, address: str) -> None:
    browser.view(address + "#/queue", "queue")
    browser.press("j")
    browser.press("j")
    assert browser.run("document.activeElement.textContent") == "100001"
    browser.press("k")
    assert browser.run("document.activeElement.textContent") == "100000"
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    browser.wait("document.documentElement.dataset.view === 'job' && location.hash === '#/job/100000'")
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")
    browser.press("Escape")
    browser.wait("!document.getElementById('keys').open")
    browser.press("/")
    assert browser.run("document.activeElement.id") == "find"
    browser.write("100002")
    browser.press("Enter")
    browser.wait("location.hash === '#/job/100002'")


def test_every_control_is_reached_by_tab(browser: Browser, address: str) -> None:
    browser.view(address + "#/queue", "queue")
    wanted = browser.run(
        "[...document.querySelectorAll('a[href], button, input, select')]"
        ".filter(one => one.offsetParent && !one.disabled).length"
    )
    reached = set()
    browser.run("window.numbered = new Map(); 0")
    for _ in range(wanted + 5):
        browser.press("Tab")
        reached.add(browser.run(
            "(one => (numbered.has(one) || numbered.set(one, numbered.size), numbered.get(one)))"
            "(document.activeElement)"
        ))  # fmt: skip
    assert len(reached) >= wanted


def test_filters_are_in_the_address(browser: Browser, site: Site, address: str) -> None:
    browser.view(address + "#/queue?status=running&user=user1", "queue")
    assert browser.run("document.querySelectorAll('#view tbody tr').length") == 1
    asked = [one for one in site.asked if type(one).__name__ == "JobsInOrder"][-1]
    assert (asked.status, asked.user, asked.first) == ("running", "user1", 0)


def test_all_jobs_are_sorted_not_those_of_a_page(browser: Browser) -> None:
    site = Site(waiting=600, running=0)
    with served(site) as address:
        browser.view(address + "#/queue", "queue")
        row = "document.querySelector('#view tbody tr').dataset.key"
        assert browser.run(row) == "100000"
        head = (
            "[...document.querySelectorAll('thead button')].find(one => one.textContent.startsWith('Proc'))"
        )
        browser.run(head + ".click()")
        browser.wait(head + ".closest('th').getAttribute('aria-sort') === 'ascending'")
        browser.run(head + ".click()")
        browser.wait(head + ".closest('th').getAttribute('aria-sort') === 'descending'")
        assert browser.run(row) == "100003"
        for _ in range(5):
            before = browser.run(row)
            browser.press("n")
            browser.wait(f"{row} !== {before!r}")
        sizes = "[...document.querySelectorAll('#view td.c-size')].map(one => one.textContent).join()"
        assert set(browser.run(sizes).split(",")) == {"8"}
        assert "Jobs 501 to 600, the last" in browser.run("document.getElementById('view').innerText")


class Operator:
    async def caller(self, request: Request) -> Caller | None:
        return Caller("root", frozenset({"read", "operator"}))


def ask_what_if(browser: Browser, address: str) -> None:
    browser.view(address + "#/what-if?policy=easy", "what-if")
    browser.run("document.querySelector('#view [name=options]').focus()")
    browser.write('{"bookings": 3}')
    browser.press("Enter")
    browser.wait("document.querySelectorAll('#view .rows tbody tr').length === 5")


def test_both_courses_are_shown_in_words_and_as_a_chart(browser: Browser) -> None:
    site = Site()
    with served(site, make_app(site, Operator())) as address:
        ask_what_if(browser, address)
        asked = [one for one in site.asked if type(one).__name__ == "WhatIf"]
        assert [(one.policy, one.options) for one in asked] == [("easy", '{"bookings":3}')]
        text = browser.run("document.getElementById('view').textContent")
        assert "Under easy, of 3 waiting jobs 1 would start earlier, 1 later" in text
        assert "71.0 % of the processors are busy until" in text and "83.0 % under easy." in text
        assert HOSTILE in text and browser.run("window.hit") is None
        assert "▼ 5 min later" in text and "▲ 1 min earlier" in text and "not known" in text
        assert "Jobs 1 to 3 of 3; 7 more jobs behind these are left out." in text
        # What is on the screen is in the address, and stays while the page asks for other things.
        assert "policy=easy" in browser.run("location.hash")
        head = "[...document.querySelectorAll('thead button')].find(one => one.textContent === 'Change')"
        browser.run(head + ".click()")
        browser.wait(head + ".closest('th').getAttribute('aria-sort') === 'ascending'")
        row = "[...document.querySelectorAll('#view .rows')].at(-1).querySelector('tbody tr').dataset.key"
        assert browser.run(row) == "100001"
        for theme in ("light", "dark"):
            browser.theme(theme)
            for width in (1280, 400):
                browser.size(width, 900)
                assert findings(browser) == []
                assert browser.run("document.documentElement.scrollWidth") <= width


def test_why_there_is_no_what_if_is_said(browser: Browser, address: str) -> None:
    """This user's way does not allow it; and options that are none are not asked."""
    browser.view(address + "#/what-if?policy=easy", "what-if")
    browser.run("document.querySelector('#view form button').click()")
    browser.wait("document.querySelector('#view').textContent.includes(\"the scope 'operator'\")")
    browser.view(address + "#/what-if?policy=easy&options=[1]", "what-if")
    browser.run("document.querySelector('#view form button').click()")
    browser.wait("document.querySelector('#view').textContent.includes('expected an object in JSON')")


def test_it_goes_on_without_the_daemon(browser: Browser) -> None:
    site = Site()
    with served(site) as address:
        browser.view(address + "#/queue", "queue")
        assert browser.run("document.getElementById('away').hidden")
        site.away = True
        browser.wait("!document.getElementById('away').hidden")
        assert "The daemon is away since" in browser.run("document.getElementById('away').textContent")
        assert browser.run("document.querySelectorAll('#view tbody tr').length") == 6
        site.away = False
        browser.wait("document.getElementById('away').hidden")


async def a_stream(request: Request) -> Response:
    """A cycle with a decision; a reader that comes again with its number gets what followed."""
    items = [
        ("cycle", {"number": 8, "at": 1.8e9}),
        ("decision", {"decision": "Start", "job": "77", "reason": HOSTILE}),
    ]
    if request.headers.get("last-event-id") == "5":
        items = [
            ("decision", {"decision": "Hold", "job": "78"}),
            ("event", {"kind": "JobEnded", "at": 1.8e9, "job": "79"}),
        ]
    elif "last-event-id" in request.headers:
        return Response("{}", 400)
    told = "".join(
        f"id: {5 + at}\nevent: {kind}\ndata: {json.dumps(data)}\n\n" for at, (kind, data) in enumerate(items)
    )
    # The second item of the first answer is cut off.
    return Response(told if "78" in told else told[:-1], media_type="text/event-stream")


def test_the_stream_is_read_and_taken_up_again(browser: Browser) -> None:
    site = Site()
    app = Starlette(
        routes=[Route("/v1/stream", a_stream), Mount("/", make_app(site, OneUser(), history=site.past))]
    )
    with served(site, app) as address:
        browser.view(address + "#/decisions", "decisions")
        browser.wait("document.getElementById('view').textContent.includes('Hold78')")
        assert "Start77" not in browser.run("document.getElementById('view').textContent")
        assert "event JobEnded" not in browser.run("document.getElementById('view').textContent")
        browser.run("document.querySelector('#view input[type=checkbox]').click()")
        assert "event JobEnded79" in browser.run("document.getElementById('view').textContent")


def test_who_is_not_known_gives_a_token(browser: Browser) -> None:
    """It becomes a session, of which the page sees nothing."""

    class ByCookie:
        async def caller(self, request: Request) -> Caller | None:
            return Caller("alice") if request.cookies.get("headway") == "yes" else None

    async def begin(request: Request) -> Response:
        if request.headers["authorization"] != "Bearer right":
            return JSONResponse({"detail": "no such token"}, 401)
        return Response(status_code=204, headers={"set-cookie": "headway=yes; HttpOnly; SameSite=Strict"})

    site = Site()
    session = Route("/v1/session", begin, methods=["POST"])
    with served(
        site, Starlette(routes=[session, Mount("/", make_app(site, ByCookie(), history=site.past))])
    ) as address:
        browser.view(address + "#/queue", "queue")
        browser.wait("!!document.getElementById('token')")
        for token in ("wrong", "right"):
            browser.run(
                "document.getElementById('token').value = ''; document.getElementById('token').focus()"
            )
            browser.write(token)
            browser.press("Enter")
            if token == "wrong":
                browser.wait("document.querySelector('form.notice').textContent.includes('no such token')")
        browser.wait("document.querySelectorAll('#view tbody tr').length === 6")
        assert browser.run("document.getElementById('token')") is None


def shown_rows(browser: Browser) -> int:
    return int(browser.run("document.querySelectorAll('#view tbody tr').length"))


def taken(browser: Browser, script: str) -> float:
    """Seconds of processor time of the page's thread until the screen shows what a script does."""
    before = browser.busy()
    painted = "await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
    browser.run(f"(async () => {{ {script}; {painted}; }})()")
    return browser.busy() - before


def test_fifty_thousand_jobs_and_ten_thousand_nodes(browser: Browser) -> None:
    """In processor time, which other programs do not make longer: first content within a second, what is done
    by hand within 100 ms, less than 100 MB."""
    site = Site(nodes=10_000, running=10_000, waiting=50_000)
    with served(site) as address:
        browser.open("about:blank")
        before = browser.busy()
        browser.view(address + "#/queue", "queue")
        assert shown_rows(browser) == 100
        assert browser.busy() - before < 1.0
        assert taken(browser, "document.activeElement.blur(); document.dispatchEvent("
                     "new KeyboardEvent('keydown', {key: 'j', bubbles: true}))") < 0.1  # fmt: skip
        assert taken(browser, "document.querySelector('[data-do=next]').click()") < 0.1
        browser.wait("document.querySelector('#view tbody tr').dataset.key === '100100'")
        browser.view(address + "#/gantt", "gantt")
        canvas = "document.querySelector('#view canvas[tabindex]')"
        key = canvas + ".dispatchEvent(new KeyboardEvent('keydown', {key: %r}))"
        times = [taken(browser, key % name) for name in ("0", "+", "ArrowRight", "ArrowDown", "[", "-")]
        assert max(times) < 0.1, times
        assert browser.memory() < 100e6
        browser.view(address + "#/nodes", "nodes")
        assert taken(browser, key % "ArrowRight") < 0.1
        assert browser.run("document.querySelector('#view .said').textContent").startswith("n00000: ")
        assert browser.memory() < 100e6


def test_it_shows_a_new_cycle(browser: Browser) -> None:
    site = Site()
    with served(site) as address:
        browser.view(address + "#/job/100000", "job")
        site.cycle, site.jobs = 8, site.jobs[1:]
        browser.wait("document.getElementById('state').textContent.includes('cycle 8')")
        browser.wait("document.querySelector('#view').textContent.includes('It has ended, or left')")


# ---------------------------------------------------------------------- the past, from the journal

SAID, CANVAS = (
    "document.querySelector('#view .said').textContent",
    "document.querySelector('#view canvas[tabindex]')",
)
ROWS = "[...document.querySelectorAll('#view tbody tr')]"


def key(name: str) -> str:
    return f"{CANVAS}.dispatchEvent(new KeyboardEvent('keydown', {{key: {name!r}}}))"


def test_the_chart_goes_back_to_before_the_page_was_opened(
    browser: Browser, site: Site, address: str
) -> None:
    site.past.asked.clear()
    browser.view(address + "#/gantt", "gantt")
    for _ in range(40):
        if "10 ended" in browser.run(SAID):
            break
        browser.run(key("ArrowLeft") + ";" + key("-"))
        browser.run("new Promise(done => setTimeout(done, 300))")
    assert "10 ended" in browser.run(SAID)
    asked = [one for one in site.past.asked if type(one).__name__ == "Work"]
    # What was read is not read again: each question ends where the one before began.
    assert all(later.until == earlier.since for earlier, later in pairwise(asked))
    browser.run("document.querySelector('#view details').open = true; 0")
    browser.wait(
        f"{ROWS}.some(row => row.textContent.includes('past9') && row.textContent.includes('failed'))"
    )


def test_a_job_that_is_over_has_a_page(browser: Browser, address: str) -> None:
    browser.view(address + "#/job/past1", "job")
    shown = browser.wait("document.getElementById('view').textContent")
    assert "The job is over: failed" in shown and HOSTILE in shown and "on 1 node" in shown
    assert "not in the cluster's queue any more" in shown and "decided: Start" in shown
    assert browser.run("window.hit") is None
    browser.run("document.getElementById('find').focus()")
    browser.write("past3")
    browser.press("Enter")
    browser.wait("location.hash === '#/job/past3'")


def test_decisions_go_back(browser: Browser, site: Site, address: str) -> None:
    browser.view(address + "#/decisions", "decisions")
    browser.wait(f"{ROWS}.some(row => row.textContent.includes('past9'))")
    assert browser.run(f"{ROWS}.filter(row => row.textContent.includes('past')).length") == 10
    assert "nothing older" in browser.run("document.getElementById('view').textContent")
    assert "event" not in browser.run(f"{ROWS}.map(row => row.textContent).join()")
    browser.run("document.querySelector('#view input[type=checkbox]').click()")
    browser.wait(f"{ROWS}.filter(row => row.textContent.includes('event JobEnded')).length === 10")
    at = site.now - 8.5 * 3600
    browser.run(
        "(field => { const zone = new Date().getTimezoneOffset() * 60;"
        f"field.value = new Date(({at} - zone) * 1000).toISOString().slice(0, 16);"
        "field.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#view input[type=datetime-local]'))"
    )
    browser.wait(f"{ROWS}.length > 0 && {ROWS}.every(row => /past[789]/.test(row.textContent))")


def test_the_past_is_there_without_the_daemon(browser: Browser) -> None:
    site = Site(away=True)
    with served(site) as address:
        browser.view(address + "#/job/past2", "job")
        browser.wait("document.getElementById('view').textContent.includes('The job is over: failed')")
        assert "no daemon answers" in browser.run("document.getElementById('view').textContent")
        browser.view(address + "#/decisions", "decisions")
        browser.wait(f"{ROWS}.some(row => row.textContent.includes('past9'))")
        browser.view(address + "#/gantt", "gantt")
        browser.wait(f"/ [1-9][0-9]* ended/.test({SAID})")
        assert "Only what has ended is shown" in browser.run("document.getElementById('view').textContent")
        browser.complaints[:] = [one for one in browser.complaints if "status of 503" not in one]


def test_a_journal_that_cannot_be_read_is_told_in_words(browser: Browser) -> None:
    site = Site()
    site.past.trouble = "the past cannot be told: journal x.db: cannot be read: Permission denied"
    with served(site) as address:
        for view in ("gantt", "decisions", "job"):
            browser.view(address + path_of(view), view)
            browser.wait("document.getElementById('view').textContent.includes('Permission denied')")
        browser.complaints[:] = [one for one in browser.complaints if "status of 503" not in one]
