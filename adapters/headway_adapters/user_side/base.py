"""What the users of all three batch systems do alike: look through the adapter, run commands through its
client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from headway.errors import Failure
from headway.user_side import Queue, Submission
from headway_adapters.polling.adapter import PollingAdapter
from headway_adapters.polling.client import CommandClient
from headway_adapters.transport import Result
from headway_adapters.user_side.listing import queue_of


class CommandUser:
    """Most of a :class:`headway.user_side.UserSide`. A subclass says how its commands are written."""

    #: Signs in a refusal that the job has ended already.
    gone: ClassVar[tuple[str, ...]] = ()
    #: The command that ends a job, without its id.
    ending: ClassVar[tuple[str, ...]] = ()

    def __init__(self, adapter: PollingAdapter[Any, Any], client: CommandClient, queue: str) -> None:
        """``adapter`` only reads."""
        self._adapter = adapter
        self._client = client
        self.queue = queue

    def look(self) -> Queue:
        return queue_of(self._adapter.look(None).snapshot, self.queue)

    def submit(self, job: Submission) -> str:
        result = self._client.run(self.submission(job))
        if not result.ok:
            raise Failure(f"{result.argv[0]}: {result.complaint()}")
        return self.submitted(result)

    def cancel(self, job: str) -> None:
        self._must(self._client.run((*self.ending, self.checked_id(job))))

    def shrink(self, job: str, seconds: float) -> None:
        self._must(self._client.run(self.shrinking(self.checked_id(job), seconds)))

    def _must(self, result: Result) -> None:
        if not result.ok and not any(sign in f"{result.stderr} {result.text}" for sign in self.gone):
            raise Failure(f"{result.argv[0]}: {result.complaint()}")

    def submission(self, job: Submission) -> Sequence[str]:
        """The command that submits it. Raises :class:`Failure` for what cannot be written as one."""
        raise NotImplementedError

    def submitted(self, result: Result) -> str:
        """The id of the job that a successful submission made."""
        raise NotImplementedError

    def shrinking(self, job: str, seconds: float) -> Sequence[str]:
        """The command that makes a waiting job one of one processor."""
        raise NotImplementedError

    def checked_id(self, job: str) -> str:
        """A job's id, which may stand in a command."""
        raise NotImplementedError
