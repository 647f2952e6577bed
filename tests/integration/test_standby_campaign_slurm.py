"""Many deaths and pauses of two daemons on a real Slurm with accounting: every job starts once, no write of
an older epoch has an effect, and each take-over is fast.

``HEADWAY_STANDBY_ROUNDS`` and ``HEADWAY_STANDBY_SEED`` in the environment set their number and the draws.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from caught_commands import Trap
from failing_open import filter_with
from fence_witness import Witness, epoch_of, witnessed
from journals import schema_of
from slurm_releases import Release
from standby_pair import Pair, pair
from standby_rounds import Rounds, allocations

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms, pytest.mark.campaign]

ROUNDS = int(os.environ.get("HEADWAY_STANDBY_ROUNDS", "50"))
SEED = int(os.environ.get("HEADWAY_STANDBY_SEED", "2026"))
#: Between two looks at Slurm's records, seconds.
_OFTEN = 0.5


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a Slurm in another system writes, too."""
    made = Path(tempfile.mkdtemp(prefix="hw-run-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(params=["shared", "followed"])
def rounds(
    request: pytest.FixtureRequest,
    slurm_factory: Callable[..., Any],
    slurm: Release,
    tmp_path: Path,
    place: Path,
) -> Iterator[Rounds]:
    """Behind the shipped submit filter, with which an older leader's writes are refused."""
    slurm.require_accounting()
    text = filter_with(place / "none").replace(f'"{place}/none"', '""')
    text = text.replace("/var/lib/slurm/slurmctld/headway.epoch", str(place / "epoch"))
    script = tmp_path / "job_submit.lua"
    script.write_text(witnessed(text, place / "witness"))
    cluster = slurm_factory("--accounting", "--lua", str(script), "--set", "JobSubmitPlugins=lua")
    # By its comment it is seen when slurmctld has saved its state: its user holds it all along.
    cluster.submit(1, 1, administrator=False)
    trap = Trap(tmp_path / "commands", cluster)
    options: dict[str, Any] = {
        "options": {"bin_dir": str(trap.folder)}, "log": {"format": "json", "level": "debug"},
    }  # fmt: skip
    seed, witness = random.Random(SEED), Witness(place / "witness")
    try:
        if request.param == "followed":
            with pair(cluster, tmp_path, None, hold=False, **options) as two:
                yield Rounds(two, seed, witness, trap)
            return
        with (
            schema_of(request.getfixturevalue("postgres")) as url,
            pair(cluster, tmp_path, url, hold=False, **options) as two,
        ):
            yield Rounds(two, seed, witness, trap)
    finally:
        trap.clean_up()


class Records(threading.Thread):
    """Looks at slurmctld's own records all the time: no job's epoch goes back, and none is requeued."""

    def __init__(self, cluster: Any) -> None:
        super().__init__(name="records", daemon=True)
        self._cluster = cluster
        self._over = threading.Event()
        self._epochs: dict[str, int] = {}
        self.looks = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self._over.wait(_OFTEN):
            argv = ("squeue", "-h", "-a", "-t", "all", "-O", "JobID:20,RestartCnt:10,AdminComment:200")
            done = self._cluster.call(*argv)
            if done.returncode:
                # slurmctld is being restarted.
                continue
            self.looks += 1
            for line in done.stdout.splitlines():
                job, restarts, *rest = line.split()
                mark, known = " ".join(rest), self._epochs.get(job, 0)
                epoch = epoch_of(mark)
                if epoch < known:
                    self.wrong.append(f"job {job} had epoch {known}, and has the mark {mark!r}")
                if restarts != "0":
                    self.wrong.append(f"job {job} was started again {restarts} times")
                self._epochs[job] = epoch

    def end(self) -> None:
        self._over.set()
        self.join()


def test_deaths_of_two_daemons(rounds: Rounds) -> None:
    two = rounds.two
    records = Records(two.cluster)
    records.start()
    two.start(two.daemons[0])
    two.leads(two.daemons[0])
    two.start(two.daemons[1])
    try:
        for number in range(ROUNDS):
            print(number, rounds.round(), flush=True)
            assert not records.wrong, records.wrong
        two.finish()
    finally:
        records.end()
    assert not records.wrong, records.wrong
    verdict = rounds.witness.look()
    assert not verdict.wrong, verdict.wrong
    assert_slurm_says_the_same(two, verdict.pinned)
    assert set(two.jobs) <= verdict.released.keys()
    assert not two.diary.begun().keys() & set(rounds.unlaunched)
    print(figures(rounds, records.looks))
    assert all(took.began < took.most for took in rounds.take_overs if not took.restarted)


def assert_slurm_says_the_same(two: Pair, pinned: dict[str, str]) -> None:
    """Its log knows one start of each job; so does its accounting, under the epoch that the witness saw."""
    started = allocations(two)
    assert {job: started[job] for job in two.jobs} == dict.fromkeys(two.jobs, 1)
    argv = ("sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1days", "-o", "JobIDRaw,State,AdminComment")

    def told() -> list[list[str]]:
        lines = [line.split("|") for line in two.cluster.run(*argv).splitlines()]
        return [words for words in lines if words[0] in two.jobs]

    def all_ended() -> bool:
        return {words[0] for words in told() if words[1] == "COMPLETED"} == set(two.jobs)

    two.cluster.until(all_ended, what="the accounting knows all ends")
    records = told()
    assert Counter(job for job, _, _ in records) == Counter(two.jobs)
    assert {job: mark for job, _, mark in records} == {job: pinned[job] for job in two.jobs}


def figures(rounds: Rounds, looks: int) -> str:
    """What is told of the campaign."""
    verdict = rounds.witness.verdict
    took = sorted(one.began for one in rounds.take_overs if not one.restarted)
    restarted = sorted(one.began for one in rounds.take_overs if one.restarted)
    wrote = sorted(one.wrote for one in rounds.take_overs if one.wrote is not None and not one.restarted)
    return "\n".join([
        f"{dict(rounds.what)}",
        f"{len(rounds.two.jobs)} jobs, each once; never launched by Slurm: {len(rounds.unlaunched)}",
        f"writes of {len(verdict.taken)} epochs: {verdict.taken.total()} taken, {len(verdict.late)} late",
        f"commands that were stopped on their way: {dict(rounds.caught)}",
        f"looks at Slurm's records: {looks}",
        f"{len(took)} take-overs: {_spread(took)}; until the first write: {_spread(wrote)}",
        f"{len(restarted)} with a restart of slurmctld: {_spread(restarted)}",
    ])  # fmt: skip


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    median, late = values[len(values) // 2], values[min(len(values) - 1, int(0.95 * len(values)))]
    return f"median {median:.2f} s, 95 % {late:.2f} s, last {values[-1]:.2f} s"
