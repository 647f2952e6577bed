"""`headway init` asks a real PBS and a real LSF, and changes nothing; what it writes watches them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from live_daemon import HEADWAY


def asked(server: BatchServer, system: str, folder: Path, *words: str) -> Any:
    """What it found; the configuration that it wrote passes its own check."""
    site = folder / "site"
    done = server.call(str(HEADWAY), "init", system, "--out", str(site), "--json", *words, user="root")
    assert done.returncode == 0, done.stderr
    config = site / "headway.yaml"
    text = re.sub(r"(?m)^journal: .*", f"journal: {folder / 'journal.db'}", config.read_text())
    text = re.sub(r"(?m)^  socket: .*\n", "", text)
    config.write_text(text)
    checked = server.call(str(HEADWAY), "check", "-c", str(config), user="root")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return json.loads(done.stdout)


@pytest.mark.pbs
def test_a_real_pbs(pbs_server: BatchServer, tmp_path: Path) -> None:
    before = pbs_server.run("qmgr", "-c", "print server")
    told = asked(pbs_server, "pbs", tmp_path)
    assert str(told["title"]).startswith("PBS 2") and told["settings"]["scheduling"] in ("True", "False")
    assert "workq" in [pool["name"] for pool in told["pools"]]
    assert pbs_server.run("qmgr", "-c", "print server") == before


@pytest.mark.lsf
def test_a_real_lsf(lsf_server: BatchServer, tmp_path: Path) -> None:
    before = lsf_server.run("bqueues")
    told = asked(lsf_server, "lsf", tmp_path, "--queues", "hwtest")
    assert str(told["title"]).startswith("volclava")
    managed = [pool["name"] for pool in told["pools"] if pool["managed"]]
    assert managed == ["hwtest"]
    assert lsf_server.run("bqueues") == before
