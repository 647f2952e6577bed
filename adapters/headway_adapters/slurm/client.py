"""Slurm's commands: the only place of this adapter that runs commands."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import Failure
from headway_adapters.polling.client import CommandClient, Unanswered
from headway_adapters.slurm.fence import SlurmFence
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.reader import Ending, read_energies, read_job_text, read_sacct, says_gone
from headway_adapters.transport import Result, Transport, make_transport

_READERS = frozenset({"squeue", "sinfo", "sacct", "sdiag", "sprio", "sshare"})
_READING_VERBS: dict[str, frozenset[str]] = {
    "scontrol": frozenset({"show", "ping"}),
    "sacctmgr": frozenset({"show", "list"}),
}
#: Signs in an error message that no daemon answered, so that asking again now is useless.
_SILENCE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection reset by peer",
    "Zero Bytes were transmitted",
    "authentication error",
)
#: Slurm 24.11 without accounting answers so to about every second change of a job's partition, changes
#: nothing, and does it when asked again; and how often it is asked.
_ASK_AGAIN = "Resource temporarily unavailable"
_ATTEMPTS = 16
#: The epoch of a mark in Slurm's JSON.
_MARKED = re.compile(rb'"admin_comment": ?"headway:[^"]*;epoch=([0-9]{1,15})"')
#: Seconds without questions to an accounting that did not answer.
_ACCOUNTING_PAUSE = 10.0


@dataclass(frozen=True)
class Endings:
    """How jobs ended that a listing no longer shows. A job that stands nowhere here is unknown."""

    found: Mapping[str, Ending]
    #: Job -> what was said of it that is not understood.
    unclear: Mapping[str, str]


def only_reads(argv: Sequence[str]) -> bool:
    """Whether a command certainly changes nothing."""
    if argv[0] in _READERS or list(argv[1:]) == ["--version"]:
        return True
    verb = next((word for word in argv[1:] if not word.startswith("-")), "")
    return verb in _READING_VERBS.get(argv[0], ())


def is_silence(result: Result) -> bool:
    """Whether a failed command failed because no daemon answered."""
    return result.unanswered or (not result.ok and any(sign in result.stderr for sign in _SILENCE))


def _wants_to_be_asked_again(result: Result | None) -> bool:
    return result is not None and not result.ok and _ASK_AGAIN in result.stderr


def environment(options: SlurmOptions) -> dict[str, str]:
    """What is added to the commands' environment.

    Times in UTC, in one format, and the whole list of an array's elements (by default Slurm cuts
    it after 64 characters).
    """
    added = {"TZ": "UTC", "SLURM_TIME_FORMAT": "standard", "SLURM_BITSTR_LEN": "0"}
    conf = options.slurm_conf
    if conf is None and options.ssh is None:
        conf = os.environ.get("SLURM_CONF")
    if conf:
        added["SLURM_CONF"] = conf
    return added


class SlurmClient(CommandClient):
    """Runs Slurm's commands through a transport."""

    fence: SlurmFence

    def __init__(self, options: SlurmOptions, *, read_only: bool, transport: Transport | None = None) -> None:
        super().__init__(
            transport
            or make_transport(
                options,
                environment=environment(options),
                without=("SLURM_", "SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "SBATCH_", "SCANCEL_"),
            ),
            timeout=options.command_timeout,
            read_only=read_only,
        )
        self.fence = SlurmFence(self._ask_filter)
        #: When the accounting may be asked again, on the monotonic clock.
        self._ask_again = 0.0

    def only_reads(self, argv: Sequence[str]) -> bool:
        return only_reads(argv)

    def is_silence(self, result: Result) -> bool:
        return is_silence(result)

    def change_all(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        results = super().change_all(argvs)
        for _ in range(_ATTEMPTS - 1):
            again = [at for at, result in enumerate(results) if _wants_to_be_asked_again(result)]
            if not again:
                break
            for at, result in zip(again, super().change_all([argvs[at] for at in again]), strict=True):
                results[at] = result
        return results

    def lead(self, epoch: int, name: str, superseded: Callable[[int], None], log: Any) -> None:
        super().lead(epoch, name, superseded, log)
        if self.fence.is_unknown:
            log.info("the submit filter knows no fence", epoch=epoch)
        elif self.fence.is_unsaved:
            log.warning("slurmctld cannot keep the epoch", epoch=epoch)

    def _ask_filter(self, question: str) -> Result:
        result = self.harmless(("sbatch", "--test-only", f"--comment={question}", "--wrap=true"))
        if self.is_silence(result):
            raise Unanswered(f"sbatch: {result.complaint()}")
        return result

    def highest_mark(self) -> int:
        """The highest epoch in the marks of all jobs; 0: none has one. Raises :class:`Unanswered`."""
        (listing,) = self.look([("squeue", "--json", "-a", "-t", "all")])
        return max((int(epoch) for epoch in _MARKED.findall(listing.stdout)), default=0)

    def endings(self, job_ids: Sequence[str], *, accounting: bool) -> Endings:
        """How jobs ended that the listing no longer shows.

        slurmctld is asked first, the accounting about what it does not know any more. Raises
        :class:`Unanswered` when slurmctld answers nothing.
        """
        found: dict[str, Ending] = {}
        unclear: dict[str, str] = {}
        gone: list[str] = []
        by_record: dict[str, list[str]] = {}
        for job_id in job_ids:
            # All that is left of an array comes with one answer.
            by_record.setdefault(job_id.partition("_")[0], []).append(job_id)
        asked = [number for number in by_record if number.isascii() and number.isdecimal()]
        results = self.run_many([("scontrol", "-o", "show", "job", number) for number in asked])
        if results and all(self.is_silence(result) for result in results):
            raise Unanswered(f"scontrol show job: {results[0].complaint()}")
        for number, result in zip(asked, results, strict=True):
            told = read_job_text(result.text) if result.ok else {}
            understood = bool(told) or (not result.ok and says_gone(f"{result.stderr} {result.text}"))
            for job_id in by_record[number]:
                if job_id in told:
                    found[job_id] = told[job_id]
                elif understood:
                    gone.append(job_id)
                else:
                    unclear[job_id] = f"scontrol show job: {result.complaint()}"
        if accounting and gone:
            self._ask_accounting(gone, found, unclear)
        return Endings(found, unclear)

    def _ask_accounting(
        self, job_ids: Sequence[str], found: dict[str, Ending], unclear: dict[str, str]
    ) -> None:
        columns = "JobID,State,ExitCode,Start,End,NodeList"
        for at in range(0, len(job_ids), 200):
            part = job_ids[at : at + 200]
            argv = ("sacct", "-n", "-P", "-X", "-a", "-S", "now-30days", "-o", columns, "-j", ",".join(part))
            why = "the accounting was asked a moment ago"
            if time.monotonic() >= self._ask_again:
                result = self.run(argv)
                if result.ok:
                    told = read_sacct(result.text)
                    found.update((job_id, told[job_id]) for job_id in part if job_id in told)
                    continue
                why = f"sacct: {result.complaint()}"
                self._ask_again = time.monotonic() + _ACCOUNTING_PAUSE
            unclear.update((job_id, why) for job_id in part)

    def energies(self, job_ids: Sequence[str]) -> Mapping[str, float]:
        """What jobs used, joules, as far as the accounting says already; nothing where it does not answer."""
        part = ",".join(job_id for job_id in job_ids if job_id.replace("_", "", 1).isdecimal())
        argv = ("sacct", "-n", "-P", "-a", "-S", "now-30days", "-o", "JobID,ConsumedEnergyRaw", "-j", part)
        try:
            result = self.run(argv) if part else None
        except Failure:
            return {}
        return read_energies(result.text) if result is not None and result.ok else {}
