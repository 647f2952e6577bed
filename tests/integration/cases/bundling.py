"""`headway bundle` of an ordinary user on a real batch system: over several nodes, spread, right in the end.

Where the batch system starts no job by itself the test does, as its operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from batch_servers import BatchServer
from bundle_user import PROCESSES, Bundles, headway_for
from real_systems import Lsf, Pbs
from waiting import until


class Bundling:
    """A subclass says what is special of its system."""

    #: Where its commands are, and what else they need.
    environment: ClassVar[tuple[str, ...]]
    queue: ClassVar[str]

    @pytest.fixture
    def bundles(self, system: Pbs | Lsf) -> Iterator[Bundles]:
        server: BatchServer = system.server

        def run(*words: str, check: bool = True) -> str:
            done = server.call("env", *self.environment, *words, user=system.user, timeout=300)
            assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            return done.stdout.strip()

        uid = int(server.run("id", "-u", user=system.user))
        program = headway_for(system.user, system.directory, run)
        words = ("--system", system.name, "--queue", self.queue, "--confirm", "5m")
        made = Bundles(system.directory / "user", program, run, uid, words)
        yield made
        for process in made.processes("manage"):
            process.kill()

    def start(self, system: Pbs | Lsf, job: str, nodes: int) -> None:
        """Have a job of the bundle's started, with a processor on each of so many nodes."""

    def exit_code(self, system: Pbs | Lsf, job: str) -> int | None:
        """Of a job that has ended; None: it has not."""
        raise NotImplementedError

    def occupy(self, system: Pbs | Lsf) -> str:
        """Somebody else has all but a processor on each of two nodes; his job that has two or more of them
        on others."""
        raise NotImplementedError

    def give_back(self, system: Pbs | Lsf, job: str) -> None:
        """End that job."""
        raise NotImplementedError

    def subjob(self, bundles: Bundles, bundle: str, number: int) -> str:
        """The batch system's id of a subjob, once it has one."""

        def job() -> str:
            subjobs = bundles.known(bundle)["state"]["subjobs"]
            return subjobs[number]["job"] if len(subjobs) > number else ""

        until(job, f"subjob {number} is in the queue", said=bundles.said)
        return job()

    def test_it_begins_on_two_nodes_spreads_and_passes_the_exit_code_on(
        self, system: Pbs | Lsf, bundles: Bundles
    ) -> None:
        others = self.occupy(system)
        bundles.hold()
        bundle = bundles.submit()
        self.start(system, self.subjob(bundles, bundle, 1), 2)
        first = bundles.until_begun(0, "it begins")
        # Two processes on a processor of each node.
        nodes = [row[3].split(".")[-2] for row in first]
        assert len(set(nodes)) == 2 and sorted(map(nodes.count, set(nodes))) == [2, 2]
        self.give_back(system, others)
        self.start(system, self.subjob(bundles, bundle, 2), 2)
        second = bundles.until_begun(1, "it spreads")
        bundles.go()
        assert len({row[3] for row in second}) == PROCESSES and sum(row[2] for row in second) > 0
        result = bundles.done(bundle)
        assert result["exit_code"] == 0 and bundles.right, bundles.said()
        until(lambda: not bundles.processes("manage"), "its manager has ended", said=bundles.said)
        self.start(system, result["placeholder"], 1)
        until(lambda: self.exit_code(system, result["placeholder"]) == 0, "the original request ends well")
        assert not bundles.processes("worker", "--here")
