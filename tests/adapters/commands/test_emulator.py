"""The emulator itself: installed, stopped, disturbed; who may do what."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from emulated_commands import Commands
from waiting import HANG, bound

from headway.errors import UserError
from headway_adapters.commands import Emulator, EmulatorOptions
from headway_adapters.commands.machine import Job, Machine, Node, Share
from headway_adapters.commands.server import Fault

HEADWAY = Path(sys.executable).with_name("headway")


class TestFaults:
    def test_slow_answers_late_but_has_carried_it_out(self, pbs):
        job = pbs.ok("qsub", "--", "sleep", "100").strip()
        pbs.ok("emulator-ctl", "fault", "slow:1.5@qrun")
        with pytest.raises(subprocess.TimeoutExpired):
            pbs("qrun", "-H", "pbshost[0]", job, timeout=0.3)
        assert "R workq" in pbs.ok("qstat")
        began = time.monotonic()
        pbs("qrun", "-H", "pbshost[0]", job)
        assert 1.4 < time.monotonic() - began < bound(5)

    def test_slow_holds_nobody_else_up(self, pbs):
        pbs.ok("emulator-ctl", "fault", "slow:2@pbsnodes")
        thread = threading.Thread(target=pbs, args=("pbsnodes", "-av"))
        thread.start()
        began = time.monotonic()
        pbs.ok("qstat")
        assert time.monotonic() - began < bound(1)
        thread.join()

    def test_truncate_leaves_half(self, pbs):
        whole = pbs.ok("qstat", "-B", "-f", "-F", "json")
        pbs.ok("emulator-ctl", "fault", "truncate@qstat")
        answer = pbs("qstat", "-B", "-f", "-F", "json")
        assert (answer.rc, len(answer.out)) == (0, len(whole) // 2)
        assert pbs("pbsnodes", "-av", "-F", "json").json

    def test_garbage_is_no_text(self, pbs):
        pbs.ok("emulator-ctl", "fault", "garbage")
        with pytest.raises(UnicodeEncodeError):
            pbs("qstat", "-f", "-F", "json").out.encode()

    @pytest.mark.parametrize("system", ["pbs", "lsf"])
    def test_refuse_start_refuses_starts_alone(self, request, system):
        commands = request.getfixturevalue(system)
        commands.ok("emulator-ctl", "fault", "refuse-start")
        if system == "pbs":
            job = commands.ok("qsub", "--", "sleep", "9").strip()
            said = commands.refused("qrun", "-H", "pbshost[0]", job)
            assert said == (2, f"qrun: Resource temporarily unavailable {job}\n")
        else:
            commands.ok("bsub", "sleep", "9")
            assert commands.refused("brun", "-m", "lsfhost", "1")[0] == 255

    def test_words_that_are_no_fault_are_refused(self, pbs):
        for text in ("dwon", "slow", "slow:x", "down:3"):
            rc, said = pbs.refused("emulator-ctl", "fault", text)
            assert rc == 2
            assert text in said

    @pytest.mark.parametrize("text", ["none", "down", "slow:2.5", "truncate@bjobs,qstat", "refuse-start"])
    def test_are_written_as_they_are_read(self, text):
        assert str(Fault.parse(text)) == text


class TestControl:
    def test_a_dropped_job_is_gone_without_a_trace(self, pbs):
        job = pbs.ok("qsub", "--", "sleep", "9").strip()
        pbs.ok("emulator-ctl", "drop", job)
        assert pbs("qstat", "-x", job).rc == 153

    def test_a_node_goes_down_and_comes_back(self, lsf):
        lsf.ok("emulator-ctl", "node", "lsfhost", "down")
        assert "lsfhost            unavail" in lsf.ok("bhosts", "-w")
        lsf.ok("emulator-ctl", "node", "lsfhost", "up")
        assert "lsfhost            ok" in lsf.ok("bhosts", "-w")

    def test_what_it_does_not_know_is_named(self, pbs):
        assert "expected one of fault, finish" in pbs.refused("emulator-ctl", "explode")[1]
        assert "'77'" in pbs.refused("emulator-ctl", "finish", "77")[1]
        assert "'mars'" in pbs.refused("emulator-ctl", "node", "mars", "down")[1]

    def test_is_for_managers(self, pbs):
        assert pbs.refused("emulator-ctl", "stop", user="alice")[0] == 1


class TestUsers:
    def test_who_calls_is_who_submits(self, pbs):
        pbs.ok("qsub", "--", "sleep", "9")
        me = pwd.getpwuid(os.getuid()).pw_name
        assert pbs("qstat", "-f", "-F", "json").json["Jobs"]["0.pbshost"]["euser"] == me

    @pytest.mark.skipif(os.getuid() != 0, reason="needs root, to call commands as somebody else")
    def test_the_kernel_says_who_it_is(self):
        nobody = pwd.getpwnam("nobody")
        # A user must be able to enter the directory.
        directory = Path(tempfile.mkdtemp(prefix="hw-emulator-"))
        directory.chmod(0o755)
        try:
            with Emulator(directory, EmulatorOptions("pbs")) as emulator:
                commands = Commands(emulator)

                # Started as root, because this interpreter may be root's own.
                code = (
                    "import os, sys, _socket; sys.argv = sys.argv[1:]; client = open(sys.argv[0]).read(); "
                    f"os.setgroups([]); os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid}); exec(client)"
                )

                def as_nobody(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
                    return subprocess.run(
                        [sys.executable, "-c", code, str(commands.emulator.bin / name), *words],
                        capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, cwd="/",
                    )  # fmt: skip

                # It cannot pretend to be another.
                done = as_nobody("qsub", "--", "sleep", "9", HEADWAY_EMULATED_USER="alice")
                assert done.returncode == 0, done.stderr
                record = commands("qstat", "-f", "-F", "json").json["Jobs"]["0.pbshost"]
                assert record["euser"] == "nobody"
                assert as_nobody("qmgr", "-c", "set server scheduling = False").returncode == 1
                assert as_nobody("emulator-ctl", "stop").returncode == 1
                assert as_nobody("qdel", "0").returncode == 0
        finally:
            shutil.rmtree(directory)


def test_commands_start_fast(pbs):
    seconds = []
    for _ in range(15):
        began = time.monotonic()
        pbs.ok("qstat")
        seconds.append(time.monotonic() - began)
    # 15 ms on an idle machine.
    assert statistics.median(seconds) < bound(0.25)


def test_many_commands_at_once_are_all_answered(pbs):
    threads = [threading.Thread(target=pbs.ok, args=("qsub", "--", "sleep", "9")) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(j.partition(".")[0]) for j in pbs("qstat", "-f", "-F", "json").json["Jobs"]) == list(
        range(20)
    )


def test_a_directory_with_a_long_name_serves(tmp_path):
    directory = tmp_path / ("d" * 120)
    with Emulator(directory, EmulatorOptions("pbs")) as emulator:
        assert Commands(emulator).ok("qstat") == ""


@pytest.mark.parametrize("system", ["pbs", "lsf"])
def test_without_its_server_commands_say_what_a_dead_daemon_does(tmp_path, system):
    emulator = Emulator(tmp_path, EmulatorOptions(system))
    emulator.stop()
    commands = Commands(emulator)
    if system == "pbs":
        rc, said = commands.refused("qstat")
        assert (rc, said) == (
            255,
            "Connection refused\nqstat: cannot connect to server pbshost (errno=15010)\n",
        )
    else:
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            commands("bjobs", timeout=bound(0.5))
        assert caught.value.stderr == b"batch system daemon not responding ... still trying\n"


def test_installing_again_replaces_the_commands(tmp_path):
    Emulator(tmp_path, EmulatorOptions("pbs")).stop()
    with Emulator(tmp_path, EmulatorOptions("lsf")) as emulator:
        names = {path.name for path in emulator.bin.iterdir()}
        assert "bjobs" in names
        assert "qstat" not in names


def test_a_directory_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="expected a directory that can be written"):
        Emulator(tmp_path / "file", EmulatorOptions("pbs"))


def test_a_directory_that_others_can_write_is_refused(tmp_path):
    open_to_all = tmp_path / "pbs"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(
        UserError, match="of this user that other users cannot write, found a directory that other users can"
    ):
        Emulator(open_to_all, EmulatorOptions("pbs"))
    assert list(open_to_all.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a directory somebody else's")
def test_a_directory_of_somebody_else_is_refused(tmp_path):
    theirs = tmp_path / "pbs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(UserError, match="found a directory that is user 12345's"):
        Emulator(theirs, EmulatorOptions("pbs"))


def test_an_interpreter_whose_path_has_blanks_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    with pytest.raises(UserError, match="no blanks"):
        Emulator(tmp_path, EmulatorOptions("pbs"))


class TestCommandLine:
    @pytest.mark.parametrize("system", ["lsf", "pbs"])
    def test_the_control_command_that_stops_it_is_answered_and_leaves_no_socket(self, tmp_path, system):
        process = subprocess.Popen(
            [str(HEADWAY), "emulate-commands", system, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("emulating ")
            stop = [str(tmp_path / "bin" / "emulator-ctl"), "stop"]
            done = subprocess.run(stop, capture_output=True, text=True, timeout=HANG)
            assert (done.returncode, done.stderr) == (0, "")
            assert process.wait(HANG) == 0
            assert not (tmp_path / "socket").exists()
        finally:
            process.kill()
            process.wait(HANG)

    def test_serves_until_it_is_stopped(self, tmp_path):
        process = subprocess.Popen(
            [str(HEADWAY), "emulate-commands", "lsf", str(tmp_path), "--nodes", "2", "--speed", "60"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "emulating LSF (ibm): 2 nodes with 8 processors each\n"
            line = process.stdout.readline()
            assert line == f'  export PATH={tmp_path}/bin:"$PATH"\n'
            done = subprocess.run(
                [str(tmp_path / "bin" / "bhosts")], capture_output=True, text=True, timeout=HANG
            )
            assert done.stdout.count("ok ") == 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG) == 0
            assert not (tmp_path / "socket").exists()
        finally:
            process.kill()
            process.wait(HANG)

    def test_a_wrong_fault_is_told(self, tmp_path):
        done = subprocess.run(
            [str(HEADWAY), "emulate-commands", "pbs", str(tmp_path), "--fault", "dwon"],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert done.returncode == 2
        assert "expected none, down, slow:SECONDS" in done.stderr


class TestMachine:
    """The cluster behind the commands, with a clock that tests move."""

    @pytest.fixture
    def clock(self):
        return [1_000_000.0]

    @pytest.fixture
    def machine(self, clock):
        return Machine([Node("n1", 4, 0, "n1")], speed=60.0, clock=lambda: clock[0])

    def job(self, machine, **changes) -> Job:
        number = len(machine.jobs)
        fields = {"walltime": 3600.0, "runtime": 600.0, **changes}
        job = Job(str(number), number, "alice", "users", "job", "q", **fields)
        machine.submit(job)
        return job

    def test_jobs_go_faster_and_the_wall_clock_stays_right(self, machine, clock):
        job = self.job(machine)
        clock[0] += 5
        machine.advance()
        machine.start(job, [Share("n1", 4)])
        clock[0] += 9.9
        machine.advance()
        assert job.state == "running"
        clock[0] += 100
        machine.advance()
        assert (job.state, job.outcome) == ("ended", "completed")
        assert (job.started, job.stopped) == (1_000_005.0, 1_000_015.0)
        assert machine.elapsed(job) == 600.0

    def test_a_suspended_job_does_not_go_on(self, machine, clock):
        job = self.job(machine)
        machine.start(job, [Share("n1", 4)])
        clock[0] += 5
        machine.advance()
        machine.suspend(job, keep=False)
        assert machine.nodes["n1"].assigned == 0
        clock[0] += 1000
        machine.advance()
        machine.resume(job)
        assert machine.nodes["n1"].assigned == 4
        clock[0] += 5.1
        machine.advance()
        assert machine.elapsed(job) == 600.0

    def test_a_start_that_is_under_way_can_be_overtaken(self, clock):
        machine = Machine([Node("n1", 4, 0, "n1")], start_delay=2.0, clock=lambda: clock[0])
        job = self.job(machine)
        machine.start(job, [Share("n1", 1)])
        machine.kill(job)
        clock[0] += 10
        machine.advance()
        assert (job.state, job.executions, machine.nodes["n1"].assigned) == ("ended", 0, 0)

    def test_its_own_scheduler_starts_jobs_at_the_instants_at_which_it_could(self, machine, clock):
        def first_come() -> None:
            for job in machine.queued():
                if machine.nodes["n1"].assigned == 0:
                    machine.start(job, [Share("n1", 4)])

        machine.scheduler = first_come
        first, second = self.job(machine), self.job(machine)
        later = self.job(machine, begin=clock[0] + 500)
        clock[0] += 1000
        machine.advance()
        assert (first.started, second.started) == (1_000_000.0, 1_000_010.0)
        assert later.started == 1_000_500.0

    def test_what_it_depends_on_lets_a_job_start_or_never(self, machine):
        first = self.job(machine)
        after = self.job(machine, dependencies=[("completed", first.id)])
        failed = self.job(machine, dependencies=[("failed", first.id)])
        started = self.job(machine, dependencies=[("started", first.id)])
        answers = [machine.dependency(job) for job in (after, failed, started)]
        assert answers == [False, False, False]
        machine.start(first, [Share("n1", 4)])
        assert machine.dependency(started) is True
        machine.kill(first, "completed")
        assert [machine.dependency(job) for job in (after, failed)] == [True, None]
