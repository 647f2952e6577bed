"""A program that runs a command and ends it, with all that it started, when the daemon is gone.

``python keeper.py GRACE COMMAND...``: its standard input is a pipe from the daemon, on which nothing is ever
written. When the pipe closes, be it by the daemon's wish or by its death, the command's process group gets
SIGTERM, and SIGKILL after GRACE seconds. So no copy goes on without the daemon that began it, however that
ended. Needs the standard library alone and starts fast.
"""

import os
import select
import signal
import subprocess
import sys
import time


def main(grace: float, argv: list[str]) -> int:
    """Run the command; its exit code, 128 and a signal's number of a command that was ended."""
    ear, rope = os.pipe()
    os.set_blocking(rope, False)
    signal.set_wakeup_fd(rope, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # The wakeup pipe tells of it.
        signal.signal(number, lambda *_: None)
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{argv[0]} could not be started: {error.strerror}", file=sys.stderr)
        return 127
    while child.poll() is None:
        ready, _, _ = select.select([0, ear], [], [])
        told = os.read(ear, 512) if ear in ready else b""
        if 0 in ready or set(told) - {signal.SIGCHLD}:
            _end(child, grace)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _end(child: "subprocess.Popen[bytes]", grace: float) -> None:
    """End the command and all of its process group."""
    _signal(child.pid, signal.SIGTERM)
    until = time.monotonic() + grace
    while time.monotonic() < until and _signal(child.pid, 0):
        child.poll()
        time.sleep(0.02)
    _signal(child.pid, signal.SIGKILL)
    child.wait()


def _signal(group: int, number: int) -> bool:
    """Whether the group is there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
