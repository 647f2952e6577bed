"""A parallel program that saves itself, for tests of bundles: standard library only.

    python selfsaving.py MEETING UNITS SECONDS

Each of HEADWAY_PROCESSES processes adds up the squares of its own UNITS numbers; a unit takes SECONDS of its
*processor*. On the test clusters all nodes are one machine with few processors, so a processor is a lock that
processes on it take in turn: two of them on one processor take twice as long, as on a real one.

On USR1 each process writes what it has into HEADWAY_IMAGE, and the first one, when all have, the checksums
into ``complete``. Begun anew they go on from there. MEETING is a directory in which they meet, and where the
result is written: ``result``, and ``begun``, a line for each start of each process. While there is a
file ``hold`` in it nobody does more than half of his units.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

meeting, units, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
me, many = int(os.environ.get("HEADWAY_PROCESS", 0)), int(os.environ.get("HEADWAY_PROCESSES", 1))
restarts = os.environ.get("HEADWAY_RESTARTS", "0")
image = Path(os.environ.get("HEADWAY_IMAGE", meeting))
processor = meeting / ("processor." + os.environ.get("HEADWAY_PROCESSOR", "0").replace("/", "."))


def write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{me}")
    fresh.write_text(text)
    fresh.replace(path)


def read(path: Path) -> dict[str, int]:
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}


def all_have(name: str) -> bool:
    return all((meeting / f"{name}.{restarts}.{other}").exists() for other in range(many))


asked: list[int] = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
state = read(image / f"state.{me}") or {"next": 0, "sum": 0}
saved = 0
with (meeting / "begun").open("a") as file:
    file.write(f"{restarts} {me} {state['next']} {processor.name}\n")
(meeting / f"here.{restarts}.{me}").touch()
said = False


def attend() -> None:
    """What is to be done between two units."""
    global saved, said
    if me == 0 and not said and all_have("here"):
        write(image / "ready", restarts)
        said = True
    if len(asked) > saved:
        saved = len(asked)
        write(image / f"state.{me}", json.dumps({**state, "round": saved, "restarts": int(restarts)}))
        if me == 0:
            written = [image / f"state.{other}" for other in range(many)]
            while any(
                (found := read(path)).get("restarts") != int(restarts) or found["round"] < saved
                for path in written
            ):
                time.sleep(0.01)
            sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in written]
            write(image / "complete", "".join(sums))


with processor.open("w") as lock:
    while state["next"] < units:
        while state["next"] >= units // 2 and (meeting / "hold").exists():
            time.sleep(0.02)
            attend()
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(seconds)
        fcntl.flock(lock, fcntl.LOCK_UN)
        number = me * units + state["next"]
        state = {"next": state["next"] + 1, "sum": state["sum"] + number * number}
        attend()
write(meeting / f"sum.{restarts}.{me}", json.dumps(state))
while not all_have("sum"):
    time.sleep(0.02)
    attend()
if me == 0:
    total = sum(read(meeting / f"sum.{restarts}.{other}")["sum"] for other in range(many))
    write(meeting / "result", str(total))
    (meeting / f"told.{restarts}").touch()
while not (meeting / f"told.{restarts}").exists():
    time.sleep(0.02)
    attend()
# While Python ends it takes the handler away, and the signal would end it.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
