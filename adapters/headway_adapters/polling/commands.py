"""Commands that change something: run, counted, and their answers as outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.adapter import Outcome
from headway.errors import Failure
from headway_adapters.polling.client import CommandClient
from headway_adapters.transport import Result

#: Between the words of a command's arguments, such as the ids of jobs.
_WORDS = re.compile(r"[\s=,]")
#: Characters of a command that the log is told.
_SHOWN = 400


class Commands:
    """Runs what changes the batch system. On the adapter's thread."""

    def __init__(self, client: CommandClient, title: str, log: Any) -> None:
        self._client = client
        self._title = title
        self._log = log
        #: Counts what we changed: a look that began before a change shows the time before.
        self.changes = 0
        #: Why nothing may be changed any more, which ends the run; "": it may.
        self.lost = ""
        #: Job -> the ids of decisions that are being carried out for it (:mod:`headway.inputs.trail`).
        self.trail: Mapping[str, Sequence[str]] = {}
        #: Why the last commands could not be run at all.
        self._not_run = ""

    def give_up(self, epoch: int) -> None:
        """Another daemon has taken over, with this number: nothing is changed any more. On any thread."""
        if not self.lost:
            self._client.lost = f"another daemon has taken over: {self._title} knows epoch {epoch}"
            self.lost = self._client.lost

    def change(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        """Run commands that change something; None for a command that was not tried."""
        self.changes += 1
        self._not_run = ""
        try:
            results = self._client.change_all(argvs)
        except Failure as error:
            self._not_run = str(error)
            if not self.lost:
                self._log.error("a command could not be run", error=str(error))
            return [None] * len(argvs)
        for argv, result in zip(argvs, results, strict=True):
            self._tell(argv, result)
        return results

    def _tell(self, argv: Sequence[str], result: Result | None) -> None:
        """Have the log say what was run, for which jobs, by which decisions."""
        words = {word for part in argv[1:] for word in _WORDS.split(part)}
        named = self.trail.keys() & words
        # Most commands name one job: not every job of the cycle is looked at for each of them.
        jobs = list(named) if len(named) < 2 else [job for job in self.trail if job in named]
        self._log.debug(
            "command",
            command=" ".join(argv)[:_SHOWN],
            job=jobs or None,
            id=[one for job in jobs for one in self.trail[job]] or None,
            status=None if result is None else result.rc,
            seconds=None if result is None else round(result.seconds, 3),
        )

    def feed(self, argv: Sequence[str], given: bytes) -> Result:
        """Run a command that changes something, with ``given`` on its standard input. Raises
        :class:`Failure` if it could not be run."""
        self.changes += 1
        result = self._client.feed(argv, given)
        self._tell(argv, result)
        return result

    def run_steps(
        self, steps: Sequence[Sequence[str]], *, already: Iterable[str] = (), denials: Iterable[str] = ()
    ) -> Outcome:
        """Run commands one after another until one fails.

        ``already``: parts of error messages that mean that what was asked for is already so. ``denials``:
        parts of what a command prints that mean that it has failed, although it says so in no other way.
        """
        for argv in steps:
            result = self.change([argv])[0]
            if result is not None and result.ok and any(word in result.text for word in denials):
                return self.refused(result)
            if result is None or not result.ok:
                if result is not None and any(word in result.stderr for word in already):
                    return Outcome(True, result.complaint())
                return self.refused(result)
        return Outcome(True)

    def refused(self, result: Result | None) -> Outcome:
        """The outcome of a command that failed, or was not tried."""
        if result is None:
            return Outcome(False, f"not tried: {self._not_run or f'{self._title} does not answer'}")
        return Outcome(False, result.complaint())


def said(result: Result | None) -> str:
    """Why a command failed, for the log."""
    return "not tried" if result is None else result.complaint()
