"""A moldable job on a real Slurm gets the size that its prediction asks for before it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_daemon import Daemon, Diary
from real_systems.slurm import FILTER

from headway import events as ev

pytestmark = pytest.mark.slurm


def test_a_job_is_resized_by_its_prediction_and_starts_once(
    slurm_factory: Callable[..., Any], tmp_path: Path
) -> None:
    # The filter notes that no number of nodes was asked for: 24.11 shows one of a job that enters held.
    cluster = slurm_factory(*FILTER, nodes=1, cpus=4)
    applications = {"sleeper": {"formula": "N/P", "sizes": {"P": "processors"}}}
    (tmp_path / "applications.yaml").write_text(yaml.safe_dump({"applications": applications}))
    rows = [f"sleeper,batch,{n},{p},{n / p + n % 3}" for n in range(20, 200, 20) for p in (1, 2, 4)]
    (tmp_path / "runs.csv").write_text("\n".join(["application,pool,N,P,runtime", *rows]))
    options = {"applications": "applications.yaml", "runs": "runs.csv"}
    diary = Diary(cluster)
    # 400 s of one processor within 5 minutes: two.
    comment = "scopred:app=sleeper;N=400"
    wanted = {"minutes": 5, "script": diary.script(1), "hold": False}
    job = cluster.submit(4, comment=f"headway:moldable {comment}", **wanted)
    rigid = cluster.submit(4, comment=comment, **wanted)
    daemon = Daemon(cluster, tmp_path, plugins=["easy", "first-fit", {"scopred-sizing": options}])
    try:
        daemon.start()
        daemon.until(lambda: {job, rigid} <= set(diary.ended()), what="both jobs end")
        assert daemon.stop() == 0
        assert set(diary.begun().values()) == {1}
        assert not daemon.said("plugin failed") and not daemon.events(ev.DecisionFailed)
        sizes = {
            event.job_id: sum(count for _, count in event.placement)
            for event in daemon.events(ev.JobStarted)
        }  # fmt: skip
        assert sizes == {job: 2, rigid: 4}
        daemon.assert_replays()
    finally:
        daemon.clean_up()
