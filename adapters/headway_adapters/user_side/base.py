"""What the users of all three batch systems do alike: look through the adapter, run commands through its
client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from headway.adapter.user_side import Queue, Silence, Submission, Window
from headway.errors import Failure
from headway_adapters.polling.adapter import PollingAdapter, validated
from headway_adapters.polling.client import CommandClient
from headway_adapters.transport import Result, Transport
from headway_adapters.user_side import showbf
from headway_adapters.user_side.listing import queue_of
from headway_adapters.user_side.words import queue_name


class CommandUser:
    """Most of a :class:`headway.adapter.user_side.UserSide`. A subclass says how its commands are written."""

    #: Signs in a refusal that the job has ended already.
    gone: ClassVar[tuple[str, ...]] = ()
    #: The command that ends a job, without its id.
    ending: ClassVar[tuple[str, ...]] = ()
    hears = False

    def __init__(self, adapter: PollingAdapter[Any, Any], client: CommandClient, queue: str) -> None:
        """``adapter`` only reads."""
        self._adapter = adapter
        self._client = client
        self.queue = queue

    def look(self) -> Queue:
        return queue_of(self._adapter.look(None).snapshot, self.queue)

    def windows(self, command: Sequence[str]) -> Sequence[Window]:
        result = self._client.run(command)
        if not result.ok:
            raise self._failure(result)
        return showbf.windows(result.text)

    def submit(self, job: Submission) -> str:
        result = self._client.run(self.submission(job))
        if not result.ok:
            raise self._failure(result)
        return self.submitted(result)

    def cancel(self, job: str) -> None:
        self._must(self._client.run((*self.ending, self.checked_id(job))))

    def shrink(self, job: str, seconds: float) -> None:
        self._must(self._client.run(self.shrinking(self.checked_id(job), seconds)))

    def postpone(self, job: str) -> None:
        for words in self.postponing(self.checked_id(job)):
            self._must(self._client.run(words))

    def release(self, job: str) -> None:
        self._must(self._client.run(self.releasing(self.checked_id(job))))

    def notes(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """What the scheduler wrote for the job in which this process runs."""
        raise NotImplementedError

    def note(self, environment: Mapping[str, str], key: str, value: str) -> None:
        raise Failure("on this system, a job cannot write anything for the scheduler")

    def _must(self, result: Result) -> None:
        if not result.ok and not any(sign in f"{result.stderr} {result.text}" for sign in self.gone):
            raise self._failure(result)

    def _failure(self, result: Result) -> Failure:
        kind = Silence if self._client.is_silence(result) else Failure
        return kind(f"{result.argv[0]}: {result.complaint()}")

    def submission(self, job: Submission) -> Sequence[str]:
        """The command that submits it. Raises :class:`Failure` for what cannot be written as one."""
        raise NotImplementedError

    def submitted(self, result: Result) -> str:
        """The id of the job that a successful submission made."""
        raise NotImplementedError

    def shrinking(self, job: str, seconds: float) -> Sequence[str]:
        """The command that makes a waiting job one of one processor."""
        raise NotImplementedError

    def postponing(self, job: str) -> Sequence[Sequence[str]]:
        """The commands that put a running job back into the queue, held. Raises :class:`Failure` where its
        owner cannot do that."""
        raise NotImplementedError

    def releasing(self, job: str) -> Sequence[str]:
        """The command that lets it start."""
        raise NotImplementedError

    def checked_id(self, job: str) -> str:
        """A job's id, which may stand in a command."""
        raise NotImplementedError


class QueueUser(CommandUser):
    """Of a system whose adapter's options name its ``queues``."""

    #: Where jobs go that name no queue.
    default: ClassVar[str]
    #: The classes of the adapter's options, of the adapter, and of its client.
    kinds: ClassVar[tuple[Any, Any, Any]]

    def __init__(self, options: Mapping[str, Any], transport: Transport | None = None) -> None:
        kind, adapter, client = self.kinds
        given = {key: value for key, value in options.items() if key != "queue"}
        queue = queue_name(options.get("queue") or self.default)
        made = validated(kind, {**given, "queues": [queue]})
        super().__init__(
            adapter(made, read_only=True, transport=transport),
            client(made, read_only=False, transport=transport),
            queue,
        )


def own_host(hosts: Iterable[str], here: str) -> str | None:
    """Which of a job's hosts this machine (``here``) is, with or without domains; None if it is none."""
    short = here.partition(".")[0]
    return next((host for host in hosts if host.partition(".")[0] == short), None)
