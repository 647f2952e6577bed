"""Hand control back to LSF: activate the queues again.

From then on LSF starts the queues' jobs by itself. Holds (PSUSP) stay: LSF does not say whose they are, so
those jobs are listed, and ``bresume JOB`` releases one.

``headway give-back`` does it. ``python -m headway_adapters.lsf.give_back QUEUE...``, which reads no
configuration, still works and goes with the next version.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

from headway.adapter import Given
from headway.errors import HeadwayError, UserError
from headway_adapters.lsf import listing, writer
from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.documents import table
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.giving_back import PollingGivingBack


class LsfGivingBack(PollingGivingBack):
    """Gives queues back to LSF."""

    client: LsfClient

    def connect(self, options: LsfOptions, *, read_only: bool) -> LsfClient:
        self.pools = options.queues
        return LsfClient(options, read_only=read_only)

    def give_back(self, pools: Sequence[str], go_on: Callable[[], bool]) -> Iterator[Given]:
        (listed,) = self.client.look([("bqueues", "-w")])
        known = {row.get("QUEUE_NAME", ""): row.get("STATUS", "") for row in table(listed.text)}
        for name in pools:
            if name not in known:
                raise UserError(f"LSF has no queue {name!r}. Known: {', '.join(sorted(known)) or 'none'}.")
        for name in pools:
            if known[name].endswith(":Active") or not go_on():
                continue
            problem = self.change(("badmin", "qact", writer.name(name, "a queue")))
            yield Given("queue", name, "failed" if problem else "given back", problem or "active")
        for job_id in self._held(pools):
            yield Given("job", job_id, "left", "held; bresume releases it")

    def _held(self, queues: Sequence[str]) -> list[str]:
        result = self.client.run(("bjobs", "-u", "all", "-w"))
        rows = listing.read_wide_rows(result.text, Calendar(time.time()), set()) if result.stdout else {}
        return [job_id for job_id, row in rows.items() if row.stat == "PSUSP" and row.queue in queues]


def main(argv: Sequence[str] | None = None) -> int:
    """The command of earlier versions; 0: all active, 1: some could not be, 2: wrong usage."""
    queues = tuple(sys.argv[1:] if argv is None else argv)
    try:
        if not queues or any(name.startswith("-") for name in queues):
            raise UserError("usage: python -m headway_adapters.lsf.give_back QUEUE...")
        for name in queues:
            writer.name(name, "a queue")
        print("deprecated: use `headway give-back`", file=sys.stderr)
        failed = 0
        with LsfGivingBack(LsfOptions(queues=queues)) as giving:
            for given in giving.give_back(queues, lambda: True):
                print(given.line)
                failed += given.result == "failed"
        return 1 if failed else 0
    except writer.Unfit as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
