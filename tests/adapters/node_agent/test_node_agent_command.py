"""``headway node-agent`` on a fake tree, and its reading part on the machine that runs the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import HANG, bound, until

from headway.cli import main
from headway_adapters.node_agent import agent

AGENT = [sys.executable, "-c", "from headway.cli import main; main()", "node-agent"]
REAL_HAS_CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq").is_dir()
REAL_HAS_RAPL = Path("/sys/class/powercap/intel-rapl:0/energy_uj").exists()


@pytest.fixture
def run(capsys, tmp_path, tree):
    """Calls the agent on the fake tree: exit code, output, messages."""

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        options = ["--sysfs", str(tree.root)]
        if words[0] in ("set-frequency", "reset"):
            options += ["--state", str(tmp_path / "state.json")]
        code = 0
        try:
            main(["node-agent", words[0], *options, *words[1:]])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def job():
    """A process of job 987654 that is bound to the first cpu that we may use."""
    cpu = min(os.sched_getaffinity(0))
    program = f"import os, time; os.sched_setaffinity(0, {{{cpu}}}); print(1, flush=True); time.sleep(60)"
    environment = {**os.environ, "SLURM_JOB_ID": "987654"}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield cpu
        child.kill()


def test_set_and_reset_by_cpus(tree, run):
    policy = tree.processors(4).policy([0, 1, 2, 3], levels=(3_000_000, 2_400_000, 1_800_000))
    code, out, err = run("set-frequency", "--cpus", "0-3", "--frequency", "2.5GHz")
    assert (code, out) == (0, "cpus 0,1,2,3: scaling_max_freq is 2400 MHz (was 3000 MHz)\n")
    assert err == "node-agent: cpus 0,1,2,3: 2500 MHz is not a level of these cpus; 2400 MHz is used\n"
    assert (policy / "scaling_max_freq").read_text() == "2400000\n"
    assert run("reset")[:2] == (0, "cpus 0,1,2,3: scaling_max_freq is 3000 MHz (was 2400 MHz)\n")
    assert run("reset")[:2] == (0, "nothing to give back\n")


def test_a_jobs_cpus_are_found_and_limited(tree, run, job):
    tree.processors(job + 1)
    policy = tree.policy([job])
    code, out, _ = run(
        "set-frequency", "--job", "987654", "--frequency", "2000000000", "--even-if-shared"
    )  # other jobs of this machine may have the same cpus
    assert (code, out) == (0, f"cpus {job}: scaling_max_freq is 2000 MHz (was 3000 MHz)\n")
    run("reset", "--job", "1")
    assert (policy / "scaling_max_freq").read_text() == "2000000\n"
    run("reset", "--job", "987654")
    assert (policy / "scaling_max_freq").read_text() == "3000000\n"


def test_another_job_on_the_same_cpus_is_not_slowed_by_chance(tree, run, monkeypatch):
    from headway_adapters.node_agent.processes import JobUse

    policy = tree.processors(2).policy([0, 1])
    both = [JobUse(n, frozenset({n}), (1,), (0, 1), 0.0, 0) for n in ("1", "2")]
    monkeypatch.setattr(agent.processes, "jobs_here", lambda: both)
    code, _, err = run("set-frequency", "--job", "1", "--frequency", "2GHz")
    assert code == 1 and "may run on the same cpus as job 2" in err and "--even-if-shared" in err
    assert (policy / "scaling_max_freq").read_text() == "3000000\n"


def test_a_dry_run_says_what_would_be(tree, run, tmp_path):
    policy = tree.processors(1).policy([0])
    code, out, _ = run("set-frequency", "--cpus", "0", "--frequency", "2GHz", "--dry-run")
    assert (code, out) == (0, "cpus 0: scaling_max_freq would be 2000 MHz (was 3000 MHz)\n")
    assert (policy / "scaling_max_freq").read_text() == "3000000\n"
    run("set-frequency", "--cpus", "0", "--frequency", "2GHz")
    assert "would be 3000 MHz" in run("reset", "--dry-run")[1]
    assert (policy / "scaling_max_freq").read_text() == "2000000\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--cpus", "0", "--frequency", "2.4"], 2, "a frequency of 10 MHz to 100 GHz"),
        (["--cpus", "0", "--frequency", "fast"], 2, "a frequency of 10 MHz to 100 GHz"),
        (["--cpus", "0;reboot", "--frequency", "2GHz"], 2, "expected cpus such as 0-3,8"),
        (["--cpus", "3-1", "--frequency", "2GHz"], 2, "runs backwards"),
        (["--cpus", "", "--frequency", "2GHz"], 2, "found none"),
        (["--cpus", "9", "--frequency", "2GHz"], 2, "cpu 9: this node has no such cpu online"),
        (["--job", "-x", "--frequency", "2GHz"], 2, "a job's identifier"),
        (["--frequency", "2GHz"], 2, "either --job or --cpus; found neither"),
        (["--cpus", "0", "--job", "1", "--frequency", "2GHz"], 2, "either --job or --cpus; found both"),
        (["--job", "5550555", "--frequency", "2GHz"], 1, "none of its processes runs here"),
        (["--cpus", "1", "--frequency", "2GHz"], 1, "no cpufreq driver"),
    ],
)
def test_mistakes_and_what_the_node_cannot_do(tree, run, words, code, says):
    tree.processors(2).policy([0])
    found, out, err = run("set-frequency", *words)
    assert (found, out) == (code, "") and says in err and "Traceback" not in err


def test_a_reading_of_a_fake_node(tree, run):
    tree.processors(2).policy([0, 1], limits=(800_000, 2_000_000))
    tree.zone("intel-rapl:0", "package-0", 7)
    code, out, _ = run("report", "--over", "1", "--json")
    found = json.loads(out)
    assert code == 0
    assert [c["frequency"] for c in found["cpus"]] == [8e8, 8e8]
    assert found["cpus"][0]["most"] == 2e9 and found["cpus"][0]["governor"] == "schedutil"
    assert found["energy"]["watts"] == 0.0, "the fake counter stands still"
    assert found["notes"] == []
    assert "cpu 0    800 MHz, 800 MHz to 2000 MHz, schedutil" in run("report", "--over", "1")[1]


def test_no_sysfs_at_all_is_said(run):
    code, out, err = run("report")
    assert (code, out) == (1, "") and "is --sysfs right?" in err


def test_an_interval_in_which_counters_wrap_twice_is_refused(tree, run):
    tree.processors(1)
    code, _, err = run("watch", "--interval", "1h")
    assert code == 2 and "expected at most 600 s, found 3600 s" in err


def test_watch_writes_lines_until_it_is_told_to_end():
    with subprocess.Popen(
        [*AGENT, "watch", "--interval", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        lines = [json.loads(child.stdout.readline()) for _ in range(2)]
        child.send_signal(signal.SIGTERM)
        assert child.wait(HANG) == 0
    assert lines[1]["time"] - lines[0]["time"] == pytest.approx(1.0, abs=bound(0.5))
    assert all(0 <= cpu["use"] <= 1 for cpu in lines[1]["cpus"])


# ---------------------------------------------------------------------- the real machine


def real(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([*AGENT, *words], capture_output=True, text=True, timeout=HANG, check=False)


def test_this_machine_is_read():
    ran = real("report", "--json")
    assert ran.returncode == 0
    found = json.loads(ran.stdout)
    assert [cpu["cpu"] for cpu in found["cpus"]] and found["memory_total"] > found["memory_available"] > 0
    assert all(cpu["use"] is None or 0 <= cpu["use"] <= 1 for cpu in found["cpus"])
    frequencies = [cpu["frequency"] for cpu in found["cpus"]]
    if REAL_HAS_CPUFREQ:
        assert all(1e8 < frequency < 1e10 for frequency in frequencies)
    else:
        assert any("no cpufreq: frequencies are" in note for note in found["notes"]), "a fallback is said"
        assert all(frequency is None or 1e8 < frequency < 1e10 for frequency in frequencies)
    if not REAL_HAS_RAPL:
        assert found["energy"] == {"joules": None, "watts": None, "zones": []}
        assert any("energy is not known" in note for note in found["notes"])
        assert "this node's energy is not known" in ran.stderr


def test_a_busy_job_of_this_machine_is_seen():
    program = "while True: pass"
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "SLURM_JOB_ID": "987655"}
    ) as child:
        found: list[dict[str, Any]] = []

        def busy() -> bool:
            told = json.loads(real("report", "--json").stdout)["jobs"]
            found[:] = [one for one in told if one["job"] == "987655"]
            return any(one["cpu_use"] > 0 for one in found)

        try:
            until(busy, "it is seen, and that it computes")
        finally:
            child.kill()
    [mine] = found
    assert mine["processes"] == 1 and mine["memory"] > 0
    assert mine["cpu_use"] < 1.2


@pytest.mark.skipif(REAL_HAS_CPUFREQ, reason="would change this machine's clock")
def test_this_machine_without_cpufreq_says_so():
    ran = real("set-frequency", "--cpus", "0", "--frequency", "2GHz")
    assert ran.returncode == 1 and ran.stdout == ""
    assert "the kernel offers no control of this cpu's clock" in ran.stderr and "Traceback" not in ran.stderr
