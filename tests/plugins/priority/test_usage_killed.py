"""What was used when the daemon is killed: its last checkpoint and the events since are as good as an orderly
end."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from building import described
from msgspec.structs import replace

from headway import __version__
from headway import events as ev
from headway.config import parse_config
from headway.daemon.replay import recounted
from headway.decisions import Start
from headway.events import in_order
from headway.journal import Journal, RunInfo
from headway.model import Association, ClusterDescription, SitePolicy
from headway.model.modes import Mode
from headway.plugins import Catalogue, Plugins
from headway.scheduler import Scheduler

CLUSTER = ClusterDescription.flat(8)
CYCLES = 120
#: The plugin that judges, and its options.
CONFIGURED = {
    "fair-tree": "{half_life: 500}",
    "classic": "{half_life: null, reset: daily}",
    "windows": "{interval: 200, depth: 4, decay: 0.7}",
    "from-slurm": "{accounts: from-slurm}",
}
POLICY = SitePolicy(
    associations=(
        Association("root"), Association("x", parent="root", shares=3), Association("y", parent="root"),
        *(Association(account, user, shares=1, default=account == "x")
          for account in "xy" for user in ("ann", "bob")),
    ),
    half_life=500.0, qos_billing={"low": 0.5},
)  # fmt: skip


def text_of(which: str) -> str:
    name = "fair-tree" if which == "from-slurm" else which
    multifactor = "multifactor: {weights: {fairshare: 100}}"
    return f"mode: dry-run\nplugins:\n  - {multifactor}\n  - {name}: {CONFIGURED[which]}\n  - easy\n"


class World:
    """A cluster that carries out what is decided, late and with meddlers, and tells of it."""

    def __init__(self, seed: int, *, policy: bool) -> None:
        self.random = Random(seed)
        self.policy = POLICY if policy else None
        self.came = 0
        self.jobs: dict[str, list[object]] = {}
        self.ordered: list[str] = []

    def events(self, now: float) -> list[ev.Event]:
        random, events = self.random, []
        late = now - random.choice([0.0, 0.0, 1.5])
        if self.policy is not None and (not self.came or random.random() < 0.03):
            self.policy = replace(self.policy, qos_billing={"low": random.choice([0.5, 0.25])})
            events.append(ev.SitePolicyChanged(now, self.policy))
        for _ in range(random.choice([0, 1, 1, 2])):
            self.came += 1
            job = described(
                f"j{self.came}", random.randint(1, 5), 1000.0, submit=now, user=random.choice(["ann", "bob"]),
                account=random.choice(["x", "y", ""]), qos=random.choice(["", "low"]),
            )  # fmt: skip
            self.jobs[job.id] = [job, "waits"]
            events.append(ev.JobSubmitted(now, job))
        for name in self.ordered:
            events.append(ev.JobStarted(late, name))
            self.jobs[name][1] = "runs"
        self.ordered = []
        for name, one in list(self.jobs.items()):
            draw = random.random()
            if one[1] == "runs" and draw < 0.12:
                events.append(ev.JobEnded(late, name))
                del self.jobs[name]
            elif one[1] == "runs" and draw < 0.16:
                events.append(ev.JobSuspended(late, name))
                one[1] = "suspended"
            elif one[1] == "suspended" and draw < 0.3:
                events.append(ev.JobResumed(late, name))
                one[1] = "runs"
            elif one[1] == "runs" and draw < 0.2:
                events.append(ev.JobRequeued(late, name))
                one[1] = "waits"
            elif draw < 0.05 and one[1] != "gone":
                whose = {"account": random.choice(["x", "y"]), "user": random.choice(["ann", "bob"])}
                one[0] = replace(one[0], **whose)
                events.append(ev.JobChanged(now, one[0]))
            elif draw > 0.99 and one[1] == "waits":
                # Somebody else's start, and its end, seen in one look.
                events += [ev.JobStarted(now - 5, name), ev.JobEnded(now - 1, name)]
                del self.jobs[name]
        return in_order(events)

    def carry_out(self, decisions) -> None:
        self.ordered += [d.job_id for d in decisions if isinstance(d, Start) and d.job_id in self.jobs]


def by_name(saved):
    """What was saved, whatever numbers the accounts have, without windows that count no more."""
    names = [tuple(node) for node in saved["nodes"]]
    used = dict(saved["used"])
    if "sums" in used:
        used["sums"] = {names[int(at)]: value for at, value in used["sums"].items()}
    else:
        used["windows"] = {
            at: {names[int(whose)]: value for whose, value in window.items()}
            for at, window in used["windows"].items()
            if int(at) > CYCLES * 10 // 200 - 4
        }
    running = {job: (names[whose], rate, since) for job, (whose, rate, since) in saved["running"].items()}
    return {**saved, "nodes": sorted(names), "used": used, "running": running}


def killed(which: str, seed: int, kept_after: int | None, journal: Path, begun_with=None):
    """A run that ends without a word; what fair share knew in its last cycle."""
    catalogue = Catalogue()
    config = parse_config(text_of(which), "test")
    world = World(seed, policy=which == "from-slurm")
    with Journal.open(journal) as opened:
        info = RunInfo(Mode.DRY_RUN, 0.0, __version__, text_of(which), 0, CLUSTER, begun_with or {})
        run_id = opened.begin_run(info)
        plugins = Plugins.load(catalogue.enabled(config.plugin_configs()), catalogue, None)
        s = Scheduler(CLUSTER, plugins, saved=begun_with)
        for seq in range(1, CYCLES + 1):
            now = 10.0 * seq + world.random.random()
            events = world.events(now)
            opened.record_events(seq, now, events)
            world.carry_out(s.step(now, events))
            assert s.problems == []
            if seq == kept_after:
                opened.checkpoint(seq, s.checkpoint())
        run = next(run for run in opened.runs() if run.id == run_id)
        name = "fair-tree" if which == "from-slurm" else which
        return s.checkpoint()[name], recounted(opened, run, catalogue)[name]


@pytest.mark.parametrize("kept_after", [None, 1, 60, CYCLES - 1, CYCLES])
@pytest.mark.parametrize("which", sorted(CONFIGURED))
def test_nothing_that_was_used_is_lost_by_a_kill(which: str, kept_after: int | None, tmp_path: Path) -> None:
    for seed in range(3):
        known, found = killed(which, seed, kept_after, tmp_path / f"{seed}.db")
        assert by_name(found) == by_name(known)


def test_nor_by_a_second_one_right_after(tmp_path: Path) -> None:
    first, _ = killed("fair-tree", 1, 60, tmp_path / "runs.db")
    known, found = killed("fair-tree", 2, None, tmp_path / "runs.db", {"fair-tree": first})
    assert by_name(found) == by_name(known)
