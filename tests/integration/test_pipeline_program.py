"""The pipeline program without a batch system: profiled, sized and run by ``headway profile`` and ``headway
size``."""

import os
import subprocess

import pytest
from click.testing import CliRunner
from counting import HEADWAY, Counting

from headway_plugins.pipelines import commands

pytestmark = pytest.mark.waits


@pytest.mark.long
def test_words_are_counted_in_a_controlled_run_and_with_copies(tmp_path):
    words = Counting(tmp_path, "here", 20)
    runner = CliRunner(env={"COLUMNS": "200"})
    done = runner.invoke(
        commands.profile, [str(words.pipeline), "--store", str(words.store), "--run"], catch_exceptions=False
    )
    assert "measured: lines 20: " in done.output
    assert words.ran("run")["profile"]
    (tmp_path / "run").rename(tmp_path / "controlled")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    argv = [str(HEADWAY), "size", *words.words, "--processors", "5", "--strategy", "BS", "--run"]
    done = subprocess.run(argv, env=kept, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "copies: read 2, count 2, decide 1. BS: as many copies for each filter" in done.stderr
    assert words.ran("run")["copies"] == {"read": 2, "count": 2, "decide": 1}
