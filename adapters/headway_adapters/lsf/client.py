"""LSF's commands: the only place of this adapter that runs commands.

LSF's commands wait for ever while the batch daemon is down (``batch system daemon not responding ... still
trying``), so each is ended after ``command_timeout``; that is silence, never news.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.errors import Failure
from headway_adapters.lsf import listing
from headway_adapters.lsf.listing import Ending, Row
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.client import CommandClient, Unanswered
from headway_adapters.transport import Result, Transport, make_transport

_READERS = frozenset(
    {"bjobs", "bhosts", "bqueues", "bhist", "bacct", "bmgroup", "bparams", "brsvs", "lsid", "lshosts",
     "lsload", "lsclusters", "bugroup"}
)  # fmt: skip
_READING_VERBS: dict[str, frozenset[str]] = {"badmin": frozenset({"showconf", "showstatus"})}
#: Signs in an error message that LSF did not answer, so that asking again now is useless.
_SILENCE = (
    "not responding",
    "still trying",
    "LSF is down",
    "LIM is down",
    "lim is down",
    "Please wait",
    "Communication time out",
    "Connection refused",
    "Failed in sending/receiving a message",
    "Host does not exist in LSF administered cluster",
)
#: Jobs named in one command.
_AT_ONCE = 200
#: Variables that change what LSF's commands print.
_FORMATS = (
    "LSB_BJOBS_", "LSB_BHOSTS_", "LSB_BQUEUES_", "LSB_HMS_", "LSF_LSHOSTS_", "LSB_DISPLAY_", "LSB_JOBID",
)  # fmt: skip


def only_reads(argv: Sequence[str]) -> bool:
    """Whether a command certainly changes nothing."""
    if argv[0] in _READERS or list(argv[1:]) == ["-V"]:
        return True
    return len(argv) > 1 and argv[1] in _READING_VERBS.get(argv[0], ())


def is_silence(result: Result) -> bool:
    """Whether a failed command failed because LSF did not answer."""
    return result.unanswered or (not result.ok and any(sign in result.stderr for sign in _SILENCE))


def environment(options: LsfOptions) -> dict[str, str]:
    """What is added to the commands' environment: times in UTC, and what the options say."""
    return {**options.environment, "TZ": "UTC"}


class LsfClient(CommandClient):
    """Runs LSF's commands through a transport."""

    def __init__(self, options: LsfOptions, *, read_only: bool, transport: Transport | None = None) -> None:
        super().__init__(
            transport or make_transport(options, environment=environment(options), without=_FORMATS),
            timeout=options.command_timeout,
            read_only=read_only,
        )

    def only_reads(self, argv: Sequence[str]) -> bool:
        return only_reads(argv)

    def is_silence(self, result: Result) -> bool:
        return is_silence(result)

    def run_many(self, argvs: Sequence[Sequence[str]]) -> list[Result]:
        """Several commands at the same time.

        Raises :class:`Unanswered` when a listing is cut off within a line: half a table looks like a whole
        one with fewer jobs and hosts, and would be news about the jobs and hosts that are missing.
        """
        results = super().run_many(argvs)
        for result in results:
            cut = result.ok and result.stdout and not result.stdout.endswith(b"\n")
            if cut and self.only_reads(result.argv):
                raise Unanswered(f"{' '.join(result.argv[:3])}: its output is cut off")
        return results

    def rows(self, job_ids: Sequence[str], times: Calendar) -> dict[str, Row]:
        """Where these jobs stand now; an unknown job is left out.

        Raises :class:`Unanswered` when that cannot be asked now.
        """
        found: dict[str, Row] = {}
        for at in range(0, len(job_ids), _AT_ONCE):
            asked = job_ids[at : at + _AT_ONCE]
            rows = self._rows(asked, times)
            doubtful = asked if rows is None else [one for one in asked if one not in rows]
            found |= rows or {}
            for one in doubtful if len(asked) > 1 else ():
                # Not one row a job: some are not known, or a job's name imitates another's row. Asked about
                # alone, the first row is the job's own.
                alone = self._rows([one], times, strict=False) or {}
                found |= {key: row for key, row in alone.items() if key == one}
        return found

    def _rows(self, job_ids: Sequence[str], times: Calendar, *, strict: bool = True) -> dict[str, Row] | None:
        """The rows of these jobs; None if they cannot be read or, being ``strict``, hold anything odd."""
        result = self.run(("bjobs", "-a", "-w", *job_ids))
        # With several ids the status is 255 as soon as one of them is not known.
        if result.timed_out or result.too_long or is_silence(result):
            raise Unanswered(f"bjobs -w: {result.complaint()}")
        odd: set[str] = set()
        try:
            rows = listing.read_wide_rows(result.text, times, odd) if result.stdout else {}
        except Failure:
            return None
        return None if strict and (odd or not set(rows) <= set(job_ids)) else rows

    def endings(self, job_ids: Sequence[str], times: Calendar) -> dict[str, Ending]:
        """How jobs ended that the listing no longer shows; an unknown job is left out.

        Raises :class:`Unanswered` when that cannot be asked now.
        """
        found: dict[str, Ending] = {}
        for asked, text in self._told_of(job_ids):
            endings = listing.read_history(text, times)
            found |= {one: endings[one] for one in asked if one in endings}
        return found

    def started_again(self, job_ids: Sequence[str]) -> set[str]:
        """The jobs among these that had ended while they waited, and that ``brun`` has started all the same.

        Raises :class:`Unanswered` when that cannot be asked now.
        """
        return {
            one
            for asked, text in self._told_of(job_ids)
            for one in listing.started_again(text).intersection(asked)
        }

    def _told_of(self, job_ids: Sequence[str]) -> Iterator[tuple[Sequence[str], str]]:
        """The jobs' histories, each text with the jobs that it is certainly about."""
        for at in range(0, len(job_ids), _AT_ONCE):
            asked = job_ids[at : at + _AT_ONCE]
            text = self._histories([asked])[0]
            if sorted(listing.told_of(text)) == sorted(asked):
                yield asked, text
                continue
            # Not one record a job: some are not known, or a job's own words imitate another's record. Asked
            # about alone, no job's words stand in another job's answer.
            alone = self._histories([[one] for one in asked])
            yield from (([one], text) for one, text in zip(asked, alone, strict=True))

    def _histories(self, questions: Sequence[Sequence[str]]) -> list[str]:
        results = self.run_many([("bhist", "-a", "-l", "-u", "all", *ids) for ids in questions])
        for result in results:
            if result.timed_out or result.too_long or is_silence(result):
                raise Unanswered(f"bhist: {result.complaint()}")
        return [result.text for result in results]
