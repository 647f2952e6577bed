"""The fence: what a daemon writes after another has taken over, Slurm refuses.

Each daemon that takes a cluster over has a higher number than all before, its *epoch*. The submit filter
(``etc/slurm/job_submit.lua``) remembers the highest, and refuses each write whose mark has a lower one.
Slurm hands it what ``scontrol update``, ``hold`` and ``release`` ask for. So each of these carries the epoch
at the end of the job's AdminComment:

=====================================  =====================================================
``AdminComment=headway:...;epoch=7``   a mark that is written anyway
``AdminComment=headway:same;epoch=7``  the filter takes it out: the job keeps its AdminComment
``AdminComment=headway:release;``      the same, and the filter makes a release of it: ``scontrol
``epoch=7``, ``Priority=1``            release`` can carry no comment
=====================================  =====================================================

The last two are for a filter that knows them, which is asked first. ``sbatch --test-only`` brings a question
to the filter, whose answer comes as a message to the user, and submits nothing.

Other commands (``scancel``, ``requeue``, ``suspend``, of reservations, nodes) no filter sees. Before those
the filter is asked whether the epoch is still the highest, unless it was within the last second
(:data:`headway_adapters.polling.fence.SURE`). What was paused between this question and its command, up to a
second later, is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from headway.adapter import Check, Seen
from headway.errors import Failure, Superseded, UserError
from headway.inputs.shipped import shipped
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.fence import Fence
from headway_adapters.polling.words import Argv
from headway_adapters.slurm import marker
from headway_adapters.transport import Result

#: What Slurm says of the filter's own error.
_REFUSED = "error 27182"
_ANSWER = re.compile(
    r"headway fence: epoch=([0-9]{1,15}) by=(\w*) heard=([0-9]+|never)( unsaved)?( stranger)?"
)
_NO_LEADER = re.compile(r"headway fence: user ([0-9]+) is not among LEADERS")
_COMMENT = "AdminComment="
#: What ``headway check`` calls it.
_SUBJECT = "fence"
_MARKED = re.compile(r"headway:|[A-Za-z][A-Za-z0-9_-]*: by headway")
_SAME, _RELEASE = "headway:same", "headway:release"
#: With accounting, comments of a job that was submitted just now cannot be written yet.
NOT_YET = "update not available right now"
#: A daemon of which the filter heard so many seconds ago is taken to be alive.
_ALIVE = 60


class Answer(msgspec.Struct, frozen=True):
    """What the filter says."""

    epoch: int
    #: The word of the daemon that has it; "": not known.
    leader: str
    #: Seconds since that was heard last; None: not since the filter was loaded.
    heard: int | None
    #: It is kept over a restart of slurmctld.
    saved: bool = True
    #: The user that asked may not lead.
    stranger: bool = False


def read_answer(said: str) -> Answer | None:
    """The filter's answer in what ``sbatch`` said; None: the filter knows no fence."""
    found = _ANSWER.search(said)
    if found is None:
        return None
    heard = None if found[3] == "never" else int(found[3])
    return Answer(int(found[1]), found[2], heard, not found[4], bool(found[5]))


def cannot_yet(result: Result | None) -> bool:
    """Whether Slurm cannot write a comment of a job that was submitted just now."""
    return result is not None and not result.ok and NOT_YET in result.stderr


def check(fence: SlurmFence) -> Check:
    """The line of ``headway check``: whether the filter that slurmctld has loaded refuses late writes."""
    try:
        answer = fence.asked()
    except Failure as error:
        said = f"the submit filter cannot be asked: {error}"
        return Check(_SUBJECT, True, said, "see that sbatch is there", known=False)
    script = shipped("slurm/job_submit.lua")
    if answer is None:
        said = "the submit filter knows none: what a paused daemon writes late is not refused"
        return Check(_SUBJECT, False, said, f"install {script} and restart slurmctld", helps=True)
    if answer.stranger:
        said = "the submit filter does not take this user for headway's"
        return Check(_SUBJECT, False, said, "run headway check as headway's user, whose number LEADERS of "
                     "job_submit.lua must have")  # fmt: skip
    if not answer.saved:
        said = "slurmctld cannot write FENCE of job_submit.lua: after its restart the marks of jobs must do"
        return Check(_SUBJECT, False, said, "name a file in StateSaveLocation there", helps=True)
    heard = f", heard {answer.heard} s ago" if answer.heard is not None else ""
    return Check(_SUBJECT, True, f"epoch {answer.epoch or 'none'}{heard}; what has a lower one is refused")


