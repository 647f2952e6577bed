"""Commands as child processes: arguments stay arguments, nothing hangs, nothing floods."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
from waiting import bound

from headway.errors import Failure
from headway_adapters.transport import LocalTransport


def python(code: str, *words: str) -> list[str]:
    return ["python3", "-c", code, *words]


@pytest.fixture
def local() -> LocalTransport:
    return LocalTransport(environment={"COLOUR": "blue"}, without=("SQUEUE_",), output_limit=1 << 20)


def test_arguments_reach_the_program_untouched(local: LocalTransport) -> None:
    words = ["a b", "$HOME;ls", "-x", "\n", "*"]
    result = local.run(python("import sys; print(sys.argv[1:])", *words), 20)
    assert result.ok and result.text.strip() == repr(words)


def test_the_environment(local: LocalTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    transport = LocalTransport(environment={"COLOUR": "blue"}, without=("SQUEUE_",))
    code = "import os; print(os.environ.get('COLOUR'), os.environ['LC_ALL'], os.environ.get('SQUEUE_FORMAT'))"
    assert transport.run(python(code), 20).text.split() == ["blue", "C", "None"]


def test_status_and_errors(local: LocalTransport) -> None:
    result = local.run(python("import sys; sys.stderr.write('no such job\\n'); sys.exit(3)"), 20)
    assert (result.rc, result.ok, result.complaint()) == (3, False, "no such job")


def test_a_program_that_is_missing_is_named(local: LocalTransport) -> None:
    with pytest.raises(Failure, match="'no-such-program' is not installed"):
        local.run(["no-such-program"], 5)
    with pytest.raises(Failure, match="looked in /nowhere"):
        LocalTransport(bin_dir="/nowhere").run(["squeue"], 5)


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(local: LocalTransport) -> None:
    began = time.monotonic()
    code = "import subprocess, sys; print('hello', flush=True); subprocess.run(['sleep', '60'])"
    result = local.run(python(code), 1.0)
    assert time.monotonic() - began < bound(5)
    assert (result.timed_out, result.ok, result.rc) == (True, False, 124)
    assert result.text == "hello\n" and "did not answer" in result.complaint()


def test_endless_output_is_cut(local: LocalTransport) -> None:
    result = local.run(python("while True: print('x' * 100000)"), 20)
    assert result.too_long and not result.ok and len(result.stdout) < 2 << 20


def test_many_run_at_the_same_time_and_keep_their_order(local: LocalTransport) -> None:
    began = time.monotonic()
    results = local.run_many([["sleep", "0.4"] for _ in range(7)] + [["echo", "last"]], 20)
    assert time.monotonic() - began < bound(2.0)
    assert results[-1].text == "last\n" and len(results) == 8


def test_closing_ends_what_runs(local: LocalTransport) -> None:
    threading.Timer(0.3, local.close).start()
    began = time.monotonic()
    assert not local.run(["sleep", "30"], 60).ok
    assert time.monotonic() - began < bound(10)
    with pytest.raises(Failure, match="closed"):
        local.run(["true"], 5)


def test_no_descriptors_are_left(local: LocalTransport) -> None:
    local.run(["true"], 5)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(5):
        local.run(["true"], 5)
    assert (len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0) == before


def test_what_is_given_is_on_its_standard_input(local: LocalTransport) -> None:
    given = b"#!/bin/sh\n$HOME;ls\n\x00\xff" * 50_000
    code = "import sys; text = sys.stdin.buffer.read(); print(len(text), text[-1])"
    assert local.feed(python(code), given, 20).text.split() == [str(len(given)), "255"]
    # A command that reads nothing of it is no mistake, and others have nothing to read.
    assert local.feed(python("print(1)"), given, 20).ok
    assert local.run(python("import sys; print(repr(sys.stdin.read()))"), 20).text.strip() == "''"
