"""The page in headless Chromium, under a policy that allows nothing inline and no other host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import axe_core_python
import pytest
from devtools import Browser
from page_site import HOSTILE, Site, served

pytestmark = [pytest.mark.browser, pytest.mark.waits]
AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
VIEWS = ["queue", "job", "gantt", "nodes", "time", "decisions", "shares", "when"]


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
    assert browser.complaints == []


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(remark="only your own jobs are shown")


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(site) as found:
        yield found


def path_of(view: str) -> str:
    return f"#/{view}" + ("/100001" if view == "job" else "")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_finding_of_axe(browser: Browser, address: str, view: str, theme: str) -> None:
    browser.theme(theme)
    for width in (1280, 400):
        browser.size(width, 900)
        browser.view(address + path_of(view), view)
        browser.run(AXE.read_text(encoding="utf-8") + ";0")
        found = browser.run(
            "axe.run(document, {resultTypes: ['violations']}).then(all => all.violations.map("
            "one => [one.impact, one.id, one.nodes.map(node => node.html)]))"
        )
        assert [one for one in found if one[0] in ("serious", "critical")] == []
        assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("view", VIEWS)
def test_names_are_text(browser: Browser, address: str, view: str) -> None:
    browser.view(address + path_of(view), view)
    assert browser.run("document.querySelectorAll('#view img, #view script').length") == 0
    assert browser.run("window.hit") is None
    if view in ("queue", "job", "nodes", "decisions", "shares"):
        shown = browser.wait("document.getElementById('view').textContent")
        assert HOSTILE in shown


def test_only_this_host_is_asked(browser: Browser, address: str) -> None:
    for view in VIEWS:
        browser.view(address + path_of(view), view)
    assert {url for url in browser.requests if not url.startswith((address, "about:"))} == set()


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
    asked = [one for one in site.asked if type(one).__name__ == "Jobs"][-1]
    assert (asked.status, asked.user, asked.first) == ("running", "user1", 0)


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


def test_it_shows_a_new_cycle(browser: Browser) -> None:
    site = Site()
    with served(site) as address:
        browser.view(address + "#/job/100000", "job")
        site.cycle, site.jobs = 8, site.jobs[1:]
        browser.wait("document.getElementById('state').textContent.includes('cycle 8')")
        browser.wait("document.querySelector('#view').textContent.includes('It has ended, or left')")
