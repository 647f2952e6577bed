"""The picture beside a daemon that runs: kept by what the daemon tells, also over the daemon's end."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from building import described
from structlog.testing import capture_logs
from threaded_daemon import Daemon, name_users
from waiting import HANG

from headway.errors import Failure
from headway.events import Event, JobEnded, JobSubmitted
from headway.serve.pictured import PictureSource
from headway.serve.source import Caller, DaemonSource
from headway.serve.stream import Item
from headway.service import protocol as p
from headway.service.changes import FORMAT, Begun, write_change
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

pytestmark = pytest.mark.waits
SPEAKER, STRANGER = 33333, 44444
NAMES = {SPEAKER: "web", STRANGER: "stranger"}
ME = Caller(pwd.getpwuid(os.geteuid()).pw_name, itself=True)
ANN, BEN = Caller("ann"), Caller("ben")


def submitted(job_id: str, processors: int, user: str) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, processors, 100, user=user))


#: Job a of ann runs; b of ben waits for it, c of ann behind it.
QUEUE = (submitted("a", 3, "ann"), submitted("b", 4, "ben"), submitted("c", 4, "ann"))


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Daemon]]:
    running: list[Daemon] = []
    name_users(monkeypatch, NAMES)

    def start(*events: Event, uid: int | None = None, **more: Any) -> Daemon:
        made = Daemon(
            tmp_path, *events, plugins=[Easy(), FirstFit()],
            serving={"speakers": ["web"], "operators": ["root"]}, **more,
        )  # fmt: skip
        made.uid = os.geteuid() if uid is None else uid
        running.append(made)
        return made

    yield start
    for one in running:
        one.close()


def source(daemon: Daemon, **more: Any) -> PictureSource:
    return PictureSource(DaemonSource(daemon.path, HANG), **more)


async def found(ours: PictureSource, request: p.AnyRequest, caller: Caller = ME) -> Any:
    """What a question finds."""
    return (await ours.ask(request, caller)).found


async def ids(ours: PictureSource, caller: Caller = ME) -> list[str]:
    return [job.id for job in (await found(ours, p.Jobs(), caller)).jobs]


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(HANG):
        while not true():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def kept(daemon: Daemon, **more: Any) -> AsyncIterator[PictureSource]:
    ours = source(daemon, **more)
    async with ours.running():
        await until(lambda: ours.is_current)
        yield ours


def test_the_picture_answers_as_the_daemon_does_and_asks_it_nothing(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE, private=True)
    theirs.settled()

    async def run() -> None:
        async with kept(theirs) as ours:
            for caller in (ME, ANN, BEN):
                for request in (p.Jobs(), p.Jobs(mine=True), p.Nodes(), p.Pools(), p.Bookings(), p.Cycle()):
                    told = await ours.daemon.ask(request, caller)
                    async with asyncio.timeout(HANG):
                        while await ours.ask(request, caller) != told:
                            await asyncio.sleep(0.01)
            ours.daemon = DaemonSource(Path("/nowhere"))
            assert await ids(ours, ANN) == ["c", "a"]
            status = (await ours.ask(p.Status(), ANN)).status
            assert status is not None and status.cycles == theirs.cycles()

    asyncio.run(run())


def test_what_is_not_in_the_picture_is_asked_of_the_daemon(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE)
    theirs.settled()

    async def run() -> None:
        async with kept(theirs) as ours:
            assert (await found(ours, p.Explain("b"))).id == "b"
            holes = await asyncio.gather(*[ours.ask(p.Holes(), one) for one in (ANN, BEN, ME)])
            assert holes[0].outcome == "accepted" and holes[0] is holes[1] is holes[2]
            with_pool = await ours.ask(p.Holes(pool="none"), ANN)
            assert with_pool.outcome == "unknown"

    asyncio.run(run())


def test_nobody_is_refused_because_another_user_asks_too_often(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE)
    theirs.settled()

    class Refuses(DaemonSource):
        async def ask(self, request: p.AnyRequest, caller: Caller) -> p.Reply:
            await asyncio.sleep(0)
            if caller == ANN:
                return p.Reply("failed", "too many requests")
            return await super().ask(request, caller)

    async def run() -> None:
        async with kept(theirs) as ours:
            ours.daemon = Refuses(theirs.path, HANG)
            refused, told = await asyncio.gather(*[ours.ask(p.Holes(), one) for one in (ANN, BEN)])
            assert (refused.outcome, told.outcome) == ("failed", "accepted")

    asyncio.run(run())


async def read(
    ours: PictureSource, caller: Caller, enough: Callable[[Item], bool], after: int | None
) -> list[Item]:
    items = []
    async with asyncio.timeout(HANG):
        async for item in ours.stream(caller, after):
            items.append(item)
            if enough(item):
                return items
    raise AssertionError


def is_a_cycle_with(what: bytes) -> Callable[[Item], bool]:
    return lambda item: item.kind == "cycle" and what in bytes(item.data)


def test_the_stream_goes_on_where_a_reader_was_and_tells_users_of_their_own_jobs(
    daemon: Callable[..., Daemon],
) -> None:
    theirs = daemon(*QUEUE, private=True)
    theirs.settled()

    async def run() -> None:
        async with kept(theirs) as ours:
            start = ours.stream_of.last
            theirs.cluster.happens(JobEnded(9.0, "a"))
            items = await read(ours, ME, is_a_cycle_with(b"JobStarted"), start)
            rest = await read(ours, ME, lambda item: item.number >= items[-1].number, start)
            assert rest == items
            later = await read(ours, ME, lambda item: item.number >= rest[-1].number, items[1].number)
            assert later == [one for one in rest if one.number > items[1].number]
            assert {"cycle", "decision", "event", "jobs"} <= {one.kind for one in rest}
            assert any(one.kind == "decision" and b'"b"' in bytes(one.data) for one in rest)
            mine = await read(ours, ANN, lambda item: item.number >= items[-1].number, start)
            said = b"".join(bytes(one.data) for one in mine if one.kind != "cycle")
            assert b'"a"' in said and b'"b"' not in said

    asyncio.run(run())


def test_the_daemon_goes_and_another_comes(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE)
    theirs.settled()

    async def run() -> None:
        async with kept(theirs) as ours:
            before = await ours.ask(p.Jobs(), ME)
            start = ours.stream_of.last
            await asyncio.to_thread(theirs.close)
            await until(lambda: ours.silent_since)
            last = await ours.ask(p.Jobs(), ME)
            assert last.found == before.found and last.as_of == before.as_of
            assert last.silent_since == ours.silent_since and "has not answered since" in last.reason
            with pytest.raises(Failure, match="has not answered since"):
                await ours.ask(p.Explain("b"), ME)
            daemon(submitted("z", 1, "ann"))
            await until(lambda: ours.is_current)
            async with asyncio.timeout(HANG):
                while await ids(ours) != ["z"]:
                    await asyncio.sleep(0.01)
            assert (await ours.ask(p.Jobs(), ME)).silent_since is None
            items = await read(
                ours, ME, lambda item: b"true" in bytes(item.data) and item.kind == "daemon", start
            )
            assert [b"true" in bytes(one.data) for one in items if one.kind == "daemon"] == [False, True]

    asyncio.run(run())


def test_a_daemon_that_begins_again_and_again_is_followed_as_soon_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pauses = tmp_path / "again", list[float]()

    async def run() -> None:
        ends, sleep = asyncio.Event(), asyncio.sleep

        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(write_change(Begun(FORMAT)) + b'["whole"]\n')
            await ends.wait()
            ends.clear()
            writer.close()

        async def noted(seconds: float) -> None:
            pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", noted)
        ours = PictureSource(DaemonSource(path))
        with capture_logs() as log:
            async with await asyncio.start_unix_server(other, path), ours.running():
                for turn in range(1, 5):
                    async with asyncio.timeout(HANG):
                        while not ours.is_current:
                            await sleep(0.01)
                    ends.set()
                    async with asyncio.timeout(HANG):
                        while len(pauses) < turn:
                            await sleep(0.01)
        said = [entry["event"] for entry in log]
        assert said[:4] == 2 * ["the daemon is followed", "the daemon is not followed"]

    asyncio.run(run())
    assert set(pauses) == {0.2}


def test_a_daemon_that_is_stopped_is_silent(daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    path = tmp_path / "mute"

    async def run() -> None:
        async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(write_change(Begun(FORMAT)) + b'["whole"]\n')

        server = await asyncio.start_unix_server(mute, path)
        ours = PictureSource(DaemonSource(path), silent=0.05)
        async with server, ours.running():
            await until(lambda: ours.silent_since)
            assert (await ours.ask(p.Jobs(), ME)).silent_since

    asyncio.run(run())


@pytest.mark.parametrize(
    "said",
    [
        b'{"outcome":"failed","reason":"not a request"}\n', b'["begun",99]\n',
        b'["begun",1]\n["later"]\n', b"x\n", b"",
    ],
)  # fmt: skip
def test_of_a_daemon_that_cannot_be_followed_each_thing_is_asked(said: bytes, tmp_path: Path) -> None:
    path, requests = tmp_path / "other", list[bytes]()

    async def run() -> None:
        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readline()
            requests.append(line)
            writer.write(said if b"follow" in line else p.write(p.Reply("accepted", "from itself")))
            writer.close()

        server = await asyncio.start_unix_server(other, path)
        ours = PictureSource(DaemonSource(path))
        async with server, ours.running():
            await until(lambda: len(requests) >= 2)
            assert (await ours.ask(p.Jobs(), ME)).reason == "from itself"
            assert not ours.is_current and ours.silent_since is None

    asyncio.run(run())


@pytest.mark.parametrize(
    "then", [b'{"outcome":"refused","reason":"no more"}\n', b'["order","no such queue"]\n']
)
def test_a_daemon_that_cannot_be_followed_any_more_is_asked(then: bytes, tmp_path: Path) -> None:
    path, enough = tmp_path / "other", asyncio.Event()
    follows = 0

    async def run() -> None:
        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal follows
            line = await reader.readline()
            if b"follow" in line:
                follows += 1
                writer.write(write_change(Begun(FORMAT)) + b'["whole"]\n' if follows == 1 else then)
                await enough.wait()
                writer.write(then)
            else:
                writer.write(p.write(p.Reply("accepted", "from itself")))
            writer.close()

        server = await asyncio.start_unix_server(other, path)
        ours = PictureSource(DaemonSource(path))
        async with server, ours.running():
            await until(lambda: ours.is_current)
            enough.set()
            await until(lambda: not ours.is_current)
            reply = await ours.ask(p.Jobs(), ME)
            assert (reply.reason, reply.silent_since) == ("from itself", None)

    asyncio.run(run())


# ---------------------------------------------------------------------- who may follow


def following(theirs: Daemon, uid: int) -> tuple[socket.socket, bytes]:
    """A connection on which a user asked to follow, and the first that was said."""
    theirs.uid = uid
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(HANG)
    connection.connect(str(theirs.path))
    connection.sendall(p.write(p.Follow(FORMAT)))
    said = b""
    while b"\n" not in said:
        said += connection.recv(65536)
    return connection, said


def test_a_stranger_may_not_follow_and_a_speaker_may(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE)
    theirs.settled()
    connection, said = following(theirs, STRANGER)
    assert p.read_reply(said).outcome == "refused" and b"speakers" in said
    connection.close()
    connection, said = following(theirs, SPEAKER)
    assert said.startswith(b'["begun",1,false,["root"],false]')
    connection.close()


def test_no_more_than_four_follow(daemon: Callable[..., Daemon]) -> None:
    theirs = daemon(*QUEUE)
    theirs.settled()
    connections = [following(theirs, os.geteuid())[0] for _ in range(4)]
    more, said = following(theirs, os.geteuid())
    assert p.read_reply(said).reason == "too many programs follow the daemon"
    for one in (more, *connections):
        one.close()
    # One that went away makes room.
    while not (said := _again(theirs)).startswith(b"["):
        assert b"too many" in said


def _again(theirs: Daemon) -> bytes:
    connection, said = following(theirs, os.geteuid())
    connection.close()
    return said
