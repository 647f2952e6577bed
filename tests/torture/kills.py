"""The killer: an endless, seeded list of who is killed when, and for how long it stays away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

Target = Literal["headway", "server", "node"]
Moment = Literal["starting", "running", "deciding"]


@dataclass(frozen=True)
class Kill:
    """SIGKILL of the targets, ``wait`` seconds after a moment.

    The moment: when the kill before was over ("starting": headway is in the middle of its own start), when
    headway has said that it has started ("running"), or when it next decides a start ("deciding": starts are
    on their way). ``pause``: seconds until the targets are started again. ``node`` is a number to choose the
    node by whose daemon is killed.
    """

    targets: tuple[Target, ...]
    moment: Moment
    wait: float
    pause: float
    node: int


def kills(seed: int, server_share: float, node_share: float, pace: float = 1.0) -> Iterator[Kill]:
    """Kills without end; the shares of those that hit the batch system's server, and a node's daemon.

    ``pace``: what the seconds between them are multiplied by.
    """
    rng = np.random.default_rng([seed, 2])
    while True:
        who = rng.random()
        targets: tuple[Target, ...] = ("headway",)
        if who < server_share:
            # Every third time both at once: the machine that both live on is gone.
            targets = ("headway", "server") if rng.random() < 1 / 3 else ("server",)
        elif who < server_share + node_share:
            targets = ("node",)
        moment: Moment = rng.choice(["starting", "running", "deciding"], p=[0.3, 0.3, 0.4])
        wait = float(rng.uniform(0.0, {"starting": 1.5, "running": 3.0, "deciding": 0.6}[moment]))
        pause = 0.0 if rng.random() < 0.75 else float(rng.uniform(0.2, 2.5))
        yield Kill(targets, moment, wait * pace, pause * pace, int(rng.integers(1 << 30)))
