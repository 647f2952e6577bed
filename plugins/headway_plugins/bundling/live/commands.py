"""``headway bundle``: submit, watch and end bundles, as an ordinary user."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from headway.adapter.user_side import load_user_side
from headway.cli.as_json import json_option, printed_json, say_json
from headway.cli.asking import DURATION
from headway.cli.common import console, examples, say, wall_clock
from headway.cli.numbers import FiniteRange
from headway.errors import Failure, HeadwayError, UserError
from headway.inputs.strict_yaml import parse_yaml
from headway.link import Client, read_key
from headway_plugins.bundling.live import store
from headway_plugins.bundling.live.manager import load_handler, serve
from headway_plugins.bundling.live.messages import Cancel
from headway_plugins.bundling.live.place import Place, all_of, find, root
from headway_plugins.bundling.live.specification import LAUNCHERS, Specification
from headway_plugins.bundling.live.state import BundleReport, State
from headway_plugins.bundling.live.worker import everywhere, work
from headway_plugins.bundling.model import progress

#: Bundles of a user that are not done yet: each is several jobs in the queue.
_MOST = 4
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)(?:([kmgt])i?)?b?")
#: Bytes of a process.
_LARGEST = 2**50
#: How long a manager may take to begin, and to have the original request submitted, seconds.
_BEGINS = 60.0
#: The batch system's commands by which it is recognised.
_SUBMITS = (("slurm", "sbatch"), ("lsf", "bsub"), ("pbs", "qsub"))


class _Size(click.ParamType):
    """``500m``, ``2g``, ``1.5GiB``, ``4096`` (bytes): powers of 1024, as bytes above zero."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(value.strip().lower())
        size = int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " ")) if found else 0
        if not 0 < size < _LARGEST:
            self.fail(f"expected a size such as 500m or 2g, found {value!r}", param, ctx)
        return size


@click.group("bundle")
def command() -> None:
    """Start a large job early on what is free, and let it grow: elastic job bundling, as a user."""


@command.command(
    "submit",
    epilog=examples(
        "headway bundle submit --processors 512 --time 8h -- mpirun ./app",
        "headway bundle submit --processors 64 --time 2h --set signal=USR2 -- ./worker --resume",
    ),
)
@click.option("--processors", "-n", type=click.IntRange(2, 1_000_000), required=True,
              help="Processes of the application, and the processors of its original request.")  # fmt: skip
@click.option("--time", "-t", "walltime", type=DURATION, required=True,
              help="Runtime on that many processors, such as 8h.")  # fmt: skip
@click.option(
    "--queue", "-q", default="", help="The queue or partition. Default: the batch system's default."
)
@click.option("--account", default="", help="The account that is charged.")
@click.option(
    "--system", default="", help="slurm, pbs or lsf. Default: the system whose commands are installed here."
)
@click.option("--option", "system_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the batch system's adapter, such as command_timeout=60.")  # fmt: skip
@click.option("--checkpoint", default="checkpoint-signal", show_default=True,
              help="The migration handler that saves the application.")  # fmt: skip
@click.option("--set", "handler_options", multiple=True, metavar="KEY=VALUE",
              help="An option of that handler, such as signal=USR2; values are YAML.")  # fmt: skip
@click.option("--launch", type=click.Choice(["auto", "each", "once"]), default="auto", show_default=True,
              help="each: headway runs the command for each process; once: the command starts the processes "
                   "itself.")  # fmt: skip
@click.option("--most", "omax", type=click.IntRange(1, 1024), default=8, show_default=True,
              help="The most processes on one processor.")  # fmt: skip
@click.option("--delta", type=FiniteRange(0.1, 100), default=1.0, show_default=True,
              help="Factor on the runtime where processes share processors.")  # fmt: skip
@click.option("--memory", type=_Size(), default=0, metavar="SIZE",
              help="Memory of a process, such as 2g; asked for with each processor.")  # fmt: skip
@click.option("--move", "migration", type=DURATION, default="2m", show_default=True,
              help="Longest time that a move of all processes takes.")  # fmt: skip
