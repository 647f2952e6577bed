"""psub: a batch system of small commands that is not there, for the guide's example of an adapter.

:func:`install` puts its commands into a directory. The cluster is a file in the directory that ``PSUB_HOME``
names; a job is a number of seconds, and no process. The file is also the program: each command is a link to
it, and it needs nothing but Python's own library.

=====================================================  ===============================================
``pcreate NODES PROCESSORS``                           make a new cluster
``psub [-n N] [-N NODES] [-l MINUTES] [-J NAME]        submit a job; prints its number. ``-h``: held by
[-a JOB] [-h] SECONDS``                                its user, ``-a``: after that job has completed
``pstat``                                              the cluster as JSON
``prun JOB NODE:COUNT ...``                            start a job that is queued
``pdel JOB``                                           remove a job
``prls JOB``                                           end its user's hold
``pnode offline|online NODE``                          take a node out of service, put it back
``pfault KIND``                                        what goes wrong from now on: ``none``, ``down`` (no
                                                       command is answered), ``garbage`` and ``truncate``
                                                       (of pstat), ``refuse-start``, ``slow-start``
=====================================================  ===============================================

Commands that changed something are lines of the file ``changes``. ``PSUB_USER`` gives a job's user.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from typing import Any

COMMANDS = ("pcreate", "psub", "pstat", "prun", "pdel", "prls", "pnode", "pfault")
#: How long an ended job is listed, seconds.
LISTED = 600.0
#: How long a slow start takes, seconds.
SLOW = 30.0

State = dict[str, Any]


def install(directory: Any) -> Any:
    """Put the commands into ``directory``, which is made; returns it. Of type :class:`pathlib.Path`."""
    directory.mkdir(parents=True)
    program = directory / "psub-program"
    with open(__file__, encoding="utf-8") as source:
        program.write_text(f"#!{sys.executable} -SE\n{source.read()}", encoding="utf-8")
    program.chmod(0o755)
    for name in COMMANDS:
        (directory / name).symlink_to(program.name)
    return directory


class Refused(Exception):
    """What a command says before it fails."""


def main(words: list[str]) -> int:
    home = os.environ.get("PSUB_HOME", "")
    command, rest = os.path.basename(words[0]), words[1:]
    try:
        if not home:
            raise Refused("PSUB_HOME names no cluster")
        if command == "pcreate":
            nodes = {f"n{at + 1}": {"processors": int(rest[1]), "up": True} for at in range(int(rest[0]))}
            os.makedirs(home, exist_ok=True)
            _write(home, {"nodes": nodes, "jobs": {}, "last": 0, "fault": "none"})
            return 0
        return _on_the_cluster(home, command, rest)
    except Refused as refused:
        print(f"{command}: {refused}", file=sys.stderr)
        return 1


def _on_the_cluster(home: str, command: str, words: list[str]) -> int:
    with open(os.path.join(home, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(os.path.join(home, "cluster.json"), encoding="utf-8") as stream:
            state = json.load(stream)
        fault = state["fault"]
        if fault == "down" and command != "pfault":
            print(f"{command}: cannot reach the server", file=sys.stderr)
            return 3
        _advance(state, time.time())
        shown = _ACTIONS[command](state, words)
        if command != "pstat":
            _write(home, state)
            with open(os.path.join(home, "changes"), "a", encoding="utf-8") as stream:
                stream.write(json.dumps([command, *words]) + "\n")
    if command == "prun" and fault == "slow-start":
        time.sleep(SLOW)
    if command == "pstat" and fault == "truncate":
        shown = shown[: len(shown) // 2]
    sys.stdout.write("<html>\n" if command == "pstat" and fault == "garbage" else shown)
    return 0


def _write(home: str, state: State) -> None:
    path = os.path.join(home, "cluster.json")
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(state, stream)
    os.replace(f"{path}.new", path)


def _advance(state: State, now: float) -> None:
    """End the jobs that are over by ``now``, and forget jobs that ended long ago."""
    for key, job in list(state["jobs"].items()):
        if job["state"] == "running":
            end = job["started"] + min(job["seconds"], job["minutes"] * 60.0)
            if end <= now:
                in_time = job["seconds"] <= job["minutes"] * 60.0
                job.update(state="done" if in_time else "failed", ended=end, exit=0 if in_time else 143)
        elif job["ended"] is not None and job["ended"] < now - LISTED:
            del state["jobs"][key]


def _job(state: State, key: str) -> dict[str, Any]:
    if key not in state["jobs"]:
        raise Refused(f"there is no job {key}")
    found: dict[str, Any] = state["jobs"][key]
    return found


def _submit(state: State, words: list[str]) -> str:
    parser = argparse.ArgumentParser("psub", add_help=False)
    parser.add_argument("-n", type=int, default=1, dest="processors")
    parser.add_argument("-N", type=int, default=0, dest="nodes")
    parser.add_argument("-l", type=int, default=60, dest="minutes")
    parser.add_argument("-J", default="job", dest="name")
    parser.add_argument("-a", default="", dest="after")
    parser.add_argument("-h", action="store_true", dest="held")
    parser.add_argument("seconds", type=float)
    state["last"] += 1
    job = {
        **vars(parser.parse_args(words)), "id": str(state["last"]), "queue": "batch", "state": "queued",
        "user": os.environ.get("PSUB_USER", "alice"), "submitted": time.time(), "started": None,
        "ended": None, "where": {}, "exit": None,
    }  # fmt: skip
    state["jobs"][job["id"]] = job
    return f"{job['id']}\n"


def _show(state: State, words: list[str]) -> str:
    nodes = [{"name": name, **node} for name, node in state["nodes"].items()]
    jobs = [{key: job[key] for key in job if key != "seconds"} for job in state["jobs"].values()]
    return json.dumps({"cluster": "demo", "nodes": nodes, "jobs": jobs}) + "\n"


def _start(state: State, words: list[str]) -> str:
    job = _job(state, words[0])
    if state["fault"] == "refuse-start":
        raise Refused("starts are refused at present")
    if job["state"] != "queued" or job["held"]:
        raise Refused(f"job {job['id']} is {'held' if job['held'] else job['state']}")
    where = {node: int(count) for node, _, count in (word.partition(":") for word in words[1:])}
    if sum(where.values()) != job["processors"]:
        raise Refused(f"job {job['id']} asks for {job['processors']} processors")
    used: dict[str, int] = {}
    for other in state["jobs"].values():
        for node, count in other["where"].items() if other["state"] == "running" else ():
            used[node] = used.get(node, 0) + count
    for node, count in where.items():
        there = state["nodes"].get(node)
        if there is None or not there["up"]:
            raise Refused(f"there is no node {node}" if there is None else f"node {node} is offline")
        if used.get(node, 0) + count > there["processors"]:
            raise Refused(f"node {node} has not {count} free processors")
    job.update(state="running", started=time.time(), where=where)
    return ""


def _remove(state: State, words: list[str]) -> str:
    job = _job(state, words[0])
    if job["ended"] is not None:
        raise Refused(f"job {job['id']} has ended")
    job.update(state="cancelled", ended=time.time())
    return ""


def _release(state: State, words: list[str]) -> str:
    _job(state, words[0])["held"] = False
    return ""


def _set_node(state: State, words: list[str]) -> str:
    if words[1] not in state["nodes"]:
        raise Refused(f"there is no node {words[1]}")
    state["nodes"][words[1]]["up"] = words[0] == "online"
    return ""


def _set_fault(state: State, words: list[str]) -> str:
    state["fault"] = words[0]
    return ""


_ACTIONS = {
    "psub": _submit, "pstat": _show, "prun": _start, "pdel": _remove, "prls": _release,
    "pnode": _set_node, "pfault": _set_fault,
}  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
