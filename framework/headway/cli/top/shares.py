"""Accounts and users: their shares, what they used, and how they stand."""

from __future__ import annotations

import msgspec

from headway.cli.top.asking import Questions
from headway.cli.top.lines import Column, Line, line, table
from headway.cli.top.view import Listing, Room, Shared
from headway.inquiry.pages import MOST
from headway.service.protocol import PluginQuestion, Told


class Share(msgspec.Struct):
    """An account, or a user in it: what is shown of the answer to the question `shares`."""

    account: str
    user: str = ""
    depth: int = 0
    shares: float | None = None
    norm_shares: float = 0.0
    usage: float = 0.0
    norm_usage: float = 0.0
    effective_usage: float = 0.0
    fair_share: float | None = None


class _Page(msgspec.Struct):
    rows: tuple[Share, ...]
    next: int | None = None


class Shares(Listing):
    """The tree of accounts, a page of it."""

    name = "shares"
    hints = "up/down scroll"
    told = 0

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.shares: tuple[Share, ...] = ()
        self.first, self.is_all = 0, True

    def look(self, room: Room) -> Questions:
        first = self.top // MOST * MOST
        text = msgspec.json.encode({"first": first, "count": MOST}).decode()
        reply = yield PluginQuestion("shares", text)
        if not isinstance(reply.found, Told):
            self.says, self.shares = reply.reason, ()
            return
        try:
            found = msgspec.json.decode(reply.found.answer, type=_Page)
        except msgspec.DecodeError as error:
            self.says = f"The plugin's answer has another shape: {error}"
            return
        self.says, self.shares, self.first, self.is_all = "", found.rows, first, found.next is None
        self.shared.remark = reply.reason

    def length(self) -> int:
        return self.first + len(self.shares) + (0 if self.is_all else 1)

    def draw(self, room: Room) -> list[Line]:
        if not self.shares:
            return [line(self.says)]
        self.point(self.at, room)
        begin = self.top - self.first
        shown = self.shares[max(0, begin) : begin + self.rows(room)]
        head, texts = table(COLUMNS, shown, room.width - 1)
        rows = [self.marked(text, self.top + at, room) for at, text in enumerate(texts)]
        return [line(" " + head, "head"), *rows]


def _part(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


COLUMNS: list[Column[Share]] = [
    Column("account", lambda row: " " * row.depth + row.account, 24),
    Column("user", lambda row: row.user, 12),
    Column("shares", lambda row: "parent" if row.shares is None else f"{row.shares:g}", 9, right=True),
    Column("of all", lambda row: _part(row.norm_shares), 7, right=True),
    Column("used", lambda row: _part(row.norm_usage), 7, right=True),
    Column("effective", lambda row: _part(row.effective_usage), 9, right=True),
    Column("usage", lambda row: f"{row.usage:.4g}", 10, right=True, spare=1),
    Column("fair share", lambda row: _part(row.fair_share), 20),
]
