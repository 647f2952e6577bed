"""Running a campaign's tasks on a Dask cluster that runs already.

Workers must run the same program: each says so before the campaign begins, and again with every task, because
workers come and go. A worker that dies costs nothing but time; Dask gives its tasks to others.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import distributed
from distributed.client import FutureCancelledError
from distributed.comm import connect, get_address_host_port
from distributed.scheduler import KilledWorker

from headway.errors import Failure, UserError
from headway.experiment.campaign import Task
from headway.experiment.execution import Failed, Outcome, Runner, carried_out
from headway.experiment.record import code_digest, program

#: Seconds within which a scheduler must answer.
TIMEOUT = 10.0

#: How often a task runs again whose result was lost with its worker.
_TIMES = 5


class OtherProgram(Exception):
    """A worker does not run what we run."""


async def _greeted(address: str, timeout: float) -> None:
    """Return if a Dask scheduler answers there, with the certificates of Dask's configuration.

    Raises OSError, TimeoutError or, for certificates that are not there, TypeError or RuntimeError.
    """
    certificates = distributed.security.Security().get_connection_args("client")
    async with asyncio.timeout(timeout + 1.0):
        there = await connect(address, timeout=timeout, **certificates)
        try:
            await there.write({"op": "identity", "n_workers": 0, "reply": True})
            said = await there.read()
        finally:
            there.abort()
    if not isinstance(said, dict) or said.get("type") != "Scheduler":
        raise RuntimeError("another program answers")


class DaskCluster:
    """A connection to the scheduler at ``address``, such as ``tcp://head:8786``.

    Raises :class:`Failure` if no scheduler answers there, :class:`UserError` if it is no address.
    """

    def __init__(self, address: str, timeout: float = TIMEOUT) -> None:
        self.address = address
        logging.getLogger("distributed").setLevel(logging.ERROR)
        try:
            get_address_host_port(address)
        except ValueError as error:
            raise UserError(
                f"--scheduler {address}: expected the address of a Dask scheduler, such as tcp://head:8786 "
                f"({error})"
            ) from error
        try:
            # A client that cannot connect gets in its own way for a while when it is let go of.
            asyncio.run(_greeted(address, timeout))
            self._client = distributed.Client(
                address, timeout=timeout, set_as_default=False, name="headway-compare"
            )
        # Whatever else answers may be read as a message of any length.
        except (OSError, ImportError, RuntimeError, TypeError, ValueError, MemoryError) as error:
            why = str(error) or "no answer"
            raise Failure(
                f"--scheduler {address}: expected a Dask scheduler, found none that answers within "
                f"{timeout:g} s ({why})"
            ) from error

    @property
    def page(self) -> str:
        """Dask's own page; "" if there is none."""
        served = "dashboard" in self._client.scheduler_info(n_workers=0).get("services", {})
        return self._client.dashboard_link if served else ""

    def workers(self) -> dict[str, int]:
        """Address of each worker -> its threads."""
        return {address: int(n) for address, n in self._client.nthreads().items()}

    def pids(self) -> dict[str, int]:
        """Address of each worker -> its process, on its host."""
        return {address: int(pid) for address, pid in self._client.run(os.getpid).items()}

    def wait_for(self, count: int) -> None:
        """Return when so many workers are there; they may still wait in a batch system's queue."""
        self._client.wait_for_workers(count)

    def check(self) -> None:
        """Raise :class:`UserError` that names each worker with another version of headway, or with other
        source under the same version, or without it."""
        ours = program()
        versions = self._client.run(version, "headway", on_error="return")
        wrong = {
            worker: "none" if isinstance(found, PackageNotFoundError) else str(found)
            for worker, found in versions.items()
            if found != ours["version"]
        }
        if not wrong:
            sources = self._client.run(code_digest, on_error="return")
            wrong = {
                w: f"{ours['version']} with other source code"
                for w, s in sources.items()
                if s != ours["code"]
            }
        if wrong:
            lines = "\n".join(f"  {worker}: {found}" for worker, found in sorted(wrong.items()))
            raise UserError(
                f"--scheduler {self.address}: expected headway {ours['version']} as it is here on every "
                f"worker, found:\n{lines}"
            )

    def runner(self) -> Runner:
        """Runs tasks there."""
        return self._run

    def _run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        code = code_digest()
        futures = {
            self._client.submit(_carried_out_there, code, task, pure=False): at
            for at, task in enumerate(tasks)
        }
        lost = dict.fromkeys(range(len(tasks)), 0)
        # What `futures` lets go of, the cluster may forget.
        results = distributed.as_completed(
            list(futures), loop=self._client.loop, with_results=True, raise_errors=False
        )
        try:
            for future, result in results:
                at = futures.pop(future)
                # Of an error: its type, itself, its traceback.
                said = result[1] if isinstance(result, tuple) else result
                if _unknown(future.status, said) and lost[at] < _TIMES and self._answers():
                    # Its worker died with the result.
                    lost[at] += 1
                    new = self._client.submit(_carried_out_there, code, tasks[at], pure=False)
                    futures[new] = at
                    results.add(new)
                    continue
                yield at, self.outcome(tasks[at], future.status, said)
                del future, result
        finally:
            if futures:
                with suppress(OSError, TimeoutError):
                    self._client.cancel(list(futures), force=True)

    def outcome(self, task: Task, status: str, result: Any) -> Outcome:
        """What became of a task, from its future's status and result, or error.

        Raises :class:`UserError` if a worker does not run our program, :class:`Failure` if the scheduler
        is gone.
        """
        if status == "finished":
            found: Outcome = result
            return found
        if _unknown(status, result):
            raise Failure(f"--scheduler {self.address}: the scheduler went away while the campaign ran")
        if isinstance(result, OtherProgram):
            raise UserError(f"--scheduler {self.address}: {result}")
        if isinstance(result, KilledWorker):
            why = f"each worker that ran it was killed (lack of memory?): {result}"
            return Failed(task.keys, Failure(why))
        return Failed(task.keys, result if isinstance(result, Exception) else Failure(str(result)))

    def _answers(self) -> bool:
        """Whether the scheduler is still there."""
        if self._client.status != "running":
            return False
        try:
            self._client.nthreads()
        except (OSError, TimeoutError):
            return False
        return True

    def close(self) -> None:
        self._client.close()


def _unknown(status: str, result: Any) -> bool:
    """Whether the cluster does not know what became of a task."""
    return status in ("cancelled", "lost", "pending") or isinstance(result, FutureCancelledError)


def _carried_out_there(code: str, task: Task) -> Outcome:
    """On a worker: run a task, if this is the program that wants it run."""
    if code_digest() != code:
        raise OtherProgram(
            "expected headway as it is here on every worker, found other source on "
            f"{distributed.get_worker().address}"
        )
    return carried_out(task)


@contextmanager
def connected(address: str, workers: int, on_wait: Callable[[str], None]) -> Iterator[DaskCluster]:
    """A cluster with at least so many workers that run our program; ``on_wait(text)`` tells a person what it
    waits for."""
    cluster = DaskCluster(address)
    try:
        there = cluster.workers()
        if len(there) < workers:
            on_wait(f"{address}: {len(there)} workers, waiting for {workers}")
            cluster.wait_for(workers)
        cluster.check()
        several = [worker for worker, threads in cluster.workers().items() if threads > 1]
        if several:
            on_wait(
                f"{address}: {len(several)} workers have several threads, which disturb each other: "
                "start workers with --nthreads 1"
            )
        yield cluster
    finally:
        cluster.close()
