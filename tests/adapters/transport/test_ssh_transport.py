"""Commands through a real sshd: they behave as local ones do, and what goes wrong says what it is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sshd import Sshd, make_key
from waiting import HANG, bound, until

from headway.errors import Failure
from headway_adapters.transport import Result, TransportOptions, make_transport
from headway_adapters.transport.ssh import SshTransport

pytestmark = pytest.mark.sshd

Connect = Callable[..., SshTransport]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A transport to a server: ``connect(server, environment={...}, **keys of ssh)``."""
    opened: list[SshTransport] = []

    def begin(
        server: Sshd,
        *,
        environment: dict[str, str] | None = None,
        without: Sequence[str] = (),
        output_limit: int = 1 << 30,
        parallel_commands: int = 8,
        bin_dir: str | None = None,
        **keys: Any,
    ) -> SshTransport:
        options = TransportOptions.model_validate(
            {
                "ssh": server.options(**keys), "output_limit": output_limit, "bin_dir": bin_dir,
                "parallel_commands": parallel_commands,
            }
        )  # fmt: skip
        made = make_transport(options, environment=environment, without=without)
        assert isinstance(made, SshTransport)
        opened.append(made)
        return made

    yield begin
    for transport in opened:
        transport.close()


def python(code: str, *words: str) -> list[str]:
    return ["/usr/bin/env", "python3", "-c", code, *words]


