"""A pool that the operator makes while the daemon runs, and takes away."""

from __future__ import annotations

from real_systems import Lsf, Pbs, Slurm

from headway import events as ev


class ChangingPools:
    """What must hold on each real batch system whose pools change."""

    def test_a_pool_that_is_made_and_deleted_while_the_daemon_runs(self, system: Lsf | Pbs | Slurm) -> None:
        daemon = system.daemon()
        daemon.start()
        with system.another_pool() as pool:
            # Its jobs are not headway's: one has two of the processors.
            stranger = system.run_elsewhere(pool, 2)
            daemon.until(
                lambda: stranger in {one.job_id for one in daemon.events(ev.JobStarted)},
                what="the job of the new pool is known",
            )
            whole = system.submit(system.whole, nodes=system.nodes, seconds=1)
            small = system.submit(1, seconds=1)
            daemon.until(
                lambda: small in {one.job_id for one in daemon.events(ev.JobEnded)},
                what="a job that has room beside it runs",
            )
            assert system.waits(whole)
            system.cancel(stranger)
            daemon.until(
                lambda: whole in {one.job_id for one in daemon.events(ev.JobEnded)},
                what="the others start when it is over",
            )
        again = system.submit(1, seconds=1)
        daemon.until(
            lambda: again in {one.job_id for one in daemon.events(ev.JobEnded)},
            what="jobs run when it is gone",
        )
        assert daemon.stop() == 0
        assert {one.pool.name for one in daemon.events(ev.PoolChanged)} == {pool}
        assert not daemon.events(ev.DecisionFailed)
        daemon.assert_replays()
