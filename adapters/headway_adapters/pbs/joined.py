"""Starts on the same vnodes in one ``qrun``, which takes several jobs. Pure.

``qrun`` asks for one job after the other and goes on behind a refused job. Each refusal is a line of its
own, which ends with the job's id or with the vnodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result

#: Jobs in one command: each takes some hundredths of a second, and an answer is waited for.
MOST_JOBS = 16


KeyT = TypeVar("KeyT")


class Joined(msgspec.Struct, Generic[KeyT], frozen=True):
    """One command, and which of the starts are in it."""

    argv: Argv
    starts: tuple[KeyT, ...]


def join(starts: Iterable[tuple[KeyT, Argv]]) -> list[Joined[KeyT]]:
    """As few commands as these starts take, ordered by the first start of each.

    ``starts``: a key and a command for each, with the job's id at its end.
    """
    found: list[tuple[Argv, list[tuple[KeyT, str]]]] = []
    begun: dict[Argv, list[tuple[KeyT, str]]] = {}
    for key, (*where, job) in starts:
        command = tuple(where)
        its = begun.get(command)
        if its is None or len(its) == MOST_JOBS:
            its = begun[command] = []
            found.append((command, its))
        its.append((key, job))
    return [
        Joined((*command, *(job for _, job in its)), tuple(key for key, _ in its))
        for command, its in found
    ]  # fmt: skip


def apart(result: Result, jobs: Sequence[str]) -> list[Result]:
    """What became of each job of a command, as if it had been asked for alone.

    Where it is not clear which jobs a refusal is about, each of them has no answer: the next look tells.
    """
    if result.ok or len(jobs) == 1:
        return [result] * len(jobs)
    said: dict[str, str] = {}
    about_all: list[str] = []
    for line in filter(None, map(str.strip, result.stderr.splitlines())):
        job = line.rpartition(" ")[2]
        if job in jobs:
            said.setdefault(job, line)
        else:
            about_all.append(line)
    unnamed = len(jobs) - len(said)
    for_all = msgspec.structs.replace(result, stderr="\n".join(dict.fromkeys(about_all)))
    if result.unanswered or not said:
        other = for_all
    elif not about_all:
        other = msgspec.structs.replace(result, rc=0, stderr="")
    else:
        other = for_all if len(about_all) >= unnamed else msgspec.structs.replace(for_all, cut=True)
    refused = msgspec.structs.replace(result, timed_out=False, cut=False, rc=result.rc or 2)
    return [
        msgspec.structs.replace(refused, stderr=said[job]) if job in said else other
        for job in jobs
    ]  # fmt: skip
