"""A window with a deadline on a real Slurm: jobs of stages as arrays with dependencies, held and released by
the plan, chosen again when a task fails, and what is left when the window closes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from waiting import bound

from headway import events as ev

pytestmark = pytest.mark.slurm


def clock(moment: float) -> str:
    """The minute of the day."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%H:%M")


class Jobs:
    """Jobs of two stages, as a user submits them."""

    def __init__(self, cluster: Any, diary: Diary) -> None:
        self.cluster, self.diary = cluster, diary

    def submit(self, name: str, stage: int, length: float, script: str, **options: Any) -> str:
        mark = f"headway:job={name},stage={stage},length={length:g}"
        if reward := options.pop("reward", None):
            mark += f",reward={reward}"
        return str(self.cluster.submit(1, script=script, minutes=40, comment=mark, **options))

    def staged(self, name: str, length: float, reward: float, exit_code: str = "0") -> tuple[str, str]:
        """Two tasks of so many seconds, as is believed, then one."""
        script = self.diary.script(1).replace("exit 0", f"exit {exit_code}")
        first = self.submit(name, 1, length, script, reward=reward, array="1-2")
        then = self.submit(
            name, 2, length / 5, self.diary.script(1), reward=reward, dependency=f"afterok:{first}"
        )
        return first, then


def test_the_set_of_a_window_is_run(slurm_factory: Callable[..., Any], tmp_path: Path) -> None:
    run(slurm_factory(nodes=1, cpus=2), tmp_path, to_its_end=False)


@pytest.mark.campaign
def test_a_window_is_run_to_its_end(slurm_factory: Callable[..., Any], tmp_path: Path) -> None:
    run(slurm_factory(nodes=1, cpus=2), tmp_path, to_its_end=True)


def run(cluster: Any, tmp_path: Path, *, to_its_end: bool) -> None:
    """A window of which one job fails; ``to_its_end``: until it closes, and what comes then."""
    diary = Diary(cluster)
    jobs = Jobs(cluster, diary)
    # Of half an hour on two processors B and C want 40 min each, so one of them is chosen, and S beside it.
    fails, after = jobs.staged("B", 1100, 50, "$((SLURM_ARRAY_TASK_ID - 1))")
    second, last = jobs.staged("C", 1100, 40)
    small, end = jobs.staged("S", 10, 5)
    long = jobs.submit("E", 1, 2300, diary.script(1))
    opens = time.time() // 60 * 60 - 60
    window = {"opens": clock(opens), "length": time.time() + 1800 - opens, "fill": 1.0, "reselect": 1}
    daemon = Daemon(cluster, tmp_path, plugins=[{"two-phase": window}, "first-fit"])
    try:
        daemon.start()
        daemon.until(lambda: {last, end} <= set(diary.ended()), what="the jobs of the set end")
        why = daemon.command("explain", long).stdout
        assert "its stages take 38 min 20 s, and the window has" in " ".join(why.split())
        why = daemon.command("explain", after).stdout
        assert daemon.stop() == 0

        begun = diary.begun()
        assert set(begun) == {f"{array}_{at}" for array in (fails, second, small) for at in (1, 2)} | {
            last,
            end,
        }
        assert set(begun.values()) == {1}
        ran = diary.executions()
        # Nothing of C began before B had failed, and no stage before the one before it had ended.
        failed = ran[f"{fails}_2"].end
        assert all(ran[f"{second}_{at}"].begin >= failed for at in (1, 2))
        for first, then in ((second, last), (small, end)):
            assert all(ran[f"{first}_{at}"].end <= ran[then].begin for at in (1, 2))
        assert not daemon.said("plugin failed") and not daemon.events(ev.DecisionFailed)
        daemon.assert_replays()
        if not to_its_end:
            return

        # Later the window closes: what runs is ended, and what waits goes on waiting.
        late = jobs.submit("L", 1, 1, diary.script(600))
        closes = time.time() + bound(20)
        window.update(length=closes - opens, leftovers="kill")
        daemon.configure(plugins=[{"two-phase": window}, "first-fit"])
        daemon.start()
        daemon.until(lambda: late in diary.begun(), what="the late job starts")
        daemon.until(lambda: cluster.state(late) == "CANCELLED", what="it is ended with the window")
        assert time.time() >= closes
        assert "it waits for its window, which opens at" in daemon.command("explain", long).stdout
        assert cluster.state(long) == "PENDING"
        assert daemon.stop() == 0

        # Nothing stays held: without windows it starts.
        daemon.configure(plugins=["easy", "first-fit"])
        daemon.start()
        daemon.until(lambda: long in diary.ended(), what="the long job runs")
        assert daemon.stop() == 0
    finally:
        daemon.clean_up()