@click.option("--gain", "min_gain", type=DURATION, default="1s", show_default=True,
              help="Ask for further processors only if the end comes this much earlier.")  # fmt: skip
@click.option("--slack", type=FiniteRange(1, 10), default=1.05, show_default=True,
              help="Factor on the time limits of subjobs.")  # fmt: skip
@click.option("--every", "checkpoint_every", type=DURATION, default="30m", show_default=True,
              help="Time between two checkpoints while nothing moves.")  # fmt: skip
@click.option(
    "--poll",
    type=DURATION,
    default="15s",
    show_default=True,
    help="Time between two looks at the batch system.",
)
@click.option("--confirm", type=DURATION, default="1m", show_default=True,
              help="Cancel a subjob that has not started within this time.")  # fmt: skip
@click.option("--silence", type=DURATION, default="1m", show_default=True,
              help="Give up a subjob whose worker is silent for this time.")  # fmt: skip
@click.option("--listen", default="", metavar="HOST[:PORT]",
              help="Address at which workers find the manager. Default: this machine's name.")  # fmt: skip
@click.option("--socket", type=click.Path(path_type=Path), default=None,
              help="The socket of a running headway, whose plan gives the slots.")  # fmt: skip
@click.option("--pool", default="", help="The pool in that headway. Default: the pool with the queue's name.")
@click.option("--showbf", default="", metavar="COMMAND",
              help="Command of Maui or Moab that lists the free slots, such as 'showbf -c "
                   "batch'.")  # fmt: skip
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@printed_json
def submit(
    processors: int, walltime: float, queue: str, account: str, system: str,
    system_options: tuple[str, ...], checkpoint: str, handler_options: tuple[str, ...], launch: str,
    omax: int, delta: float, memory: int, migration: float, min_gain: float, slack: float,
    checkpoint_every: float, poll: float, confirm: float, silence: float, listen: str,
    socket: Path | None, pool: str, showbf: str, words: tuple[str, ...],
) -> None:  # fmt: skip
    """Submit COMMAND as a bundle, and start its manager.

    The command must be able to save itself (docs/operators/bundle.md).
    """
    base = root(os.environ)
    _pick_up(base)
    alive = [place.path.name for place in all_of(base) if _alive(place)]
    if len(alive) >= _MOST:
        raise UserError(f"expected at most {_MOST} bundles at a time, found {', '.join(alive)}")
    if walltime < 1:
        raise UserError("--time: expected a time of at least a second, found 0")
    windows = _words(showbf, "--showbf")
    if windows and socket is not None:
        raise UserError("--showbf: expected either --socket or --showbf, found both")
    system = system or _system()
    options = {**_pairs(system_options, "--option"), **({"queue": queue} if queue else {})}
    if system == "slurm" and os.environ.get("SLURM_CONF"):
        options.setdefault("slurm_conf", os.environ["SLURM_CONF"])
    side = load_user_side(system, options)
    directory = _directory()
    place = Place.make(base)
    manager: subprocess.Popen[bytes] | None = None
    try:
        given = _pairs(handler_options, "--set")
        if checkpoint in ("checkpoint-signal", "criu", "dmtcp"):
            given.setdefault("directory", str(place.images))
        if checkpoint == "criu":
            given.setdefault("finder", ["headway", "bundle", "first-process"])
        spec = Specification(
            id=place.path.name, user=getpass.getuser(), submitted=time.time(), processors=processors,
            walltime=walltime, command=_program(words), launch=_way(launch, words), directory=directory,
            environment=dict(os.environ), system=system, options={**options, "queue": side.queue},
            account=account, checkpoint=checkpoint, checkpoint_options=given, omax=omax, delta=delta,
            memory=memory, migration=migration, min_gain=min_gain, slack=slack,
            checkpoint_every=checkpoint_every, poll=max(0.2, poll), confirm=confirm,
            silence=max(1.0, silence), listen=listen,
            socket=str(socket.absolute()) if socket else "", pool=pool, showbf=windows,
            program=_headway(),
        )  # fmt: skip
        load_handler(spec)
        place.specify(spec)
        manager = _spawn(place)
        first = _begin(place, manager)
    except BaseException:
        _withdraw(place, manager)
        raise
    if not first:
        raise Failure(
            f"bundle {spec.id}: the original request is not in the queue after {_BEGINS:g} s: "
            f"{_last_word(place)}. Its manager keeps trying; `headway bundle cancel {spec.id}` ends it"
        )
    say(f"bundle {spec.id}: job {first} holds its place in the queue ({side.queue})")
    say(f"headway bundle status {spec.id}")


