"""What handlers share that keep images: the work on them, and the options."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from headway.adapter import Check
from headway.adapter.migration import Machine, MigrationHandler, Move, Reported
from headway.decisions import Checkpoint, Migrate, Requeue, Start
from headway.errors import Failure, UserError
from headway.hookspecs import hookimpl
from headway.plugins import Traits
from headway_plugins.migration.carrying import carry
from headway_plugins.migration.images import Images, Unconfirmed
from headway_plugins.migration.options import CLUSTER, ImageOptions
from headway_plugins.migration.relocation import Relocation, Way, same_nodes


class Saving:
    """A handler that keeps images. A subclass says its :meth:`way`, :meth:`suits` and :meth:`dump`."""

    name: str
    traits = Traits(needs=(Requeue, Start), gives=(Migrate, Checkpoint))
    options: ImageOptions

    def __init__(self, options: ImageOptions, words: tuple[str, ...] = ()) -> None:
        """``words``: files in a job's directory that are no part of its image."""
        self.options = options
        self.images: Images = options.images(self.name, words)
        self._stopping = threading.Event()
        if options.attribute:
            # It confines the handler, and users can say it with their jobs.
            self.traits = replace(self.traits, words=frozenset({options.attribute}))

    @hookimpl
    def migrate(self) -> MigrationHandler:
        return self

    def way(self) -> Way:
        """How its moves go."""
        raise NotImplementedError

    def suits(self, move: Move) -> str:
        if move.restart:
            return "the handler keeps the work of the job, and this job is to begin again"
        if same_nodes(move):
            return "the nodes of the job stay the same"
        wanted = self.options.attribute
        if wanted and not (move.job.attributes or {}).get(wanted):
            return f"the job does not say {wanted!r}"
        return ""

    def prepare(self, move: Move) -> None:
        """See that an image can be made. Raises :class:`Failure`."""
        self.images.prepare(move.job.id, move.job.user)

    def dump(self, move: Move) -> None:
        """Save the job's processes. Raises :class:`Failure`."""
        raise Failure(f"{self.name} dumps nothing")

    def check(self) -> Sequence[Check]:
        if CLUSTER in str(self.options.directory):
            found = f"{self.options.directory}: {CLUSTER} stands for a name only with several clusters"
            return [Check(f"images ({self.name})", False, found, "correct the option `directory`")]
        return self.images.check()

    def machine(self, move: Move) -> Machine:
        return Relocation(move, self.way())

    def perform(self, move: Move, task: str) -> Reported:
        job = move.job.id
        try:
            if task == "prepare":
                self.prepare(move)
            elif task == "dump":
                self.dump(move)
            elif task == "confirm":
                found = self.images.confirm(job)
                return Reported(task, True, f"{len(found.files)} files of {found.size} bytes")
            elif task == "verify":
                return self._verify(job)
            elif task == "discard":
                self.images.discard(job)
            return Reported(task, True)
        except Unconfirmed as error:
            return Reported(task, False, str(error), again=True)
        except Failure as error:
            return Reported(task, False, str(error))

    def _verify(self, job: str) -> Reported:
        try:
            self.images.verify(job)
        except Failure as error:
            aside = self.images.put_aside(job)
            return Reported("verify", False, f"{error}; it is now {aside}")
        return Reported("verify", True)

    def stop(self) -> None:
        self._stopping.set()

    def tidy(self, alive: frozenset[str]) -> Sequence[str]:
        return self.images.tidy(alive)

    def for_cluster(self, cluster: str) -> MigrationHandler:
        try:
            return type(self)(self.options.for_cluster(cluster))
        except UserError as error:
            raise UserError(f"plugin {self.name!r}: {error}") from error

    def carry(self, job: str, there: MigrationHandler, job_there: str, user: str) -> str:
        if not isinstance(there, Saving):
            return ""
        return carry(self.images, job, there.images, job_there, user, stopping=self._stopping.is_set)
