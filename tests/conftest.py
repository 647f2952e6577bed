"""What all tests share."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from batch_servers import BatchServer, find_launcher, is_promised, why_missing
from distribution import Group, Turns, in_turn
from hypothesis import HealthCheck, settings
from postgres_server import PostgresServer, programs
from sshd import Sshd, missing

#: The fixture `drive` of the conformance suite; the sites are in tests/conformance.
pytest_plugins = ["headway.conformance"]

#: How many times its examples each property is given (`make properties`); 0: a part of them, the same ones in
#: each run.
EXAMPLES = int(os.environ.get("HEADWAY_EXAMPLES") or 0)
#: That part: one of so many.
PART = 3

# Plain Python is quick enough for what tests ask for, and compiling takes half a minute a scheduler.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

# No property fails because the machine is busy.
settings.register_profile(
    "headway", deadline=None, derandomize=not EXAMPLES, database=None, print_blob=bool(EXAMPLES),
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("headway")
#: Marks of tests that drive a real batch system.
REAL = ("slurm", "pbs", "lsf")
#: Characters of what such a test's system logged that the summary shows if the test was run twice.
LOG_TAIL = 4000
#: Characters of a test's own directory that leave enough for what tests and headway add to it.
LONGEST_PATH = 80
#: Where hypothesis keeps what `@settings` gave a test.
_SETTINGS = "_hypothesis_internal_use_settings"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The run of tests that wait reads only the files that have some."""
    if config.option.markexpr.startswith("waits ") and collection_path.suffix == ".py":
        return not _has_tests_that_wait(collection_path) or None
    return None


@cache
def _has_tests_that_wait(path: Path) -> bool:
    """Whether a mark of such tests is written in the file, or in ``conftest.py`` beside it."""
    texts = [path.read_text()]
    if (shared := path.parent / "conftest.py").is_file():
        texts.append(shared.read_text())
    return any(f"mark.{name}" in text for text in texts for name in (*REAL, "waits"))


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else ""


def _described(name: str, items: list[pytest.Item]) -> Group:
    long = any(item.get_closest_marker(mark) for item in items for mark in ("long", "slow", "torture"))
    return Group(name, len(items), long)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests of a real system that failed and passed when they were run once more."""
    told = terminalreporter.stats
    failed = {report.nodeid for kind in ("failed", "error") for report in told.get(kind, [])}
    reports = [report for report in told.get("rerun", []) if report.nodeid not in failed]
    if reports:
        terminalreporter.section("FLAKY")
    for report in reports:
        terminalreporter.write_line(f"FLAKY {report.nodeid}", yellow=True)
        terminalreporter.write_line(report.longreprtext)
        for title, said in report.sections:
            terminalreporter.write_line(f"--- {title}\n{said[-LOG_TAIL:]}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Turns | None:
    return Turns(config, log) if config.option.dist == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """What a worker tells of a test may quote bytes of a user's that are no text: they would end the run."""
    return _encodable((yield))


def _encodable(told: Any) -> Any:
    """The same without lone surrogates."""
    if isinstance(told, str):
        return told.encode("utf-8", "backslashreplace").decode()
    if isinstance(told, dict):
        return {_encodable(key): _encodable(value) for key, value in told.items()}
    return type(told)(map(_encodable, told)) if isinstance(told, list | tuple) else told


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Nothing of it is garbage, and looking for some would take nearly half of its time."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    gc.enable()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the groups of tests in their turn, and give each property its examples so many times."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_group(item), []).append(item)
    turns = in_turn([_described(name, members) for name, members in groups.items()])
    items[:] = [item for name in turns for item in groups[name]]
    for test in {getattr(item, "obj", None) for item in items if item.get_closest_marker("hypothesis")}:
        function = getattr(test, "__func__", test)
        given = getattr(function, _SETTINGS, None) or settings()
        count = given.max_examples * EXAMPLES if EXAMPLES else -(-given.max_examples // PART)
        setattr(function, _SETTINGS, settings(given, max_examples=count))


def pytest_itemcollected(item: pytest.Item) -> None:
    """A file's tests stay together on one worker (`--dist loadgroup`), unless they name their own group."""
    if any(item.get_closest_marker(mark) for mark in REAL):
        item.add_marker("waits")
        if not item.get_closest_marker("campaign"):
            # Its daemons have races of their own. A test that is FLAKY again and again is a defect.
            item.add_marker(pytest.mark.flaky(reruns=1))
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("waits") and not _has_tests_that_wait(item.path):
        pytest.fail(
            "it waits: mark.slurm, mark.pbs, mark.lsf or mark.waits must be written in its file or in "
            "conftest.py beside it, or `make test` does not find it"
        )


def pytest_runtest_teardown() -> None:
    """A command that ran inside of a test leaves the log pointing at the test's own, closed, streams."""
    structlog.reset_defaults()


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """pytest's own; a short one where that leaves no room for the name of a socket, which may have 107."""
    if len(str(tmp_path)) <= LONGEST_PATH:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="hw-", dir="/tmp", ignore_cleanup_errors=True) as short:
        yield Path(short)


