"""Hand control back to PBS: let its server schedule again.

``python -m headway_adapters.pbs.give_back``, after headway was stopped. headway holds no job, so nothing
but the server's scheduling is to be switched; the next cycle of PBS starts what waits. What stays as it
is, because only its owner or an administrator can know whether it should, is listed: jobs that are
held as by an administrator, and suspended ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from headway.errors import Failure, HeadwayError
from headway_adapters.pbs import cluster, reader
from headway_adapters.pbs.checks import flavour_of
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.listings import CRASHES, Listings
from headway_adapters.pbs.options import PbsOptions


def give_back(client: PbsClient) -> None:
    """Switch the server's scheduling on. Raises :class:`headway.errors.Failure` with PBS's answer."""
    client.look([("qmgr", "-c", "set server scheduling = True")])


def left_alone(client: PbsClient) -> Iterator[tuple[str, str]]:
    """Jobs that wait for a user or an administrator: id and why. Raises :class:`headway.errors.Failure`."""
    version = client.run(("qstat", "--version"))
    is_torque = flavour_of(version, PbsOptions(queues=("all",))) == "torque"
    listings, now = Listings(client, torque=is_torque), time.time()
    records, unread = listings.jobs(client.run(listings.all_jobs_command(now)), now, set())
    for job_id in sorted(unread):
        yield job_id, f"{CRASHES} {job_id}"
    managed = tuple({reader.values.text(record.queue) for record in records.values()})
    site = cluster.Site(managed=managed, array_limit=1_000_000)
    found = reader.read_jobs(records, now, site, {}, cluster.Nodes(), set())
    for job_id, job in found.jobs.items():
        if job.held_by == "administrator":
            yield job_id, f"{job.reason}: qrls -h s {job_id}"
        elif job.state == "suspended":
            yield job_id, f"suspended: qsig -s admin-resume {job_id}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0: PBS schedules again, 1: it does not."""
    parser = argparse.ArgumentParser(
        prog="python -m headway_adapters.pbs.give_back",
        description="Let PBS's server schedule again, and list the jobs that wait for a command of an "
        "administrator.",
    )
    parser.add_argument("--server", help="the PBS server (default: the server of pbs.conf)")
    parser.add_argument("--bin-dir", help="directory of PBS's commands, such as /opt/pbs/bin")
    given = parser.parse_args(argv)
    try:
        options = PbsOptions(queues=("all",), server=given.server, bin_dir=given.bin_dir)
        client = PbsClient(options, read_only=False)
        give_back(client)
        print("server scheduling: on")
        for job_id, why in left_alone(client):
            print(f"job {job_id}: {why}")
        return 0
    except Failure as error:
        print(error, file=sys.stderr)
        return Failure.exit_code
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
