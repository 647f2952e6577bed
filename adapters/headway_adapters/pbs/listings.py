"""PBS's listings: which commands ask for them, in which form, and what is done where that cannot be read.

Jobs are listed in the form that no user's text can change (:mod:`headway_adapters.pbs.dsv`), the rest as
JSON and, where that is broken, as text.

A user's job can make ``qstat`` itself crash, for all users (seen with OpenPBS 23.06: an ``&`` in the
attribute ``Submit_arguments``, which any program may set). Then the jobs' ids are asked for (``qselect``),
and the jobs in parts, smaller and smaller, until the jobs are known at which it crashes: only these are left
alone.

So is it done while there are large arrays. Once the last array of the server has begun some 500 of its
elements, a listing of all jobs with their elements repeats them without end (OpenPBS 23.06); one of jobs that
are named does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headway_adapters.pbs import documents, dsv, torque, writer
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.polling.client import Unanswered
from headway_adapters.transport import Result

#: Jobs that are asked about in one command.
_ASKED_AT_ONCE = 100
#: How long the text form of the vnodes is read after their JSON could not be used, seconds.
_TEXT_FOR = 300.0
#: The same of jobs at which qstat crashed: then it is tried with them once more.
_ALONE_FOR = 300.0
#: Jobs that are asked for at once where qstat crashes at some, and how many commands a look takes for them.
_PART = 1000
_MOST_COMMANDS = 64
#: Elements of an array from which on the jobs are asked for by their ids.
_LARGE_ARRAY = 400
#: What is said of a job at which qstat crashes.
CRASHES = "qstat crashes on showing job"


class Listings:
    """The listings of one PBS."""

    def __init__(self, client: PbsClient, *, torque: bool) -> None:
        self._client = client
        self._torque = torque
        #: The records of the last listing of all jobs.
        self._parsed = dsv.Parsed()
        #: The time until which the vnodes are read from the text form.
        self._as_text_until = 0.0
        #: The jobs at which qstat crashes, arrays as a whole, and the time until which that is believed.
        self._unprintable: frozenset[str] = frozenset()
        self._unprintable_until = 0.0
        #: There are arrays so large that a listing of all jobs may not end.
        self._large_arrays = False

    @property
    def form(self) -> tuple[str, ...]:
        """The words that ask for queues and servers in the form that is read best."""
        return () if self._torque else ("-F", "json")

    def all_jobs_command(self, now: float) -> tuple[str, ...]:
        """The command with which a look at all jobs begins."""
        if self._large_arrays or (self._unprintable and now < self._unprintable_until):
            return ("qselect",)
        return self.jobs_command("-t")

    def jobs_command(self, *flags: str) -> tuple[str, ...]:
        """The command that lists jobs."""
        if self._torque:
            return ("qstat", "-t", "-x")
        return ("qstat", *flags, "-f", *dsv.form(dsv.separator()))

    def nodes_command(self, now: float) -> tuple[str, ...]:
        """The command that lists the vnodes, in the best form that can be read now."""
        if self._torque:
            return ("pbsnodes", "-x")
        return ("pbsnodes", "-av") if now < self._as_text_until else ("pbsnodes", "-av", "-F", "json")

    def nodes(self, result: Result, now: float, notes: set[str]) -> Mapping[str, documents.NodeRecord]:
        """The vnodes; their text form is asked for when JSON cannot be understood.

        Raises :class:`Unanswered` when neither can.
        """
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        try:
            if self._torque:
                return torque.nodes(result.stdout)
            if "json" in result.argv:
                try:
                    return documents.nodes_json(result.stdout)
                except documents.Malformed as error:
                    notes.add(
                        f"the vnodes are read from the text form, because their JSON could not be used: "
                        f"{error}"
                    )
                    self._as_text_until = now + _TEXT_FOR
                    result = self._client.look([self.nodes_command(now)])[0]
            found = documents.nodes_text(result.stdout)
            if not found:
                raise documents.Malformed("pbsnodes: lists none")
            return found
        except documents.Malformed as error:
            # Perhaps only this answer was cut: the better form is tried again.
            self._as_text_until = 0.0
            raise Unanswered(str(error)) from error

    def jobs(
        self, result: Result, now: float, notes: set[str]
    ) -> tuple[dict[str, documents.JobRecord], frozenset[str]]:
        """All jobs, by the answer to :meth:`all_jobs_command`; and the jobs of which nothing could be read.

        Raises :class:`Unanswered`.
        """
        if "dsv" in result.argv and (result.crashed or _is_endless(result)):
            result = self._client.run(("qselect",))
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        try:
            if result.argv[0] != "qselect":
                self._unprintable = frozenset()
                found = dict(_jobs(result, self._parsed))
                self._large_arrays = not self._torque and _has_large_array(found)
                return found, frozenset()
            ids = [line for line in result.text.split() if _is_id(line) or _is_id(line, writer.array)]
            known = self._unprintable & set(ids) if now < self._unprintable_until else frozenset()
            found, crashing, unread = self._in_parts([key for key in ids if key not in known], ("-t",))
        except documents.Malformed as error:
            raise Unanswered(str(error)) from error
        self._large_arrays = _has_large_array(found)
        if crashing:
            self._unprintable_until = now + _ALONE_FOR
        self._unprintable = known | crashing
        for key in sorted(self._unprintable):
            notes.add(f"{CRASHES} {key}: headway does not touch the job until it is gone (qdel {key})")
        return found, self._unprintable | unread

    def _in_parts(
        self, ids: Sequence[str], flags: tuple[str, ...]
    ) -> tuple[dict[str, documents.JobRecord], set[str], set[str]]:
        """What qstat tells of these jobs; at which jobs it crashes; and the jobs that it did not come to.

        Raises :class:`Unanswered`, :class:`documents.Malformed`.
        """
        found: dict[str, documents.JobRecord] = {}
        crashing: set[str] = set()
        parts = [ids[at : at + _PART] for at in range(0, len(ids), _PART)]
        for _ in range(_MOST_COMMANDS):
            if not parts:
                break
            part = parts.pop()
            result = self._client.run((*self.jobs_command(*flags), *part))
            if result.crashed:
                half = len(part) // 2
                if half:
                    parts += [part[half:], part[:half]]
                else:
                    crashing.update(part)
            elif result.ok or _only_unknown(result):
                found.update(_jobs(result))
            else:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        return found, crashing, {key for part in parts for key in part}

    def objects(self, result: Result, kind: str, notes: set[str]) -> dict[str, dict[str, Any]]:
        """Queues or the server (``kind``: "Queue", "Server"), by name."""
        try:
            if "json" in result.argv:
                return documents.objects_json(result.stdout, kind)
        except documents.Malformed as error:
            notes.add(f"the {kind.lower()}s are read from the text form: {error}")
            result = self._client.look([result.argv[: result.argv.index("-F")]])[0]
        return documents.objects_text(result.text, kind)

    def asked(
        self, job_ids: Sequence[str], history: bool, notes: set[str]
    ) -> tuple[dict[str, documents.JobRecord], set[str]]:
        """What PBS and its history know of these jobs, without the jobs that it does not know; and the jobs
        about which it said what we do not understand.

        ``history``: ended ones can be asked for. Raises :class:`Unanswered` when nothing can be asked now.
        """
        found: dict[str, documents.JobRecord] = {}
        unclear: set[str] = set()
        asked = [job_id for job_id in job_ids if _is_id(job_id)]
        flags = ("-x", "-t") if history else ("-t",)
        parts = [asked[at : at + _ASKED_AT_ONCE] for at in range(0, len(asked), _ASKED_AT_ONCE)]
        commands = [(*self.jobs_command(*flags), *part) for part in parts]
        for part, result in zip(parts, self._client.run_many(commands), strict=True):
            if result.crashed:
                # The jobs at which it crashes are not in the listing of what is there: they are over.
                shown, _, rest = self._in_parts(part, flags)
                found.update(shown)
                unclear.update(rest)
                continue
            if is_silence(result):
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
            records: Mapping[str, documents.JobRecord] = {}
            try:
                records = _jobs(result)
            except documents.Malformed as error:
                notes.add(f"an answer about {len(part)} jobs is not understood: {error}")
                unclear.update(part)
            found.update(records)
            if not result.ok and not _only_unknown(result):
                # About one of them: the others were answered, or are asked again with the next look.
                notes.add(f"an answer about {len(part)} jobs is not understood: {result.complaint()}")
                unclear.update(part)
            elif result.ok:
                # PBS complains about what it does not know.
                unclear.update(part)
        return found, unclear - found.keys()


def _jobs(result: Result, parsed: dsv.Parsed | None = None) -> Mapping[str, documents.JobRecord]:
    """The jobs of a listing; ``parsed``: those of the listing before. Raises :class:`documents.Malformed`."""
    if "dsv" in result.argv:
        return dsv.jobs(result.stdout, dsv.separator_of(result.argv), parsed)
    return torque.jobs(result.stdout)


def _has_large_array(found: Iterable[str]) -> bool:
    """Whether an array of these jobs has so many elements that a listing of all jobs may not end."""
    elements = Counter(key.partition("[")[0] for key in found if "[" in key)
    return any(count > _LARGE_ARRAY for count in elements.values())


def _is_endless(result: Result) -> bool:
    """Whether a listing was cut because it did not end."""
    return bool(result.stdout) and (result.timed_out or result.too_long)


def _is_id(job_id: str, checked: Callable[[str], str] = writer.job) -> bool:
    try:
        checked(job_id)
    except writer.Unfit:
        return False
    return True


def _only_unknown(result: Result) -> bool:
    """Whether a command failed for nothing but jobs that PBS does not know."""
    if result.unanswered or result.too_long:
        return False
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return bool(lines) and all("Unknown Job" in line or "has finished" in line for line in lines)
