"""`headway top` on a terminal of 80 x 24: keys, mouse, a daemon by its socket that goes and comes."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from top_daemons import NOW, ByTheSocket, Said, Scheduled, job, running, waiting
from waiting import HANG

from headway.cli.top import command
from headway.cli.top.app import Top
from headway.cli.top.asking import Pace, by_socket
from headway.cli.top.board import Board, names
from headway.errors import UserError
from headway.inquiry.reports import NodePage, NodeReport
from headway.service import Server
from headway.service.limits import Allowance
from headway.service.protocol import Jobs, Nodes

PROGRAM = "from headway.cli import main; main()"
MANY = Allowance(10**6, 1e6)
#: What is done with the terminal, until it has what is waited for.
Deed = Callable[[Top, "Pilot[None]"], Awaitable[None]]


def shown(app: Top) -> list[str]:
    """The text of the screen, line by line."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


async def until_shown(app: Top, pilot: Pilot[None], what: str) -> list[str]:
    """The screen, once this stands on it."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        await pilot.pause(0.02)
        if any(what in line for line in shown(app)):
            return shown(app)
    raise AssertionError("expected {!r} on the screen, found\n{}".format(what, "\n".join(shown(app))))


def on_a_terminal(path: Path, deed: Deed, every: float = 0.1) -> None:
    """Run the picture of the daemon at a socket, and do something with it."""

    async def run() -> None:
        app = Top(Board(str(path), Pace(MANY)), by_socket(path), every)
        async with app.run_test(size=(80, 24)) as pilot:
            await deed(app, pilot)

    asyncio.run(run())


def test_keys_go_through_the_views_and_a_job_opens(tmp_path: Path) -> None:
    ask = Scheduled(job("1", 8), job("2", 16, name="wide"), job("3", 4))

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        lines = await until_shown(app, pilot, ">2 ")
        assert len(lines) == 24 and all(len(line) == 80 for line in lines)
        for key, name in zip("234567", names()[1:], strict=True):
            await pilot.press(key)
            await until_shown(app, pilot, f"[{key} {name}]")
        await pilot.press("question_mark")
        await until_shown(app, pilot, "[? help]")
        await pilot.press("escape", "1", "enter")
        await until_shown(app, pilot, "Job 2 is pending in pool; user ann, name wide")
        await pilot.press("escape", "q")
        assert app._exit

    with Server(tmp_path / "s", ByTheSocket(ask)):
        on_a_terminal(tmp_path / "s", deed)


def test_a_text_is_looked_for_and_left_again(tmp_path: Path) -> None:
    said = Said([waiting(1, user="ann"), waiting(2, user="ben", name="wanted")])

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, ">1 ")
        await pilot.press("slash", *"wanted", "enter")
        await until_shown(app, pilot, ">2 ")
        await pilot.press("slash", *"q=", "escape")
        await until_shown(app, pilot, "with 'wanted'")
        await pilot.press("c")
        await until_shown(app, pilot, ">1 ")

    with Server(tmp_path / "s", ByTheSocket(said)):
        on_a_terminal(tmp_path / "s", deed)


def test_a_job_is_opened_by_its_id(tmp_path: Path) -> None:
    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, ">2 ")
        await pilot.press("o", *"3", "enter")
        await until_shown(app, pilot, "Job 3 is pending in pool")

    with Server(tmp_path / "s", ByTheSocket(Scheduled(*(job(str(n), 16) for n in range(1, 5))))):
        on_a_terminal(tmp_path / "s", deed)


def test_the_mouse_opens_views_and_jobs(tmp_path: Path) -> None:
    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, ">2 ")
        await pilot.click(offset=(12, 1))
        await until_shown(app, pilot, "[2 running]")
        await pilot.click(offset=(3, 1))
        await until_shown(app, pilot, ">2 ")
        await pilot.click(offset=(3, 5))
        await until_shown(app, pilot, ">3 ")
        await pilot.click(offset=(3, 5))
        await until_shown(app, pilot, "Job 3 is pending in pool")

    with Server(tmp_path / "s", ByTheSocket(Scheduled(job("1", 16), job("2", 8), job("3", 4)))):
        on_a_terminal(tmp_path / "s", deed)


def test_a_daemon_goes_and_comes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    servers = [Server(path, ByTheSocket(Said([waiting(1)])))]

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, ">1 ")
        servers.pop().close()
        lines = await until_shown(app, pilot, "no daemon answers")
        assert lines[2].startswith("! Since ") and any(line.startswith(">1 ") for line in lines)
        servers.append(Server(path, ByTheSocket(Said([waiting(7)]))))
        lines = await until_shown(app, pilot, ">7 ")
        assert not lines[2].strip()

    try:
        on_a_terminal(path, deed)
    finally:
        for server in servers:
            server.close()


def test_a_daemon_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, "no daemon answers")
        with Server(tmp_path / "s", ByTheSocket(Said([waiting(7)]))):
            await until_shown(app, pilot, ">7 ")

    on_a_terminal(tmp_path / "s", deed)


def test_who_leaves_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    """The daemon takes the question, and says nothing."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()

        async def deed(app: Top, pilot: Pilot[None]) -> None:
            await until_shown(app, pilot, "Asking the daemon")
            await pilot.press("2", "q")
            assert app._exit

        begun = time.monotonic()
        on_a_terminal(tmp_path / "s", deed)
        assert time.monotonic() - begun < 14.0