@command.command("status", epilog=examples("headway bundle status", "headway bundle status b01234567"))
@click.argument("bundle", required=False)
@json_option("headway_plugins.bundling.live.state:Reports", "Print all that is known as JSON.")
def status(bundle: str | None, as_json: bool) -> None:
    """Tell how bundles are. A bundle without a manager gets one."""
    base = root(os.environ)
    picked = _pick_up(base)
    places = [find(base, bundle)] if bundle else all_of(base)
    if as_json:
        say_json({place.path.name: _known(place) for place in places})
        return
    if not places:
        say(f"no bundles in {base}")
    for place in places:
        try:
            _show(place, place.path.name in picked, details=bool(bundle))
        except Failure as error:
            if bundle:
                raise
            say(f"{place.path.name}: {error}", style="yellow")


@command.command("cancel", epilog=examples("headway bundle cancel b01234567"))
@click.argument("bundle")
@printed_json
def cancel(bundle: str) -> None:
    """End a bundle and all its jobs."""
    base = root(os.environ)
    place = find(base, bundle)
    if not _unfinished(place):
        raise UserError(f"bundle {bundle}: done already")
    _pick_up(base)
    _ask_manager(place, Cancel())
    say(f"bundle {bundle}: ending")


@command.command("resume", epilog=examples("headway bundle resume"))
@printed_json
def resume() -> None:
    """Start the managers of bundles that have none, after a restart of this machine."""
    picked = _pick_up(root(os.environ))
    say(f"picked up: {', '.join(picked)}" if picked else "every bundle that is not done has its manager")


@command.command("wait", epilog=examples("headway bundle wait b01234567"))
@click.argument("bundle")
def wait(bundle: str) -> None:
    """Wait for a bundle's end; the exit code is the application's."""
    base = root(os.environ)
    place = find(base, bundle)
    looked = time.monotonic()
    _pick_up(base)
    while (result := place.result()) is None:
        time.sleep(1.0)
        if time.monotonic() > looked + 30.0:
            looked = time.monotonic()
            _pick_up(base)
    say(f"bundle {bundle}: {result.message}")
    sys.exit(result.exit_code)


@command.command("manage", hidden=True)
@click.argument("directory", type=click.Path(path_type=Path))
def manage(directory: Path) -> None:
    """Be a bundle's manager: `submit` and `resume` start it."""
    sys.exit(serve(Place(directory), _log))


@command.command("worker", hidden=True)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--here", is_flag=True, help="On this node alone.")
def worker(directory: Path, here: bool) -> None:
    """Be a worker of a bundle, in a job of the batch system."""
    place = Place(directory)
    place.check()
    spec = place.specification()
    side = load_user_side(spec.system, spec.options)
    allocation = side.allocation(os.environ)
    if allocation is None:
        raise UserError(f"headway bundle worker: expected to run in a job of {spec.system}, found none")
    if not here and allocation.others:
        argv = (spec.program, "bundle", "worker", "--here", str(place.path))
        sys.exit(everywhere(argv, side.elsewhere(argv, allocation, os.environ), _log))
    sys.exit(work(place, allocation, _log))


@command.command("first-process", hidden=True)
@click.option("--job", "bundle", required=True)
@click.option("--user", default="")
def first_process(bundle: str, user: str) -> None:
    """The number of the first process of a bundle's application on this node, for tools that dump it."""
    import psutil

    found = [
        process.pid
        for process in psutil.process_iter()
        if _belongs(process, bundle) and not _belongs(process.parent(), bundle)
    ]
    if len(found) != 1:
        raise Failure(f"expected a single first process of bundle {bundle} on this node, found {len(found)}")
    click.echo(str(found[0]))


