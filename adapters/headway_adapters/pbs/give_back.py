"""Hand control back to PBS: let its server schedule again.

headway holds no job, so nothing but the server's scheduling is to be switched; the next cycle of PBS starts
what waits. What stays as it is, because only its owner or an administrator can know whether it should, is
listed: jobs that are held as by an administrator, and suspended ones.

``headway give-back`` does it. ``python -m headway_adapters.pbs.give_back``, which reads no configuration,
still works and goes with the next version.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from headway.adapter import Given
from headway.errors import HeadwayError
from headway_adapters.pbs import cluster, reader
from headway_adapters.pbs.checks import flavour_of, schedules
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.listings import CRASHES, Listings
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.polling.giving_back import PollingGivingBack


class PbsGivingBack(PollingGivingBack):
    """Gives a server back to PBS: all of its queues together, since PBS schedules all or none."""

    client: PbsClient

    def connect(self, options: PbsOptions, *, read_only: bool) -> PbsClient:
        self.pools = options.queues
        self._options = options
        return PbsClient(options, read_only=read_only)

    def give_back(self, pools: Sequence[str], go_on: Callable[[], bool]) -> Iterator[Given]:
        flavour = flavour_of(self.client.run(("qstat", "--version")), self._options)
        if self._options.reservations:
            # The server schedules all along, and the queues are stopped.
            for name in pools:
                yield from self._switch("queue", name, f"set queue {name} started = True", go_on)
        elif missing := [name for name in self.pools if name not in pools]:
            said = (
                f"{', '.join(missing)} must be given back as well (--all): PBS schedules all queues or none"
            )
            yield Given("server", "scheduling", "failed", said)
            return
        elif not schedules(self.client, flavour):
            yield from self._switch("server", "scheduling", "set server scheduling = True", go_on)
        yield from self._left_alone(torque=flavour == "torque")

    def _switch(self, kind: str, name: str, order: str, go_on: Callable[[], bool]) -> Iterator[Given]:
        if go_on():
            problem = self.change(("qmgr", "-c", order))
            yield Given(kind, name, "failed" if problem else "given back", problem or "on")

    def _left_alone(self, *, torque: bool) -> Iterator[Given]:
        """Jobs that wait for a user or an administrator."""
        listings, now = Listings(self.client, torque=torque), time.time()
        records, unread = listings.jobs(self.client.run(listings.all_jobs_command(now)), now, set())
        for job_id in sorted(unread):
            yield Given("job", job_id, "left", f"{CRASHES} {job_id}")
        managed = tuple({reader.values.text(record.queue) for record in records.values()})
        site = cluster.Site(managed=managed, array_limit=1_000_000)
        found = reader.read_jobs(records, now, site, {}, cluster.Nodes(), set())
        for job_id, job in found.jobs.items():
            if job.held_by == "administrator":
                yield Given("job", job_id, "left", f"{job.reason}: qrls -h s {job_id}")
            elif job.state == "suspended":
                yield Given("job", job_id, "left", f"suspended: qsig -s admin-resume {job_id}")


def main(argv: Sequence[str] | None = None) -> int:
    """The command of earlier versions; 0: PBS schedules again, 1: it does not."""
    parser = argparse.ArgumentParser(
        prog="python -m headway_adapters.pbs.give_back",
        description="Let PBS's server schedule again, and list the jobs that wait for a command of an "
        "administrator.",
    )
    parser.add_argument("--server", help="the PBS server (default: the server of pbs.conf)")
    parser.add_argument("--bin-dir", help="directory of PBS's commands, such as /opt/pbs/bin")
    given = parser.parse_args(argv)
    print("deprecated: use `headway give-back`", file=sys.stderr)
    try:
        options = PbsOptions(queues=("all",), server=given.server, bin_dir=given.bin_dir)
        failed = 0
        with PbsGivingBack(options) as giving:
            for one in giving.give_back(giving.pools, lambda: True):
                print(one.line)
                failed += one.result == "failed"
        return 1 if failed else 0
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