class SlurmFence(Fence):
    """The epoch of one daemon, for the submit filter."""

    def __init__(self, ask: Callable[[str], Result]) -> None:
        """``ask``: brings a comment to the filter; raises :class:`Failure` where it cannot."""
        super().__init__()
        self._ask = ask
        self._answer: Answer | None = None

    def asked(self, question: str = "headway:epoch?") -> Answer | None:
        """What the filter says; None where it knows no fence. Raises :class:`UserError` if it does not take
        this user for headway's, :class:`Failure` where it cannot be asked."""
        result = self._ask(question)
        said = f"{result.stderr}\n{result.text}"
        if (stranger := _NO_LEADER.search(said)) is not None:
            raise UserError(
                f"job_submit.lua does not know user {stranger[1]}, which headway runs as: write "
                f"[{stranger[1]}] = true into its table LEADERS"
            )
        return read_answer(said)

    def seen(self) -> Seen | None:
        """The highest epoch that the filter heard; None where it knows no fence."""
        answer = self.asked()
        if answer is None:
            return None
        alive = ""
        if answer.epoch and answer.heard is not None and answer.heard < _ALIVE:
            alive = f"it wrote to Slurm {answer.heard} s ago"
        return Seen(answer.epoch, alive)

    def tell(self) -> bool:
        try:
            answer = self._answer = self.asked(f"headway:lead={self.epoch}:{self.name}")
        except Unanswered:
            raise
        except Failure:
            # There is no sbatch.
            return False
        if answer is not None and self.is_over(answer.epoch, answer.leader):
            raise Superseded(
                f"another daemon took over just now: Slurm knows epoch {answer.epoch}, and this one has "
                f"{self.epoch}"
            )
        return answer is not None

    def leave(self) -> None:
        if self.is_known:
            self.asked(f"headway:leave={self.epoch}:{self.name}")

    @property
    def is_unknown(self) -> bool:
        """Whether the filter said that it knows none."""
        return not self.is_known and not self._is_due

    @property
    def is_unsaved(self) -> bool:
        """Whether the filter said that it cannot keep the epoch over a restart."""
        return self._answer is not None and not self._answer.saved

    def higher(self) -> int:
        try:
            answer = self.asked()
        except (Failure, UserError):
            return 0
        return answer.epoch if answer is not None and self.is_over(answer.epoch, answer.leader) else 0

    def is_refusal(self, result: Result) -> bool:
        return not result.ok and _REFUSED in result.stderr

    def is_compared(self, argv: Sequence[str]) -> bool:
        if argv[0] != "scontrol":
            return False
        return argv[1] in ("hold", "release") or (argv[1] == "update" and argv[2].startswith("JobId="))

    def stamped(self, argv: Sequence[str]) -> Argv:
        words = tuple(argv)
        if not self.epoch or words[:1] != ("scontrol",):
            return words
        if words[1:2] == ("update",) and words[2:3] and words[2].startswith("JobId="):
            at = next((at for at, word in enumerate(words) if word.startswith(_COMMENT)), None)
            if at is None:
                return (*words, self._mark(_SAME)) if self.is_known else words
            mark = words[at].removeprefix(_COMMENT)
            if not _MARKED.match(mark):
                return words
            return (*words[:at], self._mark(marker.without_epoch(mark)), *words[at + 1 :])
        if not self.is_known or len(words) != 3:
            return words
        if words[1] == "hold":
            return ("scontrol", "update", f"JobId={words[2]}", "Priority=0", self._mark(_SAME))
        if words[1] == "release":
            return ("scontrol", "update", f"JobId={words[2]}", "Priority=1", self._mark(_RELEASE))
        return words

    def _mark(self, text: str) -> str:
        return f"{_COMMENT}{text};epoch={self.epoch}"