def _belongs(process: Any, bundle: str) -> bool:
    import psutil

    try:
        return process is not None and process.environ().get("HEADWAY_BUNDLE") == bundle
    except (psutil.Error, OSError):
        return False


# ---------------------------------------------------------------------- submitting


def _pairs(words: Sequence[str], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise UserError(f"{where}: expected KEY=VALUE, found {word[:60]!r}")
        try:
            found[key] = parse_yaml(value, where)
        except UserError as error:
            raise UserError(
                f"{where} {key}: expected a value as YAML has it, found {value[:60]!r}"
            ) from error
    return found


def _system() -> str:
    found = [system for system, program in _SUBMITS if shutil.which(program) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(
            f"--system: expected one of {', '.join(found)}, whose commands are all installed here; found no "
            "such option"
        )
    raise UserError(
        "--system: found none of the commands sbatch, bsub, qsub; expected slurm, lsf or pbs to be installed"
    )


def _words(text: str, where: str) -> tuple[str, ...]:
    """A command in one word, as a shell would take it apart; no shell sees it."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"{where}: expected a command, found {text[:60]!r}: {error}") from error
    return _program(words, where) if words else ()


def _program(words: tuple[str, ...], where: str = "the command") -> tuple[str, ...]:
    """The command, whose program is there and is named by its absolute path."""
    path = shutil.which(words[0])
    if path is None:
        raise UserError(f"{where} {words[0]!r}: expected a program in PATH or a path to one, found none")
    return (os.path.abspath(path), *words[1:])


def _way(launch: str, words: tuple[str, ...]) -> str:
    if launch != "auto":
        return launch
    return "once" if Path(words[0]).name in LAUNCHERS else "each"


def _headway() -> str:
    """The program that runs managers and workers: the program that was called, else the interpreter's."""
    called = shutil.which(sys.argv[0])
    if called is not None and Path(called).name == "headway":
        return os.path.abspath(called)
    path = Path(sys.executable).with_name("headway")
    if not os.access(path, os.X_OK):
        raise Failure(f"{path}: expected the program headway beside its interpreter")
    return str(path)


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise UserError(
            f"the current directory: expected an existing directory, found {error.strerror}"
        ) from error


def _begin(place: Place, process: subprocess.Popen[bytes]) -> str:
    """Wait until the original request is in the queue; its id, "" if that takes too long."""
    end = time.monotonic() + _BEGINS
    while time.monotonic() < end:
        state = store.read(place.database)
        first = state.placeholder if state is not None else None
        if first is not None and first.job:
            return first.job
        if state is not None and state.status in ("ending", "done"):
            process.wait()
            raise Failure(f"the bundle was not taken: {state.message}")
        if process.poll() is not None:
            raise Failure(f"the manager ended: {_last_word(place)}")
        time.sleep(0.1)
    return ""


def _withdraw(place: Place, manager: subprocess.Popen[bytes] | None) -> None:
    """A submission came to nothing, or was interrupted: nothing is left of it, unless jobs are there."""
    if manager is not None:
        manager.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            manager.wait(_BEGINS)
    with contextlib.suppress(Failure):
        state = store.read(place.database)
        there = [one for one in state.subjobs if one.state != "ended"] if state is not None else []
        if state is None or state.status == "done" or not there:
            shutil.rmtree(place.path, ignore_errors=True)
        else:
            name = place.path.name
            say(f"bundle {name}: a job of it may be in the queue; headway bundle cancel {name} ends it")


def _spawn(place: Place) -> subprocess.Popen[bytes]:
    """A manager that outlives this command."""
    try:
        with place.log.open("ab") as log:
            return subprocess.Popen(
                [place.specification().program, "bundle", "manage", str(place.path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            )  # fmt: skip
    except OSError as error:
        raise Failure(f"{error.filename}: its manager cannot be started: {error.strerror}") from error


def _last_word(place: Place) -> str:
    try:
        lines = place.log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it said nothing"


def _log(text: str) -> None:
    # A full disk is no reason to leave the bundle alone.
    with contextlib.suppress(OSError):
        click.echo(f"{wall_clock(time.time())} {text}", err=True)


# ---------------------------------------------------------------------- looking after


def _unfinished(place: Place) -> bool:
    state = store.read(place.database)
    return state is None or state.status != "done"


def _alive(place: Place) -> bool:
    try:
        return _unfinished(place)
    except Failure:
        # It cannot be read, so it runs nothing.
        return False


def _pick_up(base: Path) -> list[str]:
    """Start the managers of bundles that have none. A broken bundle does not keep back the other bundles."""
    picked = []
    for place in all_of(base):
        name = place.path.name
        try:
            if not place.database.is_file():
                if time.time() > place.made + _BEGINS:
                    # The process that was to submit it was killed before it had anything to submit.
                    shutil.rmtree(place.path, ignore_errors=True)
                continue
            if not _unfinished(place) or store.managed(place.database):
                continue
            place.check()
            process = _spawn(place)
            if _holds(place, process):
                picked.append(name)
            else:
                say(f"bundle {name}: its manager was gone, and a new one ended: {_last_word(place)}",
                    style="yellow")  # fmt: skip
        except HeadwayError as error:
            say(f"bundle {name}: {error}", style="yellow")
    return picked


def _holds(place: Place, manager: subprocess.Popen[bytes]) -> bool:
    """Whether this manager, or another manager, looks after the bundle."""
    end = time.monotonic() + _BEGINS
    while time.monotonic() < end and not store.managed(place.database):
        if manager.poll() is not None:
            # It may have brought the bundle to its end already.
            return not _unfinished(place)
        time.sleep(0.1)
    return True


def _ask_manager(place: Place, message: Any) -> None:
    """Tell it something; it may just be beginning."""
    end = time.monotonic() + _BEGINS
    while True:
        try:
            client = Client(place.address, read_key(place.key), peer="manager")
            client.ask(msgspec.to_builtins(message))
            client.close()
            return
        except Failure as error:
            if time.monotonic() > end:
                raise Failure(f"{error}; the last line of {place.log}: {_last_word(place)}") from error
            time.sleep(0.5)


def _known(place: Place) -> BundleReport:
    try:
        state = store.read(place.database) or State()
        result, spec = place.result(), place.specification()
    except Failure as error:
        return BundleReport(error=str(error))
    return BundleReport(
        msgspec.to_builtins(state),
        _share(spec, state),
        store.managed(place.database),
        msgspec.to_builtins(result) if result else None,
    )


def _share(spec: Specification, state: State) -> float:
    """What is done, as the plan has it."""
    if state.exit_code == 0:
        return 1.0
    if state.halted or not state.intervals:
        return state.saved
    return min(1.0, state.base + progress(spec.model, state.intervals, time.time()))


def _show(place: Place, picked: bool, *, details: bool) -> None:
    from rich.table import Table

    spec = place.specification()
    state = store.read(place.database) or State()
    has = [one for one in state.subjobs if one.number in state.members and one.state == "ready"]
    q = sum(one.member.processors for one in has)
    text = f"{spec.id}: {state.status}, {_share(spec, state):.0%} done"
    if q and state.status in ("running", "moving"):
        text += f", {spec.processors} processes on {q} processors"
        if state.completion < float("inf"):
            text += f", to be complete at {wall_clock(state.completion)}"
    if state.exit_code is not None:
        text += f", exit code {state.exit_code}: {state.message}"
    say(text)
    if picked:
        say("  its manager was gone; a new manager has started", style="yellow")
    if not details:
        return
    say(f"  {' '.join(spec.command)}; in {place.path}; {state.migrations} moves")
    table = Table("subjob", "job", "processors", "state", "limit", "nodes")
    for one in state.subjobs:
        limit = wall_clock(one.end) if one.end is not None else f"{one.walltime:.0f} s"
        nodes = ", ".join(node for node, _ in one.placement)
        name = "original" if one.number == 0 else str(one.number)
        shown = f"{one.state} ({one.reason})" if one.reason else one.state
        table.add_row(name, one.job, str(one.processors), shown, limit, nodes)
    console().print(table)
    for at, said in state.notes[-15:]:
        say(f"  {wall_clock(at)} {said}")
