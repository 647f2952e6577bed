"""The picture on a terminal, by Textual: keys, mouse and lines, and nothing that is known of jobs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from headway.cli.top.asking import Ask, Asker
from headway.cli.top.board import Board
from headway.cli.top.lines import Line
from headway.cli.top.view import Room

#: Look -> style, in the terminal's own colours, so that it is read on light and dark grounds.
LOOKS: Mapping[str, Style] = {
    "": Style(),
    "title": Style(reverse=True, bold=True),
    "head": Style(bold=True),
    "quiet": Style(),
    "chosen": Style(reverse=True),
    "runs": Style(color="green"),
    "booked": Style(color="cyan"),
    "part": Style(color="yellow"),
    "free": Style(),
    "bad": Style(color="red", bold=True),
}


class Picture(Widget, can_focus=True):
    """The lines of the board."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self._lines: list[Line] = []
        self._drawn: tuple[int, Room] | None = None
        #: Grows with each answer.
        self.edition = 0

    @property
    def room(self) -> Room:
        return Room(max(1, self.size.width), max(1, self.size.height))

    def renew(self) -> None:
        """Draw anew."""
        self.edition += 1
        self.refresh()

    def render_line(self, y: int) -> Strip:
        room = self.room
        if self._drawn != (self.edition, room):
            self._lines, self._drawn = self.board.draw(room), (self.edition, room)
        if y >= len(self._lines):
            return Strip.blank(room.width)
        return Strip([Segment(piece.text, LOOKS[piece.look]) for piece in self._lines[y]], room.width)


class Top(App[None]):
    """Asks every so many seconds, and at once when something else is to be shown."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "headway top"
    CSS = """
    Screen { layers: picture prompt; background: ansi_default; color: ansi_default; }
    Picture { layer: picture; width: 100%; height: 100%; background: ansi_default; }
    Input { layer: prompt; dock: bottom; height: 1; border: none; padding: 0 1; display: none;
            background: ansi_default; color: ansi_default; }
    Input:focus { border: none; background: ansi_default; }
    """
    BINDINGS = [Binding("ctrl+c", "quit", show=False, priority=True)]

    def __init__(self, board: Board, ask: Ask, every: float) -> None:
        """``every``: seconds between two looks."""
        super().__init__(ansi_color=True)
        self.board, self.every = board, every
        self.picture = Picture(board)
        self._asker = Asker(ask)
        self._due = asyncio.Event()
        self._finds = True
        #: The version of the board that was asked for last.
        self._looked_at = -1
        #: Looks that are over.
        self.looks = 0

    def compose(self) -> ComposeResult:
        yield self.picture
        # No wheel of suggestions and no check: what is typed is text.
        yield Input(id="prompt")

    def on_mount(self) -> None:
        self.picture.focus()
        self.run_worker(self._looking())

    def on_unmount(self) -> None:
        self._asker.close()

    # ------------------------------------------------------------------ asking

    async def _looking(self) -> None:
        while True:
            self._due.clear()
            await self._look()
            self.looks += 1
            self.picture.renew()
            if self._due.is_set():
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), self.board.patience(self.every))

    async def _look(self) -> None:
        version = self._looked_at = self.board.version
        questions = self.board.look(self.picture.room)
        request = next(questions, None)
        while request is not None:
            said = await asyncio.wrap_future(self._asker.ask(request))
            if self.board.version != version:
                # Something else is wanted by now.
                self._due.set()
                return
            try:
                request = questions.send(said)
            except StopIteration:
                return
            self.picture.renew()

    def _changed(self) -> None:
        """The person did something: it is shown at once, and asked for where it is not known."""
        self.picture.renew()
        if self.board.version != self._looked_at:
            self._due.set()

    # ------------------------------------------------------------------ keys and mouse

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.focused, Input):
            if event.key == "escape":
                self._close_prompt()
                event.stop()
            return
        key = event.key if event.character not in ("G",) else "G"
        if key == "q":
            self.exit()
        elif key in ("slash", "o"):
            self._open_prompt(finds=key == "slash")
        elif self.board.key(key, self.picture.room):
            self._changed()
        else:
            return
        event.prevent_default()
        event.stop()

    def on_click(self, event: events.Click) -> None:
        if not self.query_one(Input).display and self.board.click(
            int(event.screen_x), int(event.screen_y), self.picture.room
        ):
            self._changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll("down")

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll("up")

    def _scroll(self, key: str) -> None:
        if self.board.key(key, self.picture.room):
            self._changed()

    def on_resize(self) -> None:
        self.board.resized(self.picture.room)
        self._changed()

    # ------------------------------------------------------------------ the prompt

    def _open_prompt(self, *, finds: bool) -> None:
        self._finds = finds
        prompt = self.query_one(Input)
        shared = self.board.shared
        known = [f"{what}={value}" for what, value in shared.wanted.items()] + [shared.text]
        prompt.value = " ".join(filter(None, known)) if finds else ""
        prompt.placeholder = (
            "text, or pool=P user=U status=S account=A qos=Q name=N" if finds else "id of a job"
        )
        prompt.display = True
        prompt.focus()

    def _close_prompt(self) -> None:
        self.query_one(Input).display = False
        self.picture.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_prompt()
        words = event.value.strip()
        if self._finds:
            self.board.find(words)
        elif words:
            self.board.open_job(words[:256])
        self._changed()
