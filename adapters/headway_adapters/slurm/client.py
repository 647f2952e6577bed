"""Slurm's commands: the one place of this adapter that runs any."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from headway_adapters.client import CommandClient, Unanswered
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.reader import Ending, read_energies, read_job_text, read_sacct
from headway_adapters.transport import Result, Transport, make_transport

_READERS = frozenset({"squeue", "sinfo", "sacct", "sdiag", "sprio"})
_READING_VERBS: dict[str, frozenset[str]] = {
    "scontrol": frozenset({"show", "ping"}),
    "sacctmgr": frozenset({"show", "list"}),
}
#: Signs in an error message that nobody answered, so that asking again now is useless.
_SILENCE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "authentication error",
)


def only_reads(argv: Sequence[str]) -> bool:
    """Whether a command certainly changes nothing."""
    if argv[0] in _READERS or list(argv[1:]) == ["--version"]:
        return True
    verb = next((word for word in argv[1:] if not word.startswith("-")), "")
    return verb in _READING_VERBS.get(argv[0], ())


def is_silence(result: Result) -> bool:
    """Whether a failed command failed because nobody answered."""
    return result.unanswered or (not result.ok and any(sign in result.stderr for sign in _SILENCE))


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

    def only_reads(self, argv: Sequence[str]) -> bool:
        return only_reads(argv)

    def is_silence(self, result: Result) -> bool:
        return is_silence(result)

    def endings(self, job_ids: Sequence[str], *, accounting: bool) -> Mapping[str, Ending]:
        """How jobs ended that the listing no longer shows; a job nobody knows is left out.

        Raises :class:`Unanswered` when that cannot be asked now.
        """
        found: dict[str, Ending] = {}
        asked = [job_id for job_id in job_ids if job_id.replace("_", "", 1).isdecimal()]
        if accounting:
            for at in range(0, len(asked), 200):
                part = ",".join(asked[at : at + 200])
                columns = "JobID,State,ExitCode,Start,End,NodeList"
                argv = ("sacct", "-n", "-P", "-X", "-a", "-S", "now-30days", "-o", columns, "-j", part)
                found.update(read_sacct(self.look([argv])[0].text))
        left = [job_id for job_id in asked if job_id not in found]
        for result in self.run_many([("scontrol", "-o", "show", "job", job_id) for job_id in left]):
            if result.ok:
                found.update(read_job_text(result.text))
            elif "Invalid job id" not in result.stderr:
                raise Unanswered(f"scontrol show job: {result.complaint()}")
        return found

    def energies(self, job_ids: Sequence[str]) -> Mapping[str, float]:
        """What jobs used, joules, as far as the accounting says already."""
        part = ",".join(job_id for job_id in job_ids if job_id.replace("_", "", 1).isdecimal())
        argv = ("sacct", "-n", "-P", "-a", "-S", "now-30days", "-o", "JobID,ConsumedEnergyRaw", "-j", part)
        result = self.run(argv) if part else None
        return read_energies(result.text) if result is not None and result.ok else {}
