"""`make test`: the tests that compute, and beside them those that wait for a real batch system.

Two runs of pytest, of which each collects its own tests: a worker that computes takes a processor, and one
that waits takes nearly none. What the run that waits has to say follows what the other one says.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: What pytest answers when the arguments select no test.
NONE = 5
#: Seconds between two looks at a run that goes on.
PAUSE = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--computing", required=True, help="workers for the tests that compute")
    parser.add_argument("--waiting", required=True, help="workers for the tests of real batch systems")
    parser.add_argument("--marks", required=True, help="what both runs select")
    parser.add_argument("more", nargs="*", help="arguments of pytest")
    told = parser.parse_args()

    def command(kind: str, workers: str, *more: str) -> list[str]:
        return [
            sys.executable, "-m", "pytest", "-m", f"{kind} and {told.marks}", "-n", workers,
            "--dist", "loadgroup", "--no-loadscope-reorder", *more, *told.more,
        ]  # fmt: skip

    print("The tests of real batch systems run beside these; their report follows.", flush=True)
    with tempfile.NamedTemporaryFile(prefix="headway-tests-") as report:
        # A cache of its own, or `--lf` would know the failures of one of the two runs only.
        waiting = subprocess.Popen(
            command("real", told.waiting, "-o", "cache_dir=.pytest_cache/real"), stdout=report, stderr=report
        )
        computing = subprocess.run(command("not real", told.computing), check=False).returncode
        print("\nThe tests of real batch systems:", flush=True)
        follow(Path(report.name), waiting)
    return 0 if {computing, waiting.returncode} <= {0, NONE} else 1


def follow(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Print what the process has written, and what it writes, until it ends."""
    with path.open("rb") as written:
        ended = False
        while True:
            sys.stdout.buffer.write(written.read())
            sys.stdout.flush()
            if ended:
                return
            ended = process.poll() is not None
            if not ended:
                time.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(main())