def running(mark: str) -> list[psutil.Process]:
    """Processes with ``mark`` among their arguments; not the shells that start them."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if mark in (process.info["cmdline"] or []):
            found.append(process)
    return found


def during(server: Sshd, do: Callable[[], object], transport: SshTransport, mark: str) -> Result:
    """Run a long command and do something as soon as it runs there."""
    answers: list[Result] = []
    thread = threading.Thread(
        target=lambda: answers.append(transport.run(["sh", "-c", "echo half; sleep 600", mark], HANG))
    )
    thread.start()
    until(lambda: running(mark))
    # What it said must have come here, which nobody sees.
    time.sleep(bound(0.2))
    do()
    thread.join(HANG)
    for process in running(mark):
        process.kill()
    return answers[0]


# ---------------------------------------------------------------------- as local commands do


def test_arguments_reach_the_program_untouched(sshd: Sshd, connect: Connect) -> None:
    words = ["a b", "$HOME;ls", "-x", "\n", "*", "it's", '"', "ü", "\udcff", "", "`id`", "!!"]
    result = connect(sshd).run(python("import sys; print(ascii(sys.argv[1:]))", *words), HANG)
    assert result.ok and result.text.strip() == ascii(words)


def test_what_is_given_is_on_its_standard_input(shared: SshTransport) -> None:
    given = b"#!/bin/sh\n$HOME;ls\n\x00\xff" * 50_000
    code = "import sys; text = sys.stdin.buffer.read(); print(len(text), text[-1])"
    assert shared.feed(python(code), given, HANG).text.split() == [str(len(given)), "255"]
    assert shared.feed(python("print(1)"), b"x", HANG).ok


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20), max_size=5
    )
)
@settings(max_examples=15, deadline=None)
def test_any_arguments(shared: SshTransport, words: list[str]) -> None:
    result = shared.run(["printf", "%s\\0", "begin", *words], HANG)
    assert result.stdout.decode().split("\0")[:-1] == ["begin", *words]


@pytest.fixture(scope="module")
def shared(sshd: Sshd) -> Iterator[SshTransport]:
    made = make_transport(TransportOptions.model_validate({"ssh": sshd.options()}))
    assert isinstance(made, SshTransport)
    yield made
    made.close()


def test_the_environment(sshd: Sshd, connect: Connect) -> None:
    transport = connect(sshd, environment={"COLOUR": "b l'u\ne", "PATH": "/usr/bin:/bin"}, without=("SSH_",))
    said = dict(
        entry.split("=", 1) for entry in transport.run(["env", "-0"], HANG).stdout.decode().split("\0")[:-1]
    )
    assert (said["COLOUR"], said["LC_ALL"], said["PATH"]) == ("b l'u\ne", "C", "/usr/bin:/bin")
    # sshd itself sets SSH_CLIENT and SSH_CONNECTION in every session.
    assert not [name for name in said if name.startswith("SSH_")]
    assert "SSH_CLIENT=" in connect(sshd).run(["env"], HANG).text
    with pytest.raises(Failure, match="cannot be the name"):
        connect(sshd, environment={"A B": "x"})


def test_status_and_errors(shared: SshTransport) -> None:
    result = shared.run(["sh", "-c", "echo 'no such job' >&2; exit 3"], HANG)
    assert (result.rc, result.ok, result.complaint()) == (3, False, "no such job")
    assert not result.unanswered


def test_a_program_that_is_missing_is_named(sshd: Sshd, shared: SshTransport, connect: Connect) -> None:
    with pytest.raises(Failure, match=r"'no-such-program' is not installed on 127\.0\.0\.1"):
        shared.run(["no-such-program"], 5)
    with pytest.raises(Failure, match="looked in /nowhere"):
        connect(sshd, bin_dir="/nowhere").run(["squeue"], 5)
    assert connect(sshd, bin_dir="/usr/bin/").run(["env"], 5).ok
    # A program's own status 127 is a result.
    assert shared.run(["sh", "-c", "exit 127"], 5).rc == 127


@pytest.mark.parametrize("program", ["", "-u", "A=b"])
def test_what_cannot_be_a_program_is_refused(shared: SshTransport, program: str) -> None:
    with pytest.raises(Failure, match="cannot be the name of a program"):
        shared.run([program, "x"], 5)


def test_nul_is_refused_before_anything_is_sent(shared: SshTransport) -> None:
    with pytest.raises(Failure, match="NUL"):
        shared.run(["echo", "a\0b"], 5)


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(shared: SshTransport) -> None:
    mark = f"mark-{time.monotonic_ns()}"
    began = time.monotonic()
    result = shared.run(["sh", "-c", 'echo hello; sh -c "sleep 60; :" "$0"; :', mark], 1.0)
    assert time.monotonic() - began < bound(5)
    assert (result.timed_out, result.ok, result.rc, result.unanswered) == (True, False, 124, True)
    assert result.text == "hello\n" and "did not answer" in result.complaint()
    until(lambda: not running(mark))


def test_what_runs_when_the_connection_is_gone_ends_at_its_time_limit(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    server, mark = sshd_factory(), f"mark-{time.monotonic_ns()}"
    transport = connect(server)
    answers: list[Result] = []
    thread = threading.Thread(
        target=lambda: answers.append(transport.run(["sh", "-c", "sleep 60; :", mark], 2))
    )
    thread.start()
    until(lambda: running(mark))
    server.cut()
    thread.join(HANG)
    assert answers[0].cut
    until(lambda: not running(mark))


def test_endless_output_is_cut(sshd: Sshd, connect: Connect) -> None:
    mark = f"mark-{time.monotonic_ns()}"
    transport = connect(sshd, output_limit=1 << 20)
    for code in ("while :; do echo %s; done", "while :; do echo %s >&2; done"):
        result = transport.run(["sh", "-c", code % ("x" * 10000), mark], HANG)
        assert result.too_long and not result.ok and len(result.stdout) < 4 << 20
        assert "output limit" in result.complaint()
    until(lambda: not running(mark))


def test_big_output_is_complete(shared: SshTransport) -> None:
    code = "i=0; while [ $i -lt 200000 ]; do echo $i; i=$((i+1)); done; echo end >&2"
    result = shared.run(["seq", "0", "3000000"], 60)
    assert result.ok
    assert result.stdout == b"".join(b"%d\n" % n for n in range(3_000_001))
    result = shared.run(["sh", "-c", code], 60)
    assert result.ok and len(result.stdout.splitlines()) == 200_000 and result.stderr == "end\n"


def test_much_on_both_outputs_at_once(shared: SshTransport) -> None:
    """More than a window of errors does not stop the output."""
    result = shared.run(["sh", "-c", "seq 1000000 >&2; seq 1000000"], 60)
    assert result.ok and len(result.stdout) == len(result.stderr) == 6888896


def test_output_that_is_no_text(shared: SshTransport) -> None:
    result = shared.run(["printf", "\\377\\000\\376"], HANG)
    assert result.stdout == b"\xff\0\xfe" and "\ufffd" in result.text


# ---------------------------------------------------------------------- many at once


def test_many_run_at_the_same_time_and_keep_their_order(sshd: Sshd, connect: Connect) -> None:
    transport = connect(sshd)
    transport.run(["true"], HANG)
    began = time.monotonic()
    results = transport.run_many([["sleep", "2"] for _ in range(7)] + [["echo", "last"]], 20)
    assert time.monotonic() - began < bound(10)
    assert results[-1].text == "last\n" and len(results) == 8 and all(result.ok for result in results)
    assert len({connection.pid for connection in sshd.connections()}) >= 1


def test_no_more_sessions_at_a_time_than_configured(sshd: Sshd, connect: Connect) -> None:
    transport = connect(sshd, max_sessions=2, parallel_commands=8)
    command = ["sh", "-c", "date +%s%N; sleep 0.2; date +%s%N"]
    moments = []
    for result in transport.run_many([command] * 8, 30):
        began, ended = result.text.split()
        moments += [(int(began), 1), (int(ended), -1)]
    open_now = 0
    for _, change in sorted(moments):
        open_now += change
        assert open_now <= 2


def test_a_server_that_allows_fewer_than_we_were_told(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    server = sshd_factory(MaxSessions="2")
    transport = connect(server, parallel_commands=16)
    results = transport.run_many([["sh", "-c", f"sleep 0.2; echo {n}"] for n in range(16)], 30)
    assert [result.text.strip() for result in results] == [str(n) for n in range(16)]
    assert len(server.connections()) == 1


def test_sessions_that_hang_do_not_use_the_server_up(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    server = sshd_factory(MaxSessions="2")
    transport = connect(server, max_sessions=2)
    # What ignores being killed for a while over there, from the server's point of view.
    hung = transport.run_many([["sleep", "30"], ["sleep", "30"]], 0.5)
    assert all(result.timed_out for result in hung)
    assert transport.run(["echo", "on"], HANG).text == "on\n"


def test_a_server_without_sessions_is_named(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    with pytest.raises(Failure, match=r"logged in, but no command can be run.*session"):
        connect(sshd_factory(MaxSessions="0")).run(["true"], 5)


# ---------------------------------------------------------------------- the connection


def test_one_connection_serves_all_commands(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    server = sshd_factory()
    transport = connect(server)
    for _ in range(3):
        transport.run_many([["true"]] * 4, 20)
    assert server.log().count("Accepted publickey") == 1


def test_a_connection_cut_in_the_middle_leaves_open_what_happened(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    server = sshd_factory()
    transport = connect(server)
    result = during(server, server.cut, transport, f"mark-{time.monotonic_ns()}")
    assert result.cut and result.unanswered and not result.ok
    assert result.text == "half\n"
    assert (
        "the connection ended before sh did" in result.complaint() and str(server.port) in result.complaint()
    )
    assert transport.run(["echo", "again"], HANG).text == "again\n"


def test_a_command_killed_by_a_signal_leaves_open_what_happened(shared: SshTransport) -> None:
    result = shared.run(["sh", "-c", "kill -9 $$"], HANG)
    assert not result.ok and (result.cut or result.rc == 137)


def test_when_some_were_run_the_others_are_no_error(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    """What was done must be known, or starts would be forgotten."""
    server = sshd_factory()
    transport = connect(server, parallel_commands=2)
    marks = [f"mark-{time.monotonic_ns()}-{at}" for at in range(3)]
    commands = [["echo", "done"], *(["sh", "-c", "sleep 600; true", mark] for mark in marks)]
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.extend(transport.run_many(commands, HANG)))
    thread.start()
    until(lambda: running(marks[0]) and running(marks[1]), "the first is done, as the third runs")
    server.stop()
    thread.join(HANG)
    for process in (one for mark in marks for one in running(mark)):
        process.kill()
    assert results[0].text == "done\n" and results[0].ok
    assert [result.cut for result in results[1:]] == [True, True, True]
    assert "refused" in results[3].complaint()


def test_the_server_comes_back(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    server = sshd_factory()
    transport = connect(server)
    assert transport.run(["true"], HANG).ok
    server.stop()
    with pytest.raises(Failure, match=rf"127\.0\.0\.1:{server.port}.*refused.*is sshd running"):
        transport.run(["true"], 5)
    # It is not asked again at once.
    began = time.monotonic()
    with pytest.raises(Failure, match="tried again in"):
        transport.run(["true"], 5)
    assert time.monotonic() - began < bound(0.3)
    server.start()
    until(lambda: works(transport))


def works(transport: SshTransport) -> bool:
    try:
        return transport.run(["true"], 5).ok
    except Failure:
        return False


def test_pauses_between_attempts_grow(
    sshd_factory: Callable[..., Sshd], connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd_factory()
    server.stop()
    transport = connect(server)
    now = [1000.0]
    monkeypatch.setattr("headway_adapters.transport.ssh.time.monotonic", lambda: now[0])
    pauses = []
    for _ in range(9):
        with pytest.raises(Failure):
            transport.run(["true"], 5)
        with pytest.raises(Failure, match="tried again in"):
            transport.run(["true"], 5)
        pauses.append(transport._not_before - now[0])
        now[0] = transport._not_before
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_frozen_server_is_left_for_a_new_connection(
    sshd_factory: Callable[..., Sshd], connect: Connect
) -> None:
    server = sshd_factory()
    transport = connect(server, connect_timeout=2)
    assert transport.run(["true"], HANG).ok
    frozen = [process for c in server.connections() for process in (c, *c.children())]
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    try:
        assert transport.run(["echo", "new"], HANG).text == "new\n"
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)


def test_closing_ends_what_runs(sshd: Sshd, connect: Connect) -> None:
    transport = connect(sshd)
    closed: list[float] = []

    def close() -> None:
        closed.append(time.monotonic())
        transport.close()

    assert not during(sshd, close, transport, f"mark-{time.monotonic_ns()}").ok
    assert time.monotonic() - closed[0] < bound(10)
    with pytest.raises(Failure, match="closed"):
        transport.run(["true"], 5)


def test_no_descriptors_and_no_threads_are_left(sshd: Sshd, connect: Connect) -> None:
    class Held:
        """What this process holds at a moment. Other tests' threads may end meanwhile."""

        def __init__(self) -> None:
            self.files = len(os.listdir("/proc/self/fd"))
            self.threads = set(threading.enumerate())

        def no_more_than(self, other: Held) -> bool:
            return self.files <= other.files and self.threads <= other.threads

    # What other tests closed may end a moment later: there may be less than before, but nothing new.
    empty = Held()
    transport = connect(sshd)
    transport.run(["true"], HANG)
    before = Held()
    ours = before.threads - empty.threads
    transport.run_many([["true"]] * 10, 20)
    until(lambda: Held().no_more_than(before))
    transport.close()
    other = connect(sshd)
    until(lambda: not ours & set(threading.enumerate()))
    between = Held()
    other.run(["true"], HANG)
    other.close()
    until(lambda: Held().no_more_than(between))


