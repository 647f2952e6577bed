"""Campaigns on a Dask cluster: the same numbers, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign_tasks import row, task, wrong
from distributed import LocalCluster
from distributed.scheduler import KilledWorker

from headway import __version__
from headway.errors import Failure, UserError
from headway.experiment import Campaign, Scenario, Variant, dask_cluster
from headway.experiment.campaign import Task
from headway.experiment.dask_cluster import DaskCluster, connected
from headway.experiment.execution import Failed, Outcome, run_campaign
from headway.experiment.kept_runs import KeptRuns, run_missing, wanted
from headway.experiment.record import files_of, program
from headway.plugins import Catalogue, PluginConfig

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def silent(text: str) -> None:
    pass


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(address: str, tmp_path: Path) -> None:
    month = Scenario("month", 0.8, 64, model="month", options={"processors": 64, "days": 2, "load": 0.8})
    plan = Campaign((Variant("easy", (PluginConfig("easy"),)),), (month,), tuple(range(1, 7)))
    runs = wanted(plan, files_of(plan, Catalogue()))
    kept = KeptRuns(tmp_path, runs, {}, program())
    with connected(address, 2, silent) as cluster:
        first, _ = cluster.pids().values()

        def killing(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
            for count, ended in enumerate(cluster.runner()(tasks)):
                if count == 0:
                    os.kill(first, signal.SIGKILL)
                yield ended

        assert run_missing(kept, killing, lambda n: None) == []
    # As text, because a metric without a value is NaN, which equals nothing.
    assert repr(kept.rows()) == repr(run_campaign(plan))


def test_a_task_that_fails_does_not_end_the_others(address: str) -> None:
    with connected(address, 1, silent) as cluster:
        found = dict(cluster.runner()([task(row, 0), task(wrong, 1), task(row, 2)]))
    failed = found.pop(1)
    assert found == {0: row(0), 2: row(2)}
    assert isinstance(failed, Failed) and failed.message == "1 is wrong"


def test_a_task_that_kills_each_worker_is_a_failed_one(address: str) -> None:
    # As Dask says it after three workers that died under one task, which takes long.
    killed = KilledWorker("task", SimpleNamespace(address="tcp://w:1"), 3)
    with connected(address, 1, silent) as cluster:
        found = cluster.outcome(task(row, 0), "error", killed)
    assert isinstance(found, Failed) and "each worker that ran it was killed" in found.message


def test_a_scheduler_that_goes_away_ends_the_campaign(address: str) -> None:
    with (
        connected(address, 1, silent) as cluster,
        pytest.raises(Failure, match="the scheduler went away while"),
    ):
        cluster.outcome(task(row, 0), "cancelled", None)


def test_workers_with_another_version_are_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "program", lambda: {"version": "9.9", "code": ""})
    with pytest.raises(UserError, match=rf"expected headway 9.9 .*found:\n  tcp://.*: {__version__}"):
        connected(address, 1, silent).__enter__()
    monkeypatch.setattr(dask_cluster, "program", lambda: {"version": __version__, "code": "other"})
    with pytest.raises(UserError, match=f"{__version__} with other source"):
        connected(address, 1, silent).__enter__()


def test_a_worker_that_comes_later_with_other_source_is_named(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(address, 1, silent) as cluster:
        monkeypatch.setattr(dask_cluster, "code_digest", lambda: "other")
        with pytest.raises(UserError, match="found other source on tcp://"):
            list(cluster.runner()([task(row, 0)]))


def test_an_address_that_does_not_answer() -> None:
    with socket.socket() as bound:
        # Bound, and not listening: nobody answers.
        bound.bind(("127.0.0.1", 0))
        where = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(Failure, match=f"--scheduler {where}: expected a Dask scheduler, found none"):
            DaskCluster(where, timeout=0.5)


@pytest.mark.parametrize(
    ("scheme", "said"),
    [("tcp", b""), ("tcp", b"HTTP/1.1 400 Bad Request\r\n\r\n"), ("tls", b"")],
    ids=["silent", "a web server", "no certificates"],
)
def test_something_else_that_listens_there(scheme: str, said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            # Until the test closes the socket.
            with suppress(OSError):
                while True:
                    found.append(server.accept()[0])
                    found[-1].sendall(said)

        found: list[socket.socket] = []
        answering = threading.Thread(target=answer)
        answering.start()
        try:
            with pytest.raises(Failure, match=f"--scheduler {where}: expected a Dask scheduler, found none"):
                DaskCluster(where, timeout=0.5)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            answering.join()
            for one in found:
                one.close()


def test_a_worker_is_no_scheduler(address: str) -> None:
    with connected(address, 1, silent) as cluster:
        worker = next(iter(cluster.workers()))
    with pytest.raises(Failure, match="another program answers"):
        DaskCluster(worker)


@pytest.mark.parametrize("address", ["head", "carrier://pigeon:1", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UserError, match="expected the address of a Dask scheduler, such as tcp://head:8786"):
        DaskCluster(address)
