"""A pretended PBS for the adapter: answers from recorded output."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pbs_recorded import job, listing, recorded, stdout
from pretended import Pretended, result

from headway_adapters.pbs import PbsAdapter, PbsOptions, dsv
from headway_adapters.transport import Result

RUNS = {"job_state": "R", "substate": 42, "stime": "Sat Nov 21 06:33:00 2026", "run_count": 1}
NODES = json.loads(stdout("pbsnodes_json"))
NODES["nodes"]["pbshost[3]"].update(state="free", resources_assigned={}, resv="R9.pbshost")
Answer = Callable[[tuple[str, ...]], Result | None]


class PretendedPbs(Pretended):
    """Answers from recorded output; ``jobs`` is what qstat lists, ``gone`` what its history knows."""

    user = "root"

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, dict[str, Any]] = {
            "1.pbshost": job(select="2:ncpus=4"),
            "2.pbshost": job(**RUNS, exec_vnode="(pbshost[0]:ncpus=6)"),
        }
        self.gone: dict[str, dict[str, Any]] = {}
        self.nodes = json.loads(json.dumps(NODES))
        self.queues: dict[str, dict[str, Any]] = json.loads(text_of("qstat_queue_json"))["Queue"]

    def listed(self, argv: tuple[str, ...]) -> Result:
        if "--version" in argv:
            return result(argv, "pbs_version = 23.06.06")
        if argv[0] == "pbsnodes":
            return result(argv, json.dumps(self.nodes) if "json" in argv else text_of("pbsnodes_text"))
        if argv[0] != "qstat":
            return result(argv)
        if "-Q" in argv:
            return result(argv, json.dumps({"Queue": self.queues}))
        if "-B" in argv:
            return result(argv, text_of("qstat_server_json"))
        asked = [word for word in argv[1:] if word[0].isdigit()]
        if not asked:
            return result(argv, listed(self.jobs, argv))
        known = {**self.gone, **self.jobs} if "-x" in argv else self.jobs
        unknown = "".join(f"qstat: Unknown Job Id {one}\n" for one in asked if one not in known)
        found = listed({one: known[one] for one in asked if one in known}, argv)
        return result(argv, found, rc=153 if unknown else 0, stderr=unknown)


def listed(jobs: dict[str, dict[str, Any]], argv: tuple[str, ...]) -> str:
    """What qstat prints of these jobs when it is asked so."""
    return listing(jobs, dsv.separator_of(argv)).decode("utf-8", "surrogateescape")


def text_of(name: str) -> str:
    return recorded(name)["stdout"]


def adapter(pbs: PretendedPbs, **fields: Any) -> PbsAdapter:
    read_only, clock = fields.pop("read_only", False), fields.pop("clock", None)
    options = PbsOptions(
        **{"queues": ("workq",), "poll_interval": 0.05, "commands_per_minute": None, **fields}
    )
    return PbsAdapter(options, read_only=read_only, transport=pbs, clock=clock)
