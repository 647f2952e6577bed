"""Requests on their way to the daemon: so many in all, and no user takes all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headway.errors import Failure
from headway.serve.source import Caller, DaemonSource, NotAsked
from headway.service import protocol as p


@dataclass
class Slow(DaemonSource):
    """A daemon that answers when it is let."""

    lets: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Any] = field(default_factory=list)

    async def _asked(self, request: Any) -> p.Reply:
        self.asked.append(request)
        await self.lets.wait()
        return p.Reply("accepted")


def test_one_user_takes_no_other_users_turns() -> None:
    async def run() -> None:
        source = Slow(Path("none"), timeout=60.0, at_once=4, of_one=3)
        tasks = [asyncio.ensure_future(source.ask(p.Status(), Caller("mallory"))) for _ in range(50)]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(source.ask(p.Pools(), Caller("alice"))))
        while len(source.asked) < 4:
            await asyncio.sleep(0)
        assert [one.user for one in source.asked] == ["mallory"] * 3 + ["alice"]
        source.lets.set()
        assert {(await task).outcome for task in tasks} == {"accepted"}
        assert len(source.asked) == 51
        del tasks
        assert not source._turns.users

    asyncio.run(run())


def test_who_waits_for_a_turn_waits_no_longer_than_for_the_daemon() -> None:
    async def run() -> None:
        source = Slow(Path("none"), timeout=0.05, at_once=1)
        asked = [source.ask(p.Status(), Caller(user)) for user in ("alice", "bob")]
        for said in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(said, Failure) and "does not answer within" in str(said)

    asyncio.run(run())


def test_a_daemon_that_is_not_there_was_not_asked(tmp_path: Path) -> None:
    source = DaemonSource(tmp_path / "none.sock")
    with pytest.raises(NotAsked, match="no daemon answers"):
        asyncio.run(source.ask(p.Status(), Caller("alice")))