# ---------------------------------------------------------------------- who is there


def refusal(transport: SshTransport) -> str:
    with pytest.raises(Failure) as raised:
        transport.run(["true"], HANG)
    (check,) = transport.check()
    assert not check.ok and check.remedy
    return str(raised.value)


def test_check_names_the_machine_and_its_key(sshd: Sshd, connect: Connect) -> None:
    (check,) = connect(sshd).check()
    assert check.ok
    assert f"{sshd.user}@127.0.0.1:{sshd.port}" in check.detail and sshd.fingerprint() in check.detail


def test_an_unknown_host_key_is_refused(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    accepted = sshd.log().count("Accepted")
    said = refusal(connect(sshd, known_hosts=str(empty)))
    for words in (
        "unknown host key",
        sshd.fingerprint(),
        f"127.0.0.1:{sshd.port}",
        "ssh-keyscan",
        str(empty),
    ):
        assert words in said
    assert empty.read_text() == "" and sshd.log().count("Accepted") == accepted


def test_a_changed_host_key_is_refused(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    server = sshd_factory()
    transport = connect(server)
    assert transport.run(["true"], HANG).ok
    old = server.fingerprint()
    server.stop()
    for file in server.root.glob("host_key*"):
        file.unlink()
    make_key(server.host_key)
    server.start()
    said = refusal(transport)
    assert "has changed" in said and old in said and server.fingerprint() in said
    # The new key, written into known_hosts, is taken without a restart.
    server.know()
    until(lambda: works(transport))


def test_a_pinned_key(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    nothing = {"known_hosts": str(tmp_path / "nothing")}
    (tmp_path / "nothing").write_text("")
    public = " ".join(Path(f"{sshd.host_key}.pub").read_text().split()[:2])
    for pin in (sshd.fingerprint(), public):
        assert connect(sshd, host_key=pin, **nothing).run(["true"], HANG).ok
    other = "SHA256:" + "A" * 43
    said = refusal(connect(sshd, host_key=other))
    assert other in said and sshd.fingerprint() in said and "ssh.host_key" in said


def test_of_several_host_keys_the_known_one_is_asked_for(
    sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path
) -> None:
    rsa = make_key(tmp_path / "rsa", kind="rsa")
    server = sshd_factory()
    config = server.root / "sshd_config"
    config.write_text(config.read_text() + f"HostKey {rsa}\n")
    server.stop()
    server.start()
    words = Path(f"{rsa}.pub").read_text().split()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {words[0]} {words[1]}\n")
    (check,) = connect(server).check()
    assert check.ok and "host key ssh-rsa" in check.detail


def test_a_refused_key(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")
    said = refusal(connect(sshd, key_file=str(stranger)))
    for words in (
        "log-in refused",
        f"{sshd.user}@127.0.0.1:{sshd.port}",
        str(stranger),
        "SHA256:",
        "authorized_keys",
    ):
        assert words in said


def test_a_refused_user(sshd: Sshd, connect: Connect) -> None:
    assert "nobody-of-that-name@127.0.0.1" in refusal(connect(sshd, user="nobody-of-that-name"))


@pytest.mark.parametrize(
    ("mend", "words"),
    [
        (lambda path: path.unlink(), ["cannot be read", "No such file"]),
        (lambda path: path.chmod(0o644), ["open to others", "644", "chmod 600"]),
        (lambda path: path.write_text("not a key"), ["expected a private key"]),
    ],
)
def test_a_key_file_that_cannot_be_used(
    sshd: Sshd, connect: Connect, tmp_path: Path, mend: Callable[[Path], object], words: list[str]
) -> None:
    key = make_key(tmp_path / "key")
    mend(key)
    said = refusal(connect(sshd, key_file=str(key)))
    assert all(word in said for word in [*words, str(key), "ssh.key_file"])


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_kinds_of_keys(
    sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path, kind: str
) -> None:
    server = sshd_factory(key=make_key(tmp_path / kind, kind=kind))
    assert connect(server).run(["true"], HANG).ok


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="needs Debian's openssh-client")
def test_a_key_with_a_passphrase_works_through_an_agent_alone(
    sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(tmp_path / "locked", passphrase="secret")
    server = sshd_factory(key=key)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    said = refusal(connect(server, agent=True))
    assert all(word in said for word in ("passphrase", "ssh-add", str(key), "SSH_AUTH_SOCK"))

    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    agent = dict(re.findall(r"(SSH_\w+)=([^;]+);", started))
    try:
        ask = tmp_path / "ask"
        ask.write_text("#!/bin/sh\necho secret\n")
        ask.chmod(0o700)
        env = {**os.environ, **agent, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(["ssh-add", "-q", str(make_key(tmp_path / "other"))], env=env, check=True)
        monkeypatch.setenv("SSH_AUTH_SOCK", agent["SSH_AUTH_SOCK"])
        assert "passphrase" in refusal(connect(server, agent=True))
        subprocess.run(["ssh-add", "-q", str(key)], env=env, check=True)
        assert connect(server, agent=True).run(["true"], HANG).ok
        assert connect(server, agent=True, key_file=None).run(["true"], HANG).ok
        assert "passphrase" in refusal(connect(server, agent=False))
    finally:
        os.kill(int(agent["SSH_AGENT_PID"]), signal.SIGTERM)


def test_no_key_at_all(sshd: Sshd, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    said = refusal(connect(sshd, key_file=None))
    assert "no SSH key" in said and "ssh.key_file" in said and "ssh.agent is false" in said
    (tmp_path / ".ssh").mkdir()
    shutil.copy(sshd.key, tmp_path / ".ssh" / "id_ed25519")
    assert connect(sshd, key_file=None).run(["true"], HANG).ok


# ---------------------------------------------------------------------- nobody is there


def test_no_such_name(sshd: Sshd, connect: Connect) -> None:
    said = refusal(connect(sshd, host="no-such-host.invalid"))
    assert "no-such-host.invalid" in said and "name or address of a machine" in said


def test_nobody_listens(connect: Connect, sshd: Sshd) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert f"127.0.0.1:{port}" in refusal(connect(sshd, port=port))


@pytest.mark.parametrize("said", [b"", b"220 smtp.example.org ESMTP\r\n" * 50, b"SSH-2.0-Dropbear\r\n"])
def test_something_else_listens(sshd: Sshd, connect: Connect, said: bytes) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = []

        def serve() -> None:
            while True:
                try:
                    client, _ = other.accept()
                except OSError:
                    return
                client.sendall(said)
                taken.append(client)

        threading.Thread(target=serve, daemon=True).start()
        began = time.monotonic()
        text = refusal(connect(sshd, port=port, connect_timeout=1.5))
        assert time.monotonic() - began < bound(8)
        assert f"127.0.0.1:{port}" in text and "expected an SSH server" in text
        for client in taken:
            client.close()
        other.shutdown(socket.SHUT_RDWR)


def test_a_login_that_is_no_shell(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    said = refusal(connect(sshd_factory(ForceCommand="echo welcome")))
    assert "expected a login shell" in said and "welcome" in said


def test_a_login_shell_whose_files_do_not_end(sshd_factory: Callable[..., Sshd], connect: Connect) -> None:
    said = refusal(connect(sshd_factory(ForceCommand="sleep 5"), connect_timeout=1))
    assert "`env` did not end within 1 s" in said and "~/.bashrc" in said


def test_a_machine_without_timeout(
    sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path
) -> None:
    """Commands run without a limit of their own there."""
    for name in ("env", "echo", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    # What a login shell's files would set is not ours to choose; a forced command is.
    force = tmp_path / "force"
    force.write_text(f'#!/bin/sh\nPATH={tmp_path}; export PATH\neval "$SSH_ORIGINAL_COMMAND"\n')
    force.chmod(0o755)
    transport = connect(sshd_factory(ForceCommand=str(force)))
    assert transport.run(["echo", "on"], HANG).text == "on\n"
    with pytest.raises(Failure, match="'squeue' is not installed"):
        transport.run(["squeue"], 5)


# ---------------------------------------------------------------------- through other machines


def both(*servers: Sshd, root: Path) -> str:
    """A known_hosts file about several servers."""
    file = root / "known_hosts"
    file.write_text("".join(server.known_hosts.read_text() for server in servers))
    return str(file)


def test_through_another_machine(
    sshd: Sshd, sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path
) -> None:
    gate = sshd_factory(key=sshd.key)
    way = {"proxy_jump": f"{gate.user}@127.0.0.1:{gate.port}"}
    transport = connect(sshd, known_hosts=both(sshd, gate, root=tmp_path), **way)
    assert transport.run(["echo", "far"], HANG).text == "far\n"
    assert f"through 127.0.0.1:{gate.port}" in transport.check()[0].detail
    assert "direct-tcpip" in gate.log() or gate.log().count("Accepted publickey") == 1
    # A cut on the way is a cut.
    result = during(gate, gate.cut, transport, f"mark-{time.monotonic_ns()}")
    assert result.cut
    assert transport.run(["echo", "again"], HANG).text == "again\n"


def test_every_machine_on_the_way_is_verified(
    sshd: Sshd, sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path
) -> None:
    gate = sshd_factory(key=sshd.key)
    way = {"proxy_jump": [f"{gate.user}@127.0.0.1:{gate.port}"]}
    said = refusal(connect(sshd, known_hosts=both(sshd, root=tmp_path), **way))
    assert f"127.0.0.1:{gate.port}: unknown host key" in said and gate.fingerprint() in said
    # The pin is the target's, and no word for the machines on the way.
    assert "unknown" in refusal(
        connect(sshd, host_key=gate.fingerprint(), known_hosts=both(sshd, root=tmp_path), **way)
    )
    said = refusal(connect(sshd, known_hosts=both(gate, root=tmp_path), **way))
    assert f"127.0.0.1:{sshd.port}: unknown host key" in said and sshd.fingerprint() in said


def test_a_machine_that_does_not_lead_on(
    sshd: Sshd, sshd_factory: Callable[..., Sshd], connect: Connect, tmp_path: Path
) -> None:
    shut = sshd_factory(key=sshd.key, AllowTcpForwarding="no")
    known = both(sshd, shut, root=tmp_path)
    said = refusal(connect(sshd, known_hosts=known, proxy_jump=f"{shut.user}@127.0.0.1:{shut.port}"))
    assert (
        f"127.0.0.1:{shut.port}" in said and f"127.0.0.1:{sshd.port}" in said and "AllowTcpForwarding" in said
    )
