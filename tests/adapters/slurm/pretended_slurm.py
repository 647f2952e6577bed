"""A Slurm that is not there: a transport that answers from recorded output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pretended import Pretended, result

from headway_adapters.transport import Result

FIXTURES = Path(__file__).parent / "fixtures" / "slurm-22.05"
RECORDS = {record["job_id"]: record for record in json.loads((FIXTURES / "squeue.json").read_text())["jobs"]}


class PretendedSlurm(Pretended):
    """Answers from recorded output; ``jobs`` is what squeue lists."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[dict[str, Any]] = [
            {**RECORDS[15], "state_reason": "JobHeldAdmin", "admin_comment": "headway:held"}, RECORDS[7],
        ]  # fmt: skip

    def listed(self, argv: tuple[str, ...]) -> Result:
        return result(argv, self._stdout(argv))

    def _stdout(self, argv: tuple[str, ...]) -> str:
        if "--version" in argv:
            return "slurm-wlm 22.05.8"
        if argv[0] == "squeue":
            return json.dumps({"errors": [], "jobs": self.jobs})
        if argv[0] == "sinfo":
            return (FIXTURES / "sinfo.json").read_text()
        what = argv[argv.index("show") + 1] if "show" in argv else ""
        files = {
            "config": "show-config.txt", "partition": "show-partitions-oneline.txt",
            "reservation": "show-reservations-oneline.txt", "nodes": "show-nodes-oneline.txt",
        }  # fmt: skip
        return (FIXTURES / files[what]).read_text() if what in files else ""
