"""Hand control back to LSF: activate the queues again.

``python -m headway_adapters.lsf.give_back [-c site.yaml] normal [more queues]``, after headway was
stopped. From then on LSF starts the queues' jobs by itself. Holds (PSUSP) stay: LSF does not say
whose they are, so those jobs are listed, and ``bresume JOB`` releases one. With ``-c`` the commands run
as the configuration says (``bin_dir``, ``environment``, ``ssh``), and its queues are taken when none are
named.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.config import load_config
from headway.errors import HeadwayError, UserError
from headway_adapters.lsf import listing, writer
from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.documents import table
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import validated

_USAGE = "usage: python -m headway_adapters.lsf.give_back [-c CONFIGURATION] QUEUE..."


def give_back(client: LsfClient, queues: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Activate each queue: its name, and what went wrong ("" if nothing did).

    Raises :class:`headway.errors.Failure` when LSF does not answer.
    """
    listed = client.look([("bqueues", "-w")])[0]
    known = {row.get("QUEUE_NAME", "") for row in table(listed.text)}
    for name in queues:
        if name not in known:
            raise UserError(f"LSF has no queue {name!r}. Known: {', '.join(sorted(known)) or 'none'}.")
    for name in queues:
        result = client.run(("badmin", "qact", writer.name(name, "a queue")))
        yield name, "" if result.ok else result.complaint()


def held(client: LsfClient, queues: Sequence[str]) -> list[str]:
    """The jobs of these queues that are held."""
    result = client.run(("bjobs", "-u", "all", "-w"))
    rows = listing.read_wide_rows(result.text, Calendar(time.time()), set()) if result.stdout else {}
    return [job_id for job_id, row in rows.items() if row.stat == "PSUSP" and row.queue in queues]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0: all active, 1: some could not be, 2: wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options, queues = _options(words)
        client = LsfClient(options, read_only=False)
        failed = 0
        for name, problem in give_back(client, queues):
            print(f"queue {name}: {problem or 'active'}")
            failed += bool(problem)
        for job_id in held(client, queues):
            print(f"job {job_id}: held; bresume releases it")
        return 1 if failed else 0
    except writer.Unfit as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _options(words: list[str]) -> tuple[LsfOptions, tuple[str, ...]]:
    configured: LsfOptions | None = None
    if words[:1] == ["-c"] and len(words) > 1:
        configured = validated(LsfOptions, load_config(Path(words[1])).cluster.options)
        words = words[2:]
    queues = tuple(words) or (configured.queues if configured is not None else ())
    if not queues or any(name.startswith("-") for name in queues):
        raise UserError(_USAGE)
    for name in queues:
        writer.name(name, "a queue")
    return configured or LsfOptions(queues=queues), queues


if __name__ == "__main__":
    raise SystemExit(main())
