"""A pipeline of three filters that counts words: read, count, decide. Standard library only.

``pipeline_program.py WORK INPUT LINES LAUNCHER`` starts every filter with the copies that it finds in
HEADWAY_COPIES, in a job of Slurm one step a filter (LAUNCHER "srun"), else as processes here ("here"). Data
go through files: each copy has a directory, and each copy before it says there when it has sent all. In a
controlled run the program leaves in the file HEADWAY_PROFILE what each filter received and how long it was
busy. What a run did stands in WORK, in a directory called after its job.

``pipeline_program.py filter NAME WORK INPUT LINES`` is one copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

FILTERS = ("read", "count", "decide")
#: Rounds of work for a line, a word, a total.
ROUNDS = {"read": 20_000, "count": 1_000, "decide": 100}


def main(work: Path, source: Path, lines: str, launcher: str) -> None:
    work /= os.environ.get("SLURM_JOB_ID", "run")
    copies = dict(zip(os.environ["HEADWAY_FILTERS"].split(","), told(), strict=True))
    assert tuple(copies) == FILTERS
    for name in FILTERS:
        for copy in range(copies[name]):
            inbox(work, name, copy).mkdir(parents=True)
    began = time.monotonic()
    running = [
        process
        for name in FILTERS
        for process in started(launcher, name, copies[name], [sys.executable, __file__, "filter", name,
                                                              str(work), str(source), lines])
    ]  # fmt: skip
    codes = [process.wait() for process in running]
    if any(codes):
        sys.exit(f"exit codes of the filters: {codes}")
    stats = [json.loads(path.read_text()) for path in sorted((work / "stats").iterdir())]
    of = {
        name: {key: sum(one[key] for one in stats if one["filter"] == name) for key in ("bytes", "seconds")}
        for name in FILTERS
    }
    if "HEADWAY_PROFILE" in os.environ:
        Path(os.environ["HEADWAY_PROFILE"]).write_text(json.dumps({"filters": of}))
    said = {
        "copies": copies, "processors": os.environ["HEADWAY_PROCESSORS"], "stats": stats,
        "seconds": time.monotonic() - began, "profile": "HEADWAY_PROFILE" in os.environ,
    }  # fmt: skip
    written(work / "run.json", json.dumps(said))


def told() -> list[int]:
    return [int(count) for count in os.environ["HEADWAY_COPIES"].split(",")]


def started(launcher: str, name: str, count: int, argv: list[str]) -> list[subprocess.Popen[bytes]]:
    if launcher == "srun":
        shared = ["--overlap"] if sum(told()) > int(os.environ["HEADWAY_PROCESSORS"]) else ["--exact"]
        nodes = f"--nodes=1-{min(int(os.environ['SLURM_JOB_NUM_NODES']), count)}"
        return [subprocess.Popen(["srun", f"--ntasks={count}", nodes, f"--job-name={name}", *shared, *argv])]
    return [subprocess.Popen(argv, env={**os.environ, "SLURM_PROCID": str(copy)}) for copy in range(count)]


def inbox(work: Path, name: str, copy: int) -> Path:
    return work / "inboxes" / f"{name}-{copy}"


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.environ.get('SLURM_PROCID', '')}")
    temporary.write_text(text)
    temporary.rename(path)


class Copy:
    """One copy of a filter: what it receives, does and sends."""

    def __init__(self, name: str, work: Path, source: Path, lines: int) -> None:
        self.name, self.work, self.source, self.lines = name, work, source, lines
        self.copies = dict(zip(FILTERS, told(), strict=True))
        self.me = int(os.environ["SLURM_PROCID"])
        self.received = self.sent = 0

    def run(self) -> None:
        began = time.process_time()
        getattr(self, self.name)()
        busy = time.process_time() - began
        stats = {
            "filter": self.name, "copy": self.me, "bytes": self.received, "seconds": busy,
            "step": os.environ.get("SLURM_STEP_ID"), "job": os.environ.get("SLURM_JOB_ID"),
        }  # fmt: skip
        written(self.work / "stats" / f"{self.name}-{self.me}", json.dumps(stats))

    def worked(self, what: str) -> None:
        data = what.encode()
        for _ in range(ROUNDS[self.name]):
            data = hashlib.sha256(data).digest()

    def send(self, to: str, copy: int, what: object) -> None:
        self.sent += 1
        written(inbox(self.work, to, copy) / f"{self.name}-{self.me}-{self.sent}.json", json.dumps(what))

    def close(self, to: str) -> None:
        for copy in range(self.copies[to]):
            written(inbox(self.work, to, copy) / f"{self.name}-{self.me}.end", "")

    def arriving(self, senders: str):  # type: ignore[no-untyped-def]
        mine = inbox(self.work, self.name, self.me)
        while True:
            # Who has said that it sent all has nothing on its way any more.
            ended = len(list(mine.glob("*.end"))) == self.copies[senders]
            for path in sorted(mine.glob("[!.]*.json")):
                text = path.read_text()
                self.received += len(text)
                path.unlink()
                yield json.loads(text)
            if ended:
                return
            time.sleep(0.02)

    def read(self) -> None:
        for number, line in enumerate(self.source.read_text().splitlines()[: self.lines]):
            if number % self.copies["read"] != self.me:
                continue
            self.received += len(line)
            self.worked(line)
            # A labeled stream: a word always goes to the same copy.
            parts: dict[int, list[str]] = {}
            for word in line.split():
                label = int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % self.copies["count"]
                parts.setdefault(label, []).append(word)
            for label, words in parts.items():
                self.send("count", label, words)
        self.close("count")

    def count(self) -> None:
        found: Counter[str] = Counter()
        for words in self.arriving("read"):
            for word in words:
                self.worked(word)
            found.update(words)
        self.send("decide", self.me % self.copies["decide"], found)
        self.close("decide")

    def decide(self) -> None:
        found: Counter[str] = Counter()
        for part in self.arriving("count"):
            found.update(part)
        for word in found:
            self.worked(word)
        written(self.work / "result" / str(self.me), json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "filter":
        Copy(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5])).run()
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