def test_names_of_users_are_no_markup_and_command_nothing(tmp_path: Path) -> None:
    name = "[red]x[/] [@click=app.quit]y[/] \x1b[31m\x07"

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        lines = await until_shown(app, pilot, "[red]x[/]")
        assert not any("\x1b" in line or "\x07" in line for line in lines)
        await pilot.click(offset=(5, 4))
        assert not app._exit

    with Server(tmp_path / "s", ByTheSocket(Said([waiting(1, user="u", waits_because=name)]))):
        on_a_terminal(tmp_path / "s", deed)


def test_ten_thousand_nodes_come_page_by_page_and_only_those_on_the_screen(tmp_path: Path) -> None:
    nodes = [NodeReport(f"n{n}", 4, n % 5) for n in range(10_000)]
    said = Said([])

    def answer(request: object) -> object:
        if isinstance(request, Nodes):
            last = min(request.first + request.count, len(nodes))
            said.found["nodes"] = NodePage(
                tuple(nodes[request.first : last]), last if last < len(nodes) else None
            )
        return said(request)  # type: ignore[arg-type]

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, "No such job")
        await pilot.press("4")
        await until_shown(app, pilot, "Node 1 of 1000 or more: n0, 0 of 4 cpus free")
        places = {request.first for request in said.asked if isinstance(request, Nodes)}
        assert places == {0, 500}

    with Server(tmp_path / "s", ByTheSocket(answer)):  # type: ignore[arg-type]
        on_a_terminal(tmp_path / "s", deed)


def test_moving_on_the_screen_asks_nothing(tmp_path: Path) -> None:
    said = Said([waiting(n) for n in range(1, 1000)])

    async def deed(app: Top, pilot: Pilot[None]) -> None:
        await until_shown(app, pilot, ">1 ")
        count = len(said.asked)
        await pilot.press(*["down"] * 10)
        await until_shown(app, pilot, ">11 ")
        assert len(said.asked) == count
        await pilot.press("pagedown", "pagedown", "pagedown")
        await until_shown(app, pilot, ">62 ")
        # The rows after these are not known.
        await pilot.press("pagedown")
        await until_shown(app, pilot, ">79 ")
        assert len([one for one in said.asked if isinstance(one, Jobs)]) >= 2

    with Server(tmp_path / "s", ByTheSocket(said)):
        on_a_terminal(tmp_path / "s", deed, every=3600.0)


# ---------------------------------------------------------------------- the command


def test_without_its_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.inputs.extras.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"`headway top` needs Textual.*extra `top`"):
        command.main([], standalone_mode=False)


def program(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, "top", *map(str, words)]
    env = {**os.environ, "COLUMNS": "", "LINES": "", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, env=env,
                          stdin=subprocess.DEVNULL)  # fmt: skip


def test_without_a_terminal_it_names_what_to_do() -> None:
    ran = program()
    assert ran.returncode == 2
    assert "expected a terminal, found a file or a pipe" in ran.stderr
    assert "`headway jobs`" in ran.stderr and "`headway top --once`" in ran.stderr


def test_a_terminal_that_cannot_move_its_cursor_is_named() -> None:
    mine, its = pty.openpty()
    env = {**os.environ, "TERM": "dumb"}
    ran = subprocess.Popen([sys.executable, "-c", PROGRAM, "top"], stdin=its, stdout=its, stderr=its, env=env)
    os.close(its)
    said = b""
    with pytest.raises(OSError, match="Input/output"):
        while True:
            said += os.read(mine, 4096)
    os.close(mine)
    assert ran.wait(HANG) == 2
    assert b"found TERM='dumb'; `headway jobs`" in said


def config_of(path: Path) -> Path:
    """A configuration whose daemon has this socket."""
    written = path.parent / "site.yaml"
    written.write_text(
        f"mode: drive\njournal: {path.parent}/j.db\nservice: {{socket: {path}}}\nplugins: [easy]\n"
        "cluster: {adapter: slurm, options: {partitions: [all]}}\n"
    )
    return written


def test_once_prints_one_picture_as_text(tmp_path: Path) -> None:
    said = Said([*(waiting(n) for n in range(1, 100)), running(500, "n1")])
    with Server(tmp_path / "s", ByTheSocket(said)):
        ran = program("--once", "-c", config_of(tmp_path / "s"), TZ="UTC")
        more = program("--once", "--show", "running", "-c", tmp_path / "site.yaml", COLUMNS="120", LINES="10")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(" headway top  tc, drive  5 jobs, 2 run") and len(lines) == 22
    assert lines[2].split() == [
        "job",
        "user",
        "pool",
        "status",
        "cpus",
        "limit",
        "waited",
        "place",
        "start",
        "reason",
    ]
    assert lines[3].split() == ["1", "ann", "batch", "pending", "4", "1h", "1m", "1", "22:23", "order"]
    assert not any(line.startswith(">") or "\x1b" in line for line in lines)
    assert "500" in more.stdout and len(more.stdout.splitlines()[0]) == 120 - 1


def test_once_without_a_daemon_fails_and_says_why(tmp_path: Path) -> None:
    ran = program("--once", "-c", config_of(tmp_path / "s"))
    assert ran.returncode == 1
    assert "no daemon answers at" in ran.stderr
    assert ran.stdout == ""


def test_the_time_of_the_last_cycle_is_shown(tmp_path: Path) -> None:
    assert NOW == 1.7e9
    with Server(tmp_path / "s", ByTheSocket(Said([]))):
        ran = program("--once", "-c", config_of(tmp_path / "s"), TZ="UTC")
    assert "as of 22:13:20" in ran.stdout