@pytest.fixture(scope="session")
def trace_dir() -> Path:
    """The directory of the real traces; skips where there is none."""
    directory = Path(os.environ.get("HEADWAY_TRACES") or Path(__file__).parents[2] / "shared" / "traces")
    if not directory.is_dir():
        pytest.skip(f"needs the real traces: no directory {directory}; set HEADWAY_TRACES to theirs")
    return directory


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL database: that of HEADWAY_POSTGRES, or a throw-away one where the server is
    installed; skips elsewhere. Tests leave it as it was."""
    pytest.importorskip("psycopg")
    if url := os.environ.get("HEADWAY_POSTGRES"):
        yield url
        return
    installed = programs()
    if installed is None:
        pytest.skip(
            "PostgreSQL is not installed, and HEADWAY_POSTGRES does not name a database "
            "(postgresql://USER@HOST/DATABASE)"
        )
    server = PostgresServer(installed)
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def sshd_factory() -> Iterator[Callable[..., Sshd]]:
    """Start SSH servers: ``sshd_factory(MaxSessions="3")``; they run until the end of the tests.

    Skips, or with CI=true fails, where OpenSSH's server is not installed.
    """
    if packages := missing():
        text = f"OpenSSH's server is not installed; missing Debian packages: {' '.join(packages)}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text)
        pytest.skip(text)
    base = Path(tempfile.mkdtemp(prefix="hw-sshd-"))
    started: list[Sshd] = []

    def start(*, key: Path | None = None, **settings: str) -> Sshd:
        started.append(Sshd(base / f"s{len(started)}", key=key, **settings))
        return started[-1]

    yield start
    for server in started:
        server.stop()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def sshd(sshd_factory: Callable[..., Sshd]) -> Sshd:
    """One SSH server with Debian's usual settings, for all tests: leave it as it was."""
    return sshd_factory()


@pytest.fixture(scope="session")
def batch_server_factory() -> Iterator[Callable[..., BatchServer]]:
    """Start real PBS and LSF servers: ``batch_server_factory("pbs", "--hosts", "3", "--cpus", "8")``.

    They run until the end of the tests. Skips where there is no launcher, or nothing that it could start.
    With CI=true, a server that the environment promises (HEADWAY_PBS_TESTSERVER) and that cannot be started
    is a failure.
    """
    base = Path(tempfile.mkdtemp(prefix="hw-servers-"))
    base.chmod(0o755)
    started: list[BatchServer] = []

    def start(system: str, *words: str) -> BatchServer:
        if why := why_missing(system):
            if is_promised(system) and os.environ.get("CI", "").lower() == "true":
                pytest.fail(why)
            pytest.skip(why)
        server = BatchServer(system, find_launcher(system), base / f"{system}{len(started)}")
        started.append(server)
        server.start(*words)
        return server

    yield start
    for server in started:
        server.stop()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def pbs_server(batch_server_factory: Callable[..., BatchServer]) -> BatchServer:
    """A real OpenPBS on three hosts of 8 processors, for all tests: leave it as it was."""
    return batch_server_factory("pbs", "--hosts", "3", "--cpus", "8")


@pytest.fixture(scope="session")
def lsf_server(batch_server_factory: Callable[..., BatchServer]) -> BatchServer:
    """A real LSF (volclava) on three hosts of 4 slots, for all tests: leave it as it was."""
    return batch_server_factory("lsf", "--hosts", "3", "--cpus", "4")
