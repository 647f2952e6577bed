"""A throw-away PostgreSQL for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

#: Where Debian keeps what is not for everybody's PATH.
_DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """The directory of PostgreSQL's server programs, the newest; None: it is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    there = [path.parent for path in _DEBIAN.glob("*/bin/initdb")]
    return max(there, key=lambda path: int(path.parent.name), default=None)


class PostgresServer:
    """A server that only this machine's users reach, by a socket in a directory of its own.

    It does not run as root: started by root, it runs as Debian's `postgres`, or `nobody`.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = None
        self.folder = Path(tempfile.mkdtemp(prefix="hw-postgres-"))
        if os.geteuid() == 0:
            self._user = "postgres" if _DEBIAN.is_dir() else "nobody"
            shutil.chown(self.folder, self._user)
        self.folder.chmod(0o755)
        try:
            self._run("initdb", "--auth=trust", "--username=headway", "--no-sync", str(self.folder / "data"))
            self.up()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def url(self) -> str:
        """Of its database `postgres`."""
        return f"postgresql://headway@/postgres?host={self.folder}"

    def up(self) -> None:
        """Start it."""
        # Nothing of it is to outlive the machine.
        settings = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._control("start", "-l", str(self.folder / "log"), "-o", settings)

    def down(self) -> None:
        """End it at once, as a crash would."""
        self._control("stop", "-m", "immediate")

    def stop(self) -> None:
        """End it, and remove all that it had."""
        self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", *words)

    def _run(self, program: str, *words: str) -> None:
        # The server itself inherits the output: a pipe would never end.
        with open(self.folder / "commands", "ab") as said:
            ran = subprocess.run(
                [str(self._programs / program), *words], user=self._user, cwd="/",
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        if ran.returncode:
            raise RuntimeError(f"{program}: {(self.folder / 'commands').read_text()}")
