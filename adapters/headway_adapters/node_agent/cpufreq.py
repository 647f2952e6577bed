"""The clock of a node's processors, through the kernel's cpufreq files.

The kernel groups processors that share a clock in a *policy*; setting one sets all of it. A job's
frequency is set as the upper limit of its processors' policies (``scaling_max_freq``), so that an
idle processor may still clock lower; where the governor is ``userspace`` the speed itself is set as
well (``scaling_setspeed``). The governor is never changed: which one runs is the site's affair.

Decisions. A frequency between two levels becomes the lower one: a power cap must hold. One below
the lowest level becomes the lowest. A lower limit above the new upper limit is lowered with it, and
goes back up to what it was, as far as the new upper limit allows, at the next change.

What was changed is kept in a state file, written before the change, so that :meth:`Clock.reset` gives
back what was there before the first change. What was changed from outside since is left alone. The
state of an earlier boot is forgotten: the boot has undone it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from headway.errors import Failure, UserError
from headway.report.atomic import writing
from headway_adapters.node_agent import sysfs

CPUS = Path("devices/system/cpu")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: How long another agent's change is waited for, seconds.
_LOCK_PATIENCE = 10.0

MAX, MIN, SPEED, GOVERNOR = "scaling_max_freq", "scaling_min_freq", "scaling_setspeed", "scaling_governor"


class CpuClock(msgspec.Struct, frozen=True):
    """One processor's clock, hertz; None where the node does not say."""

    cpu: int
    frequency: float | None = None
    least: float | None = None
    most: float | None = None
    governor: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """Processors that share a clock, and what the kernel says of them. Hertz."""

    #: The policy is known by its first processor.
    first: int
    cpus: tuple[int, ...]
    path: Path
    #: The levels, highest first; empty where every frequency between the hardware's limits will do.
    levels: tuple[float, ...]
    hardware_least: float
    hardware_most: float

    def level(self, frequency: float) -> float:
        """What the policy can do that is nearest to ``frequency`` without being faster."""
        if self.levels:
            return next((one for one in self.levels if one <= frequency), self.levels[-1])
        return min(max(frequency, self.hardware_least), self.hardware_most)


class Change(msgspec.Struct, frozen=True):
    """A file that was written (or would have been)."""

    cpus: tuple[int, ...]
    file: str
    before: str
    after: str


class _Kept(msgspec.Struct):
    """What a policy was like before the first change, and the job for which it was changed last."""

    before: dict[str, str] = {}
    #: Values that are ours: what we meant to write, and what the kernel showed after that.
    ours: dict[str, list[str]] = {}
    job: str = ""


class _State(msgspec.Struct):
    boot: str
    policies: dict[int, _Kept] = {}


