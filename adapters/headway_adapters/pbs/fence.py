"""The fence: PBS refuses what a daemon starts after another has taken over.

Each daemon has a higher number than all before, its *epoch*. It writes the number into the server's
``resources_available.headway_epoch``, which only managers can, and its name into ``headway_leader``. Each
``qrun -H`` carries the epoch as a resource of its first chunk, and the hook ``etc/pbs/headway_fence.py``
refuses the start if that of the server is higher. So a start needs no further command. Starts of people, and
those of PBS's own scheduler, carry none and are let through.

No hook sees the other commands (``qhold``, ``qsig``, ``qdel``, ``qrerun``), or they have no room for it.
Before those the server is asked whether the epoch is still the highest, unless it was a moment ago. What was
paused between this question and its command, no more, is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.adapter import Check, Seen
from headway.errors import Failure, Superseded
from headway.inputs.shipped import shipped
from headway_adapters.pbs import documents, values
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.fence import Fence
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result

#: The resources, and the hook.
EPOCH, LEADER, HOOK = "headway_epoch", "headway_leader", "headway_fence"
#: Asks for the server's attributes.
ASK = ("qstat", "-B", "-f", "-F", "json")
_REFUSED = "headway fence: epoch="
_CHUNK = re.compile(r"(\([^():]+(?::[^():]+)*)")
_SUBJECT = "fence"
#: What an administrator does once.
INSTALL = (
    f'qmgr -c "create resource {EPOCH} type=long, flag=r"',
    f'qmgr -c "create resource {LEADER} type=string, flag=r"',
    f'qmgr -c "create hook {HOOK} event=runjob"',
    f'qmgr -c "import hook {HOOK} application/x-python default headway_fence.py"',
)


def read(result: Result) -> tuple[int, str]:
    """The highest epoch and the name of its daemon, in what the server says of itself; 0 and "": it says
    none."""
    try:
        servers = documents.objects_json(result.stdout, "Server") if result.ok else {}
    except documents.Malformed:
        servers = {}
    kept = next((each.get("resources_available") for each in servers.values()), None)
    if not isinstance(kept, Mapping):
        return 0, ""
    return _whole(kept.get(EPOCH)), values.text(kept.get(LEADER))


def _whole(value: Any) -> int:
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else 0


class PbsFence(Fence):
    """The epoch of one daemon, for the server and its hook."""

    def __init__(
        self, ask: Callable[[Sequence[str]], Result], is_silence: Callable[[Result], bool]
    ) -> None:  # fmt: skip
        """``ask``: runs a command of a manager."""
        super().__init__()
        self._ask = ask
        self._is_silence = is_silence

    def seen(self) -> Seen:
        """The highest epoch that the server knows."""
        return Seen(read(self._asked(ASK))[0])

    def _asked(self, argv: Sequence[str]) -> Result:
        result = self._ask(argv)
        if self._is_silence(result):
            raise Unanswered(f"{argv[0]}: {result.complaint()}")
        return result

    def tell(self) -> bool:
        try:
            return self._tell()
        except Unanswered:
            raise
        except Failure:
            # There is no qmgr.
            return False

    def _tell(self) -> bool:
        self._compare(*read(self._asked(ASK)))
        for name, value in ((EPOCH, self.epoch), (LEADER, self.name)):
            words = ("qmgr", "-c", f"set server resources_available.{name} = {value}")
            if not self._asked(words).ok:
                return False
        self._compare(*read(self._asked(ASK)))
        return True

    def _compare(self, epoch: int, leader: str) -> None:
        if self.is_over(epoch, leader):
            raise Superseded(
                f"another daemon took over just now: PBS knows epoch {epoch}, and this one has {self.epoch}"
            )

    def higher(self) -> int:
        try:
            epoch, leader = read(self._asked(ASK))
        except Failure:
            return 0
        return epoch if self.is_over(epoch, leader) else 0

    def is_compared(self, argv: Sequence[str]) -> bool:
        return argv[0] == "qrun"

    def is_refusal(self, result: Result) -> bool:
        return not result.ok and _REFUSED in result.stderr

    def stamped(self, argv: Sequence[str]) -> Argv:
        words = tuple(argv)
        if not self.is_known or words[:1] != ("qrun",) or "-H" not in words:
            return words
        at = words.index("-H") + 1
        chosen = _CHUNK.sub(rf"\1:{EPOCH}={self.epoch}", words[at], count=1)
        return (*words[:at], chosen, *words[at + 1 :])


def check(ask: Callable[[Sequence[str]], Result], attributes: Mapping[str, Any]) -> Check:
    """The line of ``headway check``. ``attributes``: the server's."""
    remedy = f"as root on the server's host, with {shipped('pbs/headway_fence.py')}: {'; '.join(INSTALL)}"
    try:
        there = ask(("qmgr", "-c", f"list resource {EPOCH}"))
        hook = ask(("qmgr", "-c", f"list hook {HOOK}"))
    except Failure as error:
        return Check(_SUBJECT, True, str(error), "install PBS's qmgr", known=False)
    if not there.ok or EPOCH not in there.text:
        said = "none: what a paused daemon starts late is not refused; etc/pbs/README.md says how it would be"
        return Check(_SUBJECT, True, said)
    kept = attributes.get("resources_available")
    epoch = _whole(kept.get(EPOCH)) if isinstance(kept, Mapping) else 0
    said = f"epoch {epoch or 'none'}"
    if "unauthorized" in f"{hook.text} {hook.stderr}":
        said += f"; whether the hook {HOOK} is there only root on the server's host can see"
        return Check(_SUBJECT, True, said, f'qmgr -c "list hook {HOOK}" as root there', known=False)
    if not hook.ok or "enabled = true" not in hook.text or "runjob" not in hook.text:
        return Check(_SUBJECT, False, f"the hook {HOOK} is not there, or not enabled for runjob", remedy,
                     helps=True)  # fmt: skip
    return Check(_SUBJECT, True, f"{said}; a start with a lower one is refused")
