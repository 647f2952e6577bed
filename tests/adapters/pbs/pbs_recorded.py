"""Recorded output of PBS, and what was made of it by hand, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway_adapters.commands import pbs_dsv
from headway_adapters.pbs import cluster, documents, dsv, reader

FIXTURES = Path(__file__).parent / "fixtures"
#: When the listings were recorded, absolute seconds.
NOW = 1795242861.0
SITE = cluster.Site(managed=("workq",))


def recorded(name: str) -> dict[str, Any]:
    """A recorded command: argv, rc, stdout, stderr."""
    return json.loads((FIXTURES / f"{name}.json").read_text())


def stdout(name: str) -> bytes:
    return recorded(name)["stdout"].encode("utf-8", "surrogateescape")


QUEUES = cluster.read_queues(documents.objects_json(stdout("qstat_queue_json"), "Queue"))
NODES = cluster.read_nodes(documents.nodes_json(stdout("pbsnodes_json")), QUEUES, set())


#: What separates attributes in listings that no command asked for.
BETWEEN = "|abcdefghijklmnop"


def listing(jobs: Mapping[str, Mapping[str, Any]], between: str = BETWEEN) -> bytes:
    """``qstat -f -F dsv -D BETWEEN`` of these jobs, as the real one prints it; a job's attributes in the
    order of the map, but for the first, which is always its name."""
    named = {key: {"Job_Name": "", **fields} for key, fields in jobs.items()}
    return pbs_dsv.listing(named, between).encode("utf-8", "surrogateescape")


def recorded_jobs(name: str) -> dict[str, documents.JobRecord]:
    """A recorded ``qstat -f -F json`` in the form in which jobs are read."""
    return dsv.jobs(listing(json.loads(stdout(name)).get("Jobs", {})), BETWEEN)


def job(**fields: Any) -> dict[str, Any]:
    """A queued job, with some attributes different; ``select`` and ``place`` for short."""
    resources = {
        "ncpus": 1,
        "select": fields.get("select", "1:ncpus=1"),
        "place": fields.pop("place", "free"),
        "walltime": "00:10:00",
        **fields.pop("resources", {}),
    }
    chosen = fields.pop("select", "1:ncpus=1")
    return {
        "Job_Name": "j", "Job_Owner": "alice@pbshost", "job_state": "Q", "queue": "workq",
        "ctime": "Sat Nov 21 06:30:00 2026", "Hold_Types": "n", "Priority": 0, "Resource_List": resources,
        "schedselect": chosen, "substate": 10, "euser": "alice", "egroup": "users", "run_count": 0, **fields,
    }  # fmt: skip


def read(
    jobs: dict[str, dict[str, Any]],
    *,
    nodes: cluster.Nodes = NODES,
    site: cluster.Site = SITE,
    notes: set[str] | None = None,
) -> reader.Jobs:
    """What the reader makes of these jobs."""
    records = dsv.jobs(listing(jobs), BETWEEN)
    return reader.read_jobs(records, NOW, site, QUEUES, nodes, set() if notes is None else notes)


def nodes(*records: dict[str, Any]) -> cluster.Nodes:
    """Vnodes ``a``, ``b``, ... with 8 processors and 4 GB each on a host of their own, some fields
    different."""
    found = {}
    for at, record in enumerate(records):
        name = "abcdefgh"[at]
        available = {"host": name, "vnode": name, "ncpus": 8, "mem": "4gb", **record.get("offers", {})}
        fields = {key: value for key, value in record.items() if key != "offers"}
        found[name] = documents.NodeRecord(
            **{"state": "free", "resources_available": available, "resources_assigned": {}, **fields}
        )
    return cluster.read_nodes(found, QUEUES, set())
