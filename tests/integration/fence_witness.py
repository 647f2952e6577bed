"""A witness beside the fence: slurmctld itself writes down each write that it was asked for, and its answer.

The functions of the shipped submit filter are wrapped, so the lines are in the order in which slurmctld took
the writes. What each line says of epochs is read here, by other code than the filter's. A job's record comes
before its next write, so a write that was refused and had an effect all the same is seen, too.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

#: slurm.SUCCESS; what the filter says to an older epoch.
ACCEPTED, SUPERSEDED = 0, 27182
#: A priority that a write does not ask for.
_NO_VAL = 4294967294
_EPOCH = re.compile(r"headway:.*;epoch=([0-9]+)$")
_QUESTION = re.compile(r"headway:lead=([0-9]+):\w+$")
#: Marks that the filter takes out of a write, so that the job keeps the mark that it has.
_PASSING = re.compile(r"headway:(same|release);epoch=[0-9]+$")
#: What a write did not ask for.
_NONE = "-"

_LUA = """
local shipped_modify, shipped_submit = slurm_job_modify, slurm_job_submit

local function witnessed(...)
   local words = {}
   for at = 1, select("#", ...) do
      local value = select(at, ...)
      words[at] = value == nil and "-" or (string.gsub(tostring(value), "%s", " "))
   end
   local file = io.open("WITNESS", "a")
   if file ~= nil then
      file:write(string.match(text_of("/proc/uptime"), "^%S+"), "\\t", table.concat(words, "\\t"), "\\n")
      file:close()
   end
end

function slurm_job_submit(job_desc, part_list, uid)
   local comment = job_desc.comment
   local code = shipped_submit(job_desc, part_list, uid)
   if string.find(comment or "", "^headway:") then
      witnessed("asked", code, uid, comment)
   end
   return code
end

function slurm_job_modify(job_desc, job_rec, part_list, uid)
   local mark, wish = job_desc.admin_comment, job_desc.priority
   local before, priority = job_rec.admin_comment, job_rec.priority
   local code = shipped_modify(job_desc, job_rec, part_list, uid)
   witnessed("write", code, uid, job_rec.job_id, mark, wish, before, priority, job_rec.restart_cnt)
   return code
end
"""


def witnessed(script: str, path: Path) -> str:
    """The submit filter ``script``, of which slurmctld writes into ``path`` what it was asked."""
    path.touch()
    path.chmod(0o666)
    return script + _LUA.replace("WITNESS", str(path))


@dataclass(frozen=True)
class Write:
    """A change of a job that slurmctld was asked for."""

    #: Seconds since the epoch.
    at: float
    code: int
    job: str
    #: The AdminComment that was asked for; "": none.
    mark: str
    #: The priority that was asked for; None: none.
    wish: int | None
    #: The job's AdminComment and priority then.
    before: str
    priority: int
    #: How often Slurm had started it again.
    restarts: int = 0

    @property
    def epoch(self) -> int:
        """0: it carries none."""
        return epoch_of(self.mark)

    @property
    def releases(self) -> bool:
        return self.wish not in (None, 0)


@dataclass(frozen=True)
class Lead:
    """A daemon told Slurm that it leads."""

    at: float
    epoch: int


def epoch_of(mark: str) -> int:
    """The epoch in a mark of headway's; 0: none."""
    found = _EPOCH.match(mark)
    return int(found[1]) if found else 0


@dataclass
class Verdict:
    """What the lines say, one after the other."""

    #: What must not be.
    wrong: list[str] = field(default_factory=list)
    #: Writes of an older epoch than the highest that Slurm had heard: refused unless `wrong` says otherwise.
    late: list[Write] = field(default_factory=list)
    #: The highest epoch that Slurm has heard.
    highest: int = 0
    #: Epoch -> when it was heard first, and when its first write was taken.
    heard: dict[int, float] = field(default_factory=dict)
    wrote: dict[int, float] = field(default_factory=dict)
    #: Epoch -> its writes that were taken; job -> the epochs of the releases that were.
    taken: Counter[int] = field(default_factory=Counter)
    released: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: Job -> the mark that the last pin wrote.
    pinned: dict[str, str] = field(default_factory=dict)
    #: Job -> the marks that it can have now; whether it is held until a release is taken.
    _marks: dict[str, set[str]] = field(default_factory=dict)
    _held: set[str] = field(default_factory=set)

    def see(self, line: Write | Lead) -> None:
        if isinstance(line, Lead):
            self._hear(line.epoch, line.at)
            return
        self._see_record(line)
        if line.code == ACCEPTED:
            self._see_taken(line)
        else:
            self._see_refused(line)

    def _hear(self, epoch: int, at: float) -> None:
        self.highest = max(self.highest, epoch)
        self.heard.setdefault(epoch, at)

    def _see_record(self, line: Write) -> None:
        """The job is as the writes that were taken have left it."""
        possible = self._marks.get(line.job, {line.before})
        if line.before not in possible:
            self.wrong.append(f"job {line.job} has the mark {line.before!r}, expected one of {possible}")
        if line.job in self._held and line.priority:
            self.wrong.append(f"job {line.job} was held, and has priority {line.priority} without a release")
        if line.restarts:
            self.wrong.append(f"job {line.job} was started again {line.restarts} times")
        self._marks[line.job] = {line.before}
        if not line.priority:
            self._held.add(line.job)

    def _see_taken(self, line: Write) -> None:
        if line.epoch and line.epoch < self.highest:
            self.late.append(line)
            self.wrong.append(f"epoch {self.highest} was heard, a write of an older one was taken: {line}")
        if line.epoch:
            self._hear(line.epoch, line.at)
            self.wrote.setdefault(line.epoch, line.at)
            self.taken[line.epoch] += 1
        elif line.mark or line.wish is not None:
            self.wrong.append(f"a write without an epoch: {line}")
        if line.mark and not _PASSING.match(line.mark):
            # Slurm may still refuse what its filter let pass.
            self._marks[line.job].add(line.mark)
            if line.mark.startswith("headway:pin="):
                self.pinned[line.job] = line.mark
        if line.releases:
            self._held.discard(line.job)
            self.released[line.job].append(line.epoch)

    def _see_refused(self, line: Write) -> None:
        if line.epoch < self.highest:
            self.late.append(line)
            return
        is_pinned = line.before.startswith("headway:pin=")
        is_stale = line.releases and is_pinned and epoch_of(line.before) < line.epoch
        if not is_stale:
            self.wrong.append(f"refused although no newer epoch was heard: {line}")


class Witness:
    """What slurmctld has written down so far, judged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdict = Verdict()
        self._read = 0

    def look(self) -> Verdict:
        """Judge what is new."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._read += len(complete)
        for line in complete.decode().splitlines():
            if (read := read_line(line)) is not None:
                self.verdict.see(read)
        return self.verdict


def read_line(line: str) -> Write | Lead | None:
    """A line of the witness; None: a question that changes nothing. Raises :class:`ValueError`."""
    uptime, what, code, user, *words = line.split("\t")
    at = float(uptime) + time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    if what == "asked":
        asked = _QUESTION.match(words[0])
        # The filter knows root as a leader.
        return Lead(at, int(asked[1])) if asked and int(float(user)) == 0 else None
    job, mark, wish, before, priority, restarts = words
    return Write(
        at, int(float(code)), job.partition(".")[0], "" if mark == _NONE else mark, _number(wish),
        "" if before == _NONE else before, _number(priority) or 0, _number(restarts) or 0,
    )  # fmt: skip


def _number(word: str) -> int | None:
    number = None if word == _NONE else int(float(word))
    return None if number == _NO_VAL else number