class Clock:
    """The clocks of one node."""

    def __init__(
        self,
        root: Path,
        state: Path,
        *,
        boot_id: str | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``root``: what is ``/sys`` on a real node. ``state``: where changes are remembered.

        ``note`` is told, in a sentence, what a person should know and is no error.
        """
        self._cpus = root / CPUS
        self._state = state
        self._boot = boot_id if boot_id is not None else (sysfs.word(_BOOT) or "")
        self._note = note

    # ------------------------------------------------------------------ reading

    def cpus(self) -> tuple[int, ...]:
        """The processors that are online. Raises :class:`Failure` where there is no such tree."""
        online = sysfs.word(self._cpus / "online")
        if online is not None:
            try:
                return sysfs.cpu_list(online)
            except ValueError as error:
                raise Failure(f"{self._cpus / 'online'}: expected a list of cpus: {error}") from None
        found = sorted(int(p.name[3:]) for p in self._cpus.glob("cpu[0-9]*") if p.name[3:].isdecimal())
        if not found:
            raise Failure(f"{self._cpus}: no cpus are listed there; is --sysfs right?")
        return tuple(found)

    def has_cpufreq(self) -> bool:
        """Whether any processor's clock can be read here."""
        return any((self._cpus / f"cpu{cpu}" / "cpufreq").is_dir() for cpu in self.cpus())

    def read(self) -> list[CpuClock]:
        """Every processor's clock; frequencies are None where there is no cpufreq."""
        return [self._clock(cpu) for cpu in self.cpus()]

    def _clock(self, cpu: int) -> CpuClock:
        path = self._cpus / f"cpu{cpu}" / "cpufreq"
        now = _hertz(path / "scaling_cur_freq")
        return CpuClock(
            cpu=cpu,
            frequency=now if now is not None else _hertz(path / "cpuinfo_cur_freq"),
            least=_hertz(path / MIN),
            most=_hertz(path / MAX),
            governor=sysfs.word(path / GOVERNOR),
        )

    def policies(self, cpus: Iterable[int]) -> list[Policy]:
        """The policies that rule these processors.

        Raises :class:`UserError` for a processor that is not there, :class:`Failure` where the
        kernel offers no way to set its clock.
        """
        there = self.cpus()
        found: dict[Path, Policy] = {}
        for cpu in sorted(set(cpus)):
            if cpu not in there:
                listed = f"{there[0]}-{there[-1]}" if len(there) > 1 else str(there[0])
                raise UserError(f"cpu {cpu}: this node has no such cpu online. Online: {listed}.")
            path = self._cpus / f"cpu{cpu}" / "cpufreq"
            if not path.is_dir():
                raise Failure(
                    f"{path}: not there: the kernel offers no control of this cpu's clock "
                    "(no cpufreq driver, as in most virtual machines)"
                )
            real = path.resolve()
            if real not in found:
                found[real] = self._policy(cpu, path)
        return list(found.values())

    def _policy(self, cpu: int, path: Path) -> Policy:
        shared = sysfs.word(path / "affected_cpus") or sysfs.word(path / "related_cpus") or str(cpu)
        try:
            cpus = sysfs.cpu_list(shared)
        except ValueError as error:
            raise Failure(f"{path / 'affected_cpus'}: expected a list of cpus: {error}") from None
        least, most = (sysfs.read_number(path / f"cpuinfo_{end}_freq") * 1e3 for end in ("min", "max"))
        words = (sysfs.word(path / "scaling_available_frequencies") or "").split()
        levels = sorted((int(word) * 1e3 for word in words if word.isdecimal()), reverse=True)
        return Policy(
            first=min(cpus, default=cpu),
            cpus=cpus or (cpu,),
            path=path,
            levels=tuple(levels),
            hardware_least=least,
            hardware_most=most,
        )

    # ------------------------------------------------------------------ writing

    def set_frequency(
        self, cpus: Sequence[int], frequency: float, *, job: str = "", dry_run: bool = False
    ) -> list[Change]:
        """Limit these processors to ``frequency`` hertz, or to the level below it.

        ``job`` is remembered as the job for which this was done. Raises :class:`UserError` and
        :class:`Failure` as :meth:`policies` does, and :class:`Failure` when a file cannot be
        written; what was written until then is remembered and :meth:`reset` gives it back.
        """
        if not cpus:
            raise UserError("expected at least one cpu, found none")
        policies = self.policies(cpus)
        wanted = set(cpus)
        for policy in policies:
            level = policy.level(frequency)
            if round(level) != round(frequency):
                self._note(
                    f"cpus {_list(policy.cpus)}: {mhz(frequency)} is not a level of these cpus; "
                    f"{mhz(level)} is used"
                )
            if others := [cpu for cpu in policy.cpus if cpu not in wanted]:
                self._note(f"cpus {_list(others)} share their clock with {_list(wanted)} and change, too")
        if dry_run:
            return [c for policy in policies for c in self._plan(policy, frequency, self._load())]
        done: list[Change] = []
        with self._locked():
            state = self._load()
            for policy in policies:
                changes = self._plan(policy, frequency, state)
                kept = state.policies.setdefault(policy.first, _Kept())
                for change in changes:
                    kept.before.setdefault(change.file, change.before)
                    kept.ours.setdefault(change.file, []).append(change.after)
                kept.job = job
                self._save(state)
                for change in changes:
                    path = policy.path / change.file
                    sysfs.write(path, change.after)
                    shown = sysfs.read(path)
                    if shown != change.after:
                        self._note(f"{path}: the kernel set {shown} kHz instead of {change.after} kHz")
                        kept.ours[change.file].append(shown)
                        self._save(state)
                    kept.ours[change.file] = [shown]
                    done.append(msgspec.structs.replace(change, after=shown))
                self._save(state)
        return done

    def _plan(self, policy: Policy, frequency: float, state: _State) -> list[Change]:
        """The files to write, in an order in which the lower limit never passes the upper one."""
        level = round(policy.level(frequency) / 1e3)
        kept = state.policies.get(policy.first)
        most = sysfs.read_number(policy.path / MAX)
        least = sysfs.read_number(policy.path / MIN)
        first_least = int(kept.before.get(MIN, least)) if kept is not None else least
        limits = [(MAX, most, level), (MIN, least, min(first_least, level))]
        if level < least:
            limits.reverse()
        changes = [
            Change(policy.cpus, file, str(before), str(after))
            for file, before, after in limits
            if before != after
        ]
        if sysfs.word(policy.path / GOVERNOR) == "userspace":
            speed = sysfs.read(policy.path / SPEED)
            if speed != str(level):
                changes.append(Change(policy.cpus, SPEED, speed, str(level)))
        return changes

    def reset(self, *, job: str | None = None, dry_run: bool = False) -> list[Change]:
        """Give back what was changed: all of it, or what was last changed for ``job``."""
        if not self._state.exists():
            return []
        done: list[Change] = []
        with contextlib.nullcontext() if dry_run else self._locked():
            state = self._load()
            for first, kept in sorted(state.policies.items()):
                if job is not None and kept.job != job:
                    continue
                path = self._cpus / f"cpu{first}" / "cpufreq"
                if not path.is_dir():
                    self._note(f"{path}: the file is gone, so cpu {first} keeps its limit")
                else:
                    done += self._give_back(first, path, kept, dry_run)
                if not dry_run:
                    del state.policies[first]
                    self._save(state)
        return done

    def _give_back(self, first: int, path: Path, kept: _Kept, dry_run: bool) -> list[Change]:
        done: list[Change] = []
        shared = sysfs.word(path / "affected_cpus")
        cpus = sysfs.cpu_list(shared) if shared else (first,)
        # In this order: the lower limit was never raised above what it was, so it always fits.
        for file in (MAX, MIN, SPEED):
            if file not in kept.before:
                continue
            shown = sysfs.read(path / file)
            if file == SPEED and sysfs.word(path / GOVERNOR) != "userspace":
                continue  # another governor has its own idea of the speed
            if shown == kept.before[file]:
                continue
            if shown not in kept.ours.get(file, ()):
                self._note(
                    f"{path / file}: found {shown}, expected the value that was written; another "
                    "program changed it, so it is left as it is"
                )
                continue
            if not dry_run:
                sysfs.write(path / file, kept.before[file])
            done.append(Change(cpus, file, shown, kept.before[file]))
        return done

    # ------------------------------------------------------------------ the state file

    def _load(self) -> _State:
        try:
            text = self._state.read_bytes()
        except FileNotFoundError:
            return _State(self._boot)
        except OSError as error:
            raise Failure(f"{self._state}: cannot be read: {error.strerror or error}") from error
        try:
            state = msgspec.json.decode(text, type=_State)
        except msgspec.DecodeError as error:
            raise Failure(
                f"{self._state}: expected the state of a node agent: {error}. "
                "Set the limits by hand, then remove the file."
            ) from error
        for kept in state.policies.values():
            if not all(file in (MAX, MIN, SPEED) and v.isdecimal() for file, v in kept.before.items()):
                raise Failure(f"{self._state}: the file names files or values that no node agent writes")
        return state if state.boot == self._boot else _State(self._boot)

    def _save(self, state: _State) -> None:
        if state.policies:
            with writing(self._state) as stream:
                stream.write(msgspec.json.encode(state).decode())
        else:
            self._state.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One agent at a time changes clocks: two jobs may start on a node at once."""
        lock = self._state.with_name(self._state.name + ".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Failure(f"{lock}: cannot be opened: {error.strerror or error}") from error
        try:
            until = time.monotonic() + _LOCK_PATIENCE
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise Failure(f"{lock}: another node agent has held it too long") from None
                    time.sleep(0.05)
            yield
        finally:
            os.close(descriptor)


def mhz(frequency: float) -> str:
    """Hertz for a person."""
    return f"{frequency / 1e6:.0f} MHz"


def _hertz(path: Path) -> float | None:
    khz = sysfs.number(path)
    return None if khz is None else khz * 1e3


def _list(cpus: Iterable[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
