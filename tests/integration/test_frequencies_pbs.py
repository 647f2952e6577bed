"""``headway run`` is killed while it sets a job's frequency: the next one does it.

Against the commands of ``headway emulate-commands pbs``; the site's clock is a script that writes down what
it is asked for, and hangs while a file is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from emulated_commands import Commands
from live_daemon import Daemon

from headway import decisions as d
from headway import events as ev
from headway_adapters.commands import Emulator, EmulatorOptions

pytestmark = pytest.mark.waits

CLOCK = """#!/bin/sh
echo "$@" >> {root}/asked
[ -e {root}/hang ] && exit 1 < {root}/pipe
echo "$@" >> {root}/set
"""


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    options = EmulatorOptions(system="pbs", nodes=1, processors=8, scheduling=False)
    with Emulator(tmp_path / "pbs", options) as emulator:
        yield emulator


@pytest.fixture
def daemon(emulator: Emulator, tmp_path: Path) -> Iterator[Daemon]:
    clock = tmp_path / "clock"
    clock.write_text(CLOCK.format(root=tmp_path))
    clock.chmod(0o755)
    # Nobody writes to it: who reads from it hangs.
    os.mkfifo(tmp_path / "pipe")
    one = Daemon(SimpleNamespace(conf="", options={}), tmp_path)
    options = {
        "queues": ["workq"], "bin_dir": str(emulator.bin), "poll_interval": 0.3, "commands_per_minute": None,
        "actuators": {
            "set_frequency": [str(clock), "{node}", "{job}", "{hertz}"],
            "reset_frequency": [str(clock), "{node}", "{job}", "own"],
        },
    }  # fmt: skip
    one.configure(
        cluster={"adapter": "pbs", "options": options},
        energy={"profile": "chandio2014"},
        # Eight processors draw 320 W at full speed.
        plugins=["easy", "first-fit", {"power-cap": {"watts": 200}}],
    )
    yield one
    one.clean_up()
    # Whoever still hangs reads the end of what nobody writes.
    os.close(os.open(tmp_path / "pipe", os.O_RDWR))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_daemon_killed_before_a_frequency_was_set_leaves_it_to_the_next(
    emulator: Emulator, daemon: Daemon, tmp_path: Path
) -> None:
    commands = Commands(emulator)
    (tmp_path / "hang").touch()
    words = ("-l", "select=1:ncpus=8", "-l", "walltime=10:00:00", "--", "/bin/sleep", "30000")
    job = commands.ok("qsub", *words, user="alice").strip()
    daemon.start()
    daemon.until(lambda: lines(tmp_path / "asked"), what="it sets the frequency")
    daemon.kill()
    ((_, start),) = daemon.starts()
    assert start.frequency is not None
    assert not daemon.events(ev.JobFrequencyChanged)
    # Its start was told with it: it is not slowed, nor its limit stretched, once more.
    limits = [x.walltime for _, x in daemon.decisions() if isinstance(x, d.SetTimeLimit)]
    assert limits == [pytest.approx(45000)]
    (tmp_path / "hang").unlink()
    wanted = lines(tmp_path / "asked")[0]
    assert wanted.split()[1:] == [job, f"{start.frequency:.0f}"]

    daemon.start()
    daemon.until(lambda: daemon.events(ev.JobFrequencyChanged), what="the next one sets it")
    assert lines(tmp_path / "set") == [wanted]
    assert [e.frequency for e in daemon.events(ev.JobFrequencyChanged)] == [start.frequency]
    # Killed again: it is known to be set, and the job's end gives it back.
    daemon.kill()
    daemon.start()
    daemon.until(lambda: len(daemon.events(ev.JobFrequencyChanged)) == 2, what="the third one knows")
    assert len(lines(tmp_path / "set")) == 1
    commands.ok("qdel", job, user="alice")
    daemon.until(lambda: len(lines(tmp_path / "set")) == 2, what="it is given back")
    assert lines(tmp_path / "set")[1].endswith(f"{job} own")
    assert daemon.stop() == 0
    assert not daemon.said("inconsistent")
    assert not [x for _, x in daemon.decisions() if isinstance(x, d.SetFrequency)]
    assert [x.walltime for _, x in daemon.decisions() if isinstance(x, d.SetTimeLimit)] == limits
    daemon.assert_replays()
