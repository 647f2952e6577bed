"""`make test`: the tests that compute, and beside them the tests that wait for a batch system or a daemon.

Two runs of pytest, and each collects its own tests. A worker that computes takes a processor; a worker that
waits takes nearly none. The report of the tests that wait follows the report of the tests that compute.
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
#: Seconds after which a test hangs: its worker says where, and ends.
HANGS = 1800


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--computing", required=True, help="workers for the tests that compute")
    parser.add_argument("--waiting", required=True, help="workers for the tests that wait")
    parser.add_argument("--marks", required=True, help="what both runs select")
    parser.add_argument("more", nargs="*", help="arguments of pytest")
    told = parser.parse_args()

    def command(kind: str, workers: str, *more: str) -> list[str]:
        return [
            sys.executable, "-m", "pytest", "-m", f"{kind} and {told.marks}", "-n", workers,
            "--dist", "loadgroup", "--no-loadscope-reorder", "--max-worker-restart", "2",
            "-o", f"faulthandler_timeout={HANGS}", "-o", "faulthandler_exit_on_timeout=true",
            *more, *told.more,
        ]  # fmt: skip

    print("The tests that wait for a batch system run beside these; their report follows.", flush=True)
    with tempfile.NamedTemporaryFile(prefix="headway-tests-") as report:
        # A cache of its own, or `--lf` would know the failures of one of the two runs only.
        apart = command("waits", told.waiting, "-o", "cache_dir=.pytest_cache/waits")
        waiting = subprocess.Popen(apart, stdout=report, stderr=report)
        computing = subprocess.run(command("not waits", told.computing), check=False).returncode
        print("\nThe tests that wait for a batch system:", flush=True)
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
