"""All keys."""

from __future__ import annotations

from collections.abc import Sequence

from headway.cli.top.lines import Line, Piece, line
from headway.cli.top.view import Room, View

#: Keys, and what they do; "": a heading.
KEYS = (
    ("", "Views"),
    ("1 ... 7", "queue, running, pools, nodes, plan, cycles, shares; tab: the next"),
    ("enter", "the job that is pointed at (of a pool: its nodes); esc: back"),
    ("o", "a job by its id"),
    ("", "Moving"),
    ("up down", "also j k; page up, page down (space), home, end; or the mouse"),
    ("left right", "nodes: the node beside; plan: later and earlier, 0: now"),
    ("+ -", "plan: fewer or more hours"),
    ("", "Which jobs, pools and nodes"),
    ("m", "my jobs, or all that I may see"),
    ("p t s", "next pool; next status; sorted by the next column"),
    ("/", "find a text, or words: pool=batch user=ann status=pending"),
    ("", "account=phys qos=high name=run1"),
    ("c", "look for nothing any more"),
    ("", "Beside"),
    ("r", "ask the daemon now"),
    ("? q", "this page; leave (also ctrl+c)"),
)


class Help(View):
    """The page of keys."""

    name = "help"
    hints = "esc back"

    def draw(self, room: Room) -> Sequence[Line]:
        lines: list[Line] = []
        for keys, means in KEYS:
            if keys or not means[0].isupper():
                lines.append((Piece(f"   {keys:<12}", "head"), Piece(means)))
            else:
                lines.append(line(f" {means}", "head"))
        lines += [
            line(""),
            line(" Times are local. The picture is what the daemon planned in its last cycle; what", "quiet"),
            line(" you may see is what `headway jobs` shows you. Nothing can be changed here.", "quiet"),
        ]
        return lines[: room.height]
