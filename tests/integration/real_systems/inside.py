"""``headway`` on a host of a test server, whose names and users exist inside only."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from batch_servers import BatchServer
from live_daemon import HEADWAY, Daemon


class InsideDaemon(Daemon):
    """A daemon on the first host, where the system's own commands are.

    As root, who may do everything there: the interpreter may be where no other user can read.
    """

    def __init__(self, server: BatchServer, directory: Path, options: dict[str, Any], **config: Any) -> None:
        self.server = server
        super().__init__(SimpleNamespace(conf="", options={}), directory)
        self.program = server.inside(str(HEADWAY), user="root")
        self.configure(cluster={"adapter": server.system, "options": options}, **config)
