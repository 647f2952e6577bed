"""Jobs that say what they are a run of, on a real Slurm: their predictions, their runs in the history, and a
daemon that ends in one way or the other in between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_daemon import Daemon, Diary

from headway.events import JobEnded, JobStarted, JobSubmitted

pytestmark = pytest.mark.slurm


def _predicted(told: str) -> str:
    """What `headway explain` says of the prediction and its basis."""
    return "".join(re.findall(r"Plugin 'scopred' predicts .*? leverage [0-9.e+-]+", told))


@pytest.mark.parametrize(
    "killed", [pytest.param(False, id="stopped", marks=pytest.mark.slow), pytest.param(True, id="killed")]
)
def test_acceptance_9_a_run_is_recorded_and_what_is_known_outlives_the_daemon(
    slurm_cluster: Any, tmp_path: Path, killed: bool
) -> None:
    applications = {"sleeper": {"formula": "N/P", "sizes": {"P": "nodes"}}}
    (tmp_path / "applications.yaml").write_text(yaml.safe_dump({"applications": applications}))
    runs = ["application,pool,N,P,runtime", *(f"sleeper,batch,{n},1,{n + n % 3}" for n in range(20, 200, 20))]
    (tmp_path / "runs.csv").write_text("\n".join(runs))
    options = {"applications": "applications.yaml", "runs": "runs.csv"}
    daemon = Daemon(slurm_cluster, tmp_path, plugins=["easy", "first-fit", {"scopred": options}])
    diary = Diary(slurm_cluster)

    def explained(job: str) -> str:
        told = daemon.command("explain", job)
        assert told.returncode == 0, told.stderr
        return " ".join(told.stdout.split())

    def submit(size: int, script: str | None = None, **more: Any) -> str:
        comment = f"scopred:app=sleeper;N={size}"
        return slurm_cluster.submit(4, nodes=1, comment=comment, script=script, **more)

    try:
        daemon.start()
        short = submit(2, diary.script(2))
        daemon.until(lambda: short in {e.job_id for e in daemon.events(JobEnded)}, what="its end is known")
        failed = submit(2, diary.script(0, exit_code=3))
        daemon.until(lambda: failed in {e.job_id for e in daemon.events(JobEnded)}, what="its end is known")
        # It is there for as long as the test looks.
        long = submit(100, diary.script(600), minutes=30)
        daemon.until(lambda: long in {e.job_id for e in daemon.events(JobStarted)}, what="the next runs")
        (said,) = {e.job.attributes["comment"] for e in daemon.events(JobSubmitted) if e.job.id == long}
        assert said == "scopred:app=sleeper;N=100"
        before = explained(long)
        assert "Plugin 'scopred' predicts that it runs for 10" in before
        assert "regression of N/P on 10 completed runs of sleeper in batch" in before
        # What is recorded from now on would give it another prediction.
        quick = submit(60, diary.script(1))
        daemon.until(lambda: quick in {e.job_id for e in daemon.events(JobEnded)}, what="its end is known")

        # Each run of the daemon begins with what the one before knew.
        if killed:
            daemon.kill()
        else:
            assert daemon.stop() == 0
        daemon.start()
        begun = len(daemon.runs())
        assert begun == 2
        states = daemon.runs()[-1].info.plugin_states["scopred"]
        (recorded,) = states["runs"]
        assert [(run["job"], run["completed"]) for run in recorded["runs"]] == [
            (short, True),
            (failed, False),
            (quick, True),
        ]
        assert recorded["runs"][0]["parameters"] == {"N": 2.0, "P": 1.0}
        assert 1 <= recorded["runs"][0]["runtime"] < 60
        # Its prediction is what it was, though one more run is known.
        assert _predicted(explained(long)) == _predicted(before) != ""
        other = submit(100, diary.script(600), minutes=30)
        daemon.until(lambda: other in {e.job.id for e in daemon.events(JobSubmitted)}, what="it is seen")
        after = explained(other)
        assert "regression of N/P on 11 completed runs of sleeper in batch" in after
        assert _predicted(after) != _predicted(before)
        unknown = submit(1, diary.script(600), minutes=30, exclusive=True)
        daemon.until(lambda: unknown in {e.job.id for e in daemon.events(JobSubmitted)}, what="it is seen")
        assert json.dumps(explained(unknown)).count("Plugin 'scopred'") == 1
        assert not daemon.said("plugin failed")
        assert daemon.stop() == 0
        daemon.assert_replays()
    finally:
        daemon.clean_up()
