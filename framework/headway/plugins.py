"""Plugins: found, configured, ordered, called.

Plugins are found by entry point (group ``headway.plugins``) and in files (``--plugin FILE.py``).
pluggy holds them and checks their hooks against :mod:`headway.hookspecs`; :class:`HookCaller` then
calls the hooks that a cycle needs without pluggy's own overhead, in the configured order, timing
each plugin and catching what it raises.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import pluggy
import pydantic

from headway.decisions import Decision
from headway.errors import Mistakes, UserError, nearest
from headway.events import Event
from headway.extras import extra_of, how_to_install
from headway.hook_names import check_hooks, hook_names, hooks_of, marked, unmarked
from headway.hookspecs import PROJECT, HookSpecs
from headway.inputs import InputFiles
from headway.model import ClusterDescription

GROUP = "headway.plugins"
PRESETS = "headway.presets"


@dataclass(frozen=True)
class PluginConfig:
    """One enabled plugin: its name, its options, and where that was written."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Such as ``site.yaml: plugins[2]``; leads error messages.
    where: str = "plugins"
    #: The folder of the file where that was written. Options find it as ``beside`` in pydantic's
    #: validation context, so that files that they name can be relative to it.
    beside: Path | None = None


@dataclass(frozen=True)
class Preset:
    """Several plugins under one name (entry point group ``headway.presets``).

    It is enabled like a plugin; options that are given with it go to its first plugin.
    """

    summary: str
    #: Names and options, in order.
    plugins: tuple[tuple[str, Mapping[str, Any]], ...]
    paper: str = ""


@dataclass(frozen=True)
class PluginInfo:
    """What ``headway plugins`` tells about an installed plugin."""

    name: str
    summary: str
    documentation: str
    paper: str
    hooks: tuple[str, ...]
    needs: tuple[str, ...]
    options: type[pydantic.BaseModel] | None
    source: str


@dataclass
class Problem:
    """A plugin that raised: for the log."""

    plugin: str
    hook: str
    message: str
    #: "" for what it wanted and could not have.
    traceback: str
    #: Where it raised, as file:line; "" if it did not.
    place: str = ""


class Catalogue:
    """Every plugin class that is installed or was named as a file."""

    def __init__(self, files: Iterable[str | Path] = ()) -> None:
        self._entries: dict[str, EntryPoint] = {e.name: e for e in entry_points(group=GROUP)}
        self._presets: dict[str, EntryPoint] = {e.name: e for e in entry_points(group=PRESETS)}
        self._classes: dict[str, type] = {}
        self._sources: dict[str, str] = {n: e.value for n, e in self._entries.items()}
        #: Names of the plugins that came from files: they are enabled without being configured.
        self.from_files: list[str] = []
        for path in files:
            self._load_file(Path(path))

    def names(self) -> list[str]:
        return sorted({*self._entries, *self._classes})

    def get(self, name: str, where: str = "plugins") -> type:
        """The class of a plugin; :class:`UserError` with the nearest names if there is none."""
        if name in self._classes:
            return self._classes[name]
        entry = self._entries.get(name)
        if entry is None:
            known = [*self.names(), *self._presets]
            raise UserError(f"{where}: no plugin is called {name!r}.{nearest(name, known)}")
        try:
            found = entry.load()
        except Exception as error:
            extra = extra_of(error)
            why = f"{error}: {how_to_install(extra)}" if extra else str(error)
            raise UserError(f"{where}: plugin {name!r} ({entry.value}) does not load: {why}") from error
        self._classes[name] = found
        return found

    def loadable(self) -> dict[str, type]:
        """The classes of the plugins that load, by name; :meth:`not_loadable` tells about the others."""
        return {name: found for name, found in self._tried().items() if isinstance(found, type)}

    def not_loadable(self) -> dict[str, str]:
        """Plugins that do not load here, by name, and why: a library of an extra is not installed, or
        another package that brings plugins is broken. Neither costs the other plugins anything."""
        return {name: str(found) for name, found in self._tried().items() if isinstance(found, UserError)}

    def _tried(self) -> dict[str, type | UserError]:
        tried: dict[str, type | UserError] = {}
        for name in self.names():
            try:
                tried[name] = self.get(name)
            except UserError as error:
                tried[name] = error
        return tried

    def registered(self, hook: str) -> dict[str, Any]:
        """What the plugins that load and have this hook register by name; each is made with its defaults."""
        found: dict[str, Any] = {}
        for kind in self.loadable().values():
            if hook in hooks_of(kind):
                found.update(getattr(kind(), hook)() or {})
        return found

    def presets(self) -> dict[str, Preset]:
        """Every installed preset that has no plugin's name."""
        return {name: self._preset(name) for name in sorted(self._presets) if not self._is_plugin(name)}

    def expanded(self, configured: Iterable[PluginConfig]) -> list[PluginConfig]:
        """Presets replaced by their plugins."""
        found = []
        for config in configured:
            if config.name not in self._presets or self._is_plugin(config.name):
                found.append(config)
                continue
            options = config.options
            for name, own in self._preset(config.name, config.where).plugins:
                place = f"{config.where}: {config.name}"
                found.append(PluginConfig(name, {**own, **options}, place, config.beside))
                options = {}
        return found

    def _is_plugin(self, name: str) -> bool:
        return name in self._entries or name in self._classes

    def _preset(self, name: str, where: str = "plugins") -> Preset:
        entry = self._presets[name]
        try:
            found = entry.load()
        except Exception as error:
            raise UserError(f"{where}: preset {name!r} ({entry.value}) does not load: {error}") from error
        if not isinstance(found, Preset):
            raise UserError(f"{where}: preset {name!r} ({entry.value}): expected a Preset, found {found!r}")
        return found

    def enabled(self, configured: Iterable[PluginConfig]) -> list[PluginConfig]:
        """The plugins of files, then those of a configuration; with its options where it names both."""
        configured = self.expanded(configured)
        named = {config.name for config in configured}
        files = [PluginConfig(name, {}, "--plugin") for name in self.from_files if name not in named]
        return [*files, *configured]

    def gives(self, configured: Iterable[PluginConfig]) -> frozenset[type[Decision]]:
        """The decision types that a cluster can carry out with these plugins' help, if it takes help."""
        given: set[type[Decision]] = set()
        for config in self.expanded(configured):
            given.update(getattr(self.get(config.name, config.where), "gives", ()))
        return frozenset(given)

    def check_energy(
        self,
        configs: Iterable[PluginConfig],
        cluster: ClusterDescription,
        how: str = "energy: {profile: ...} in the configuration, or --energy",
    ) -> None:
        """Raise :class:`UserError` if a plugin needs an energy profile and the cluster has none; it says
        ``how`` to give one."""
        if cluster.energy is None:
            for config in self.expanded(configs):
                if getattr(self.get(config.name, config.where), "needs_energy", False):
                    raise UserError(
                        f"{config.where}: plugin {config.name!r} needs an energy profile ({how}), found none"
                    )

    def info(self, name: str) -> PluginInfo:
        """What a plugin says of itself."""
        cls = self.get(name)
        documentation = inspect.getdoc(sys.modules[cls.__module__]) or inspect.getdoc(cls) or ""
        summary = (inspect.getdoc(cls) or documentation or "").split("\n\n")[0].replace("\n", " ")
        return PluginInfo(
            name=name,
            summary=summary,
            documentation=documentation,
            paper=getattr(cls, "paper", ""),
            hooks=tuple(hooks_of(cls)),
            needs=tuple(kind.__name__ for kind in getattr(cls, "needs", ())),
            options=getattr(cls, "Options", None),
            source=self._sources.get(name, ""),
        )

    def _load_file(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"--plugin {path}: expected a Python file, found no such file")
        name = f"headway_plugin_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UserError(f"--plugin {path}: expected a Python file with the ending .py")
        module = importlib.util.module_from_spec(spec)
        before = sys.modules.get(name)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            # A daemon goes on with the plugin that it has.
            if before is not None:
                sys.modules[name] = before
            line = _line_in(error, path)
            raise UserError(
                f"--plugin {path}{line}: does not load: {type(error).__name__}: {error}"
            ) from error
        own = [cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__ == name]
        found = [cls for cls in own if marked(cls)]
        if not found:
            without = ", ".join(f"{cls.__name__}.{method}" for cls in own for method in unmarked(cls))
            there = f"{without} without @hookimpl" if without else "none"
            raise UserError(
                f"--plugin {path}: expected a class with hooks (@hookimpl methods), found {there}"
            )
        for cls in found:
            check_hooks(cls, f"--plugin {path}: class {cls.__name__!r}")
            label = getattr(cls, "name", path.stem if len(found) == 1 else cls.__name__.lower())
            self._classes[label] = cls
            self._sources[label] = str(path)
            self.from_files.append(label)


def _line_in(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f", line {error.lineno}"
    here = path.resolve()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == here]
    return f", line {frames[-1].lineno}" if frames else ""


#: pydantic's types of error -> what a person calls that which was expected.
_EXPECTED = {
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "too_short": "a longer list",
    "string_pattern_mismatch": "a text of another form",
}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def explain_validation(error: pydantic.ValidationError, where: str, model: type[pydantic.BaseModel]) -> str:
    """A pydantic error as one line each: place and key, what was expected, what was found."""
    lines = []
    for item in error.errors():
        # `[key]` is how pydantic says that the key itself is wrong.
        key = ""
        for part in (part for part in item["loc"] if part != "[key]"):
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
        place = f"{where}: {key}" if key else where
        found = item.get("input")
        if item["type"] == "extra_forbidden":
            parent = model
            for part in item["loc"][:-1]:
                written = {field.alias or name: field for name, field in parent.model_fields.items()}
                inner = written.get(str(part))
                annotation = inner.annotation if inner else None
                for candidate in (annotation, *get_args(annotation)):
                    if isinstance(candidate, type) and issubclass(candidate, pydantic.BaseModel):
                        parent = candidate
            known = [field.alias or name for name, field in parent.model_fields.items()]
            lines.append(f"{place}: unknown key.{nearest(str(item['loc'][-1]), known)}")
        elif item["type"] == "missing":
            lines.append(f"{place}: expected a value, found none")
        elif item["type"] == "invalid_key":
            lines.append(f"{place}: expected a text as key, found {item['loc'][-1]!r}")
        else:
            expected = _EXPECTED.get(item["type"], item["msg"])
            for prefix in ("Input should be ", "Value error, ", "expected "):
                expected = expected.removeprefix(prefix)
            # Our own validators say what they found where that is a part of the whole.
            told = item["type"] == "value_error" and ", found " in expected
            lines.append(f"{place}: expected {expected}" + ("" if told else f", found {_short(found)}"))
    return "\n".join(lines)


def make_plugin(cls: type, config: PluginConfig, files: InputFiles | None = None) -> Any:
    """An instance with validated options; :class:`UserError` names place, key, expected, found.

    ``files`` are those that options name, as the context of their validation has them."""
    options = options_of(cls, config, files)
    return _made(cls, config) if options is None else _made(cls, config, options)


def options_of(cls: type, config: PluginConfig, files: InputFiles | None = None) -> pydantic.BaseModel | None:
    """The validated options of :func:`make_plugin`; None for a class without any."""
    model: type[pydantic.BaseModel] | None = getattr(cls, "Options", None)
    if model is None:
        if config.options:
            raise UserError(
                f"{config.where}: plugin {config.name!r} has no options, found {dict(config.options)}"
            )
        return None
    place = f"{config.where}: {config.name}"
    if model.model_config.get("extra") is None:
        # pydantic would ignore them, and a misspelt option would be its default without a word.
        known = {name: field.alias or name for name, field in model.model_fields.items()}
        for key in config.options:
            if key not in known and key not in known.values():
                raise UserError(f"{place}: {key}: unknown key.{nearest(str(key), known)}")
    try:
        options = model.model_validate(
            dict(config.options), context={"beside": config.beside, "files": files}
        )
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, place, model)) from error
    except OSError as error:
        # Of a file that an option names.
        raise UserError(f"{place}: {error.filename}: cannot be read: {error.strerror or error}") from error
    return options


def _made(cls: type, config: PluginConfig, *options: Any) -> Any:
    try:
        return cls(*options)
    except UserError:
        raise
    except Exception as error:
        problem = f"cannot be made: {type(error).__name__}: {error}"
        raise UserError(f"{config.where}: plugin {config.name!r} {problem}") from error


def _check_needs(kind: type, config: PluginConfig, capabilities: frozenset[type[Decision]]) -> None:
    missing = [need.__name__ for need in getattr(kind, "needs", ()) if need not in capabilities]
    if missing:
        can = ", ".join(sorted(c.__name__ for c in capabilities))
        raise UserError(
            f"{config.where}: plugin {config.name!r} needs {', '.join(missing)}, which the cluster's "
            f"adapter cannot carry out (it can: {can})"
        )


class Plugins:
    """The enabled plugins of one run, in order."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(PROJECT)
        self.manager.add_hookspecs(HookSpecs)
        self.by_name: dict[str, Any] = {}
        #: The files that options name: what a replay needs besides the configuration.
        self.files = InputFiles()

    @classmethod
    def load(
        cls,
        configs: Iterable[PluginConfig],
        catalogue: Catalogue,
        capabilities: frozenset[type[Decision]] | None,
        files: InputFiles | None = None,
    ) -> Plugins:
        """Make and register what the configuration enables; all mistakes in it are told at once.

        ``capabilities`` are those of the cluster's adapter; a plugin that needs more is refused
        with a message that names both. None: do not check. ``files``: those of a run that is repeated.
        """
        plugins = cls()
        plugins.files = files if files is not None else plugins.files
        mistakes = Mistakes()
        for config in catalogue.expanded(configs):
            with mistakes.noted():
                kind = catalogue.get(config.name, config.where)
                if capabilities is not None:
                    _check_needs(kind, config, capabilities)
                plugins.add(config.name, make_plugin(kind, config, plugins.files), config.where)
        mistakes.tell()
        return plugins

    @staticmethod
    def check_needs(
        configs: Iterable[PluginConfig], catalogue: Catalogue, capabilities: frozenset[type[Decision]]
    ) -> None:
        """Refuse a plugin that needs more than this, as :meth:`load` does; none is made."""
        for config in catalogue.expanded(configs):
            _check_needs(catalogue.get(config.name, config.where), config, capabilities)

    @property
    def need_policy(self) -> bool:
        """Whether one of them goes by the site's policy as the batch system has it."""
        return any(getattr(plugin, "needs_policy", False) for plugin in self.by_name.values())

    @property
    def need_lending(self) -> list[str]:
        """Those that need others to be able to have the processors of suspended jobs."""
        return [name for name, plugin in self.by_name.items() if getattr(plugin, "needs_lending", False)]

    @property
    def promise(self) -> bool:
        """Whether one of them promises something to jobs."""
        return any(getattr(plugin, "promises", False) for plugin in self.by_name.values())

    @property
    def job_words(self) -> frozenset[str]:
        """The attributes of jobs that their options name, which users can say."""
        return frozenset(
            word for plugin in self.by_name.values() for word in getattr(plugin, "job_words", ())
        )

    def handlers(self) -> list[Any]:
        """The migration handlers (hook ``migrate``), in configured order."""
        found = [function() for _, function in self.implementations("migrate")]
        return [handler for handler in found if handler is not None]

    def add(self, name: str, plugin: Any, where: str = "plugins") -> None:
        """Register an instance; it is asked after those that are there."""
        if name in self.by_name:
            raise UserError(f"{where}: plugin {name!r} is enabled twice")
        check_hooks(type(plugin), f"{where}: plugin {name!r}")
        try:
            self.manager.register(plugin, name=name)
        except pluggy.PluginValidationError as error:
            raise UserError(f"{where}: plugin {name!r}: {error}") from error
        if getattr(plugin, "promises", False) and not isinstance(getattr(plugin, "promised", None), int):
            raise UserError(
                f"{where}: plugin {name!r}: expected a number `promised`, which counts how often what it "
                f"promises has changed, found {getattr(plugin, 'promised', None) or 'none'}"
            )
        observes = getattr(plugin, "observes", None)
        if observes is not None and not _event_types(observes):
            raise UserError(
                f"{where}: plugin {name!r}: expected a tuple of events' types in `observes`, "
                f"found {observes!r}"
            )
        unused = getattr(plugin, "unused", ())
        if not isinstance(unused, tuple) or not set(hook_names()).issuperset(unused):
            raise UserError(
                f"{where}: plugin {name!r}: expected a tuple of hooks' names in `unused`, found {unused!r}"
            )
        self.by_name[name] = plugin

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """``(plugin name, function taking all the hook's arguments by position)`` in configured order."""
        caller = getattr(self.manager.hook, hook)
        wanted = caller.spec.argnames
        found = []
        order = {name: at for at, name in enumerate(self.by_name)}
        for impl in caller.get_hookimpls():
            if hook in getattr(impl.plugin, "unused", ()):
                continue
            function = impl.function
            taken = tuple(impl.argnames)
            if taken != tuple(wanted):
                function = _adapt(function, [wanted.index(a) for a in taken])
            found.append((impl.plugin_name, function))
        return sorted(found, key=lambda item: order.get(item[0], len(order)))


def _event_types(found: Any) -> bool:
    return isinstance(found, tuple) and all(isinstance(one, type) and issubclass(one, Event) for one in found)


def _adapt(function: Callable[..., Any], positions: list[int]) -> Callable[..., Any]:
    """Call ``function`` with the chosen ones of the hook's arguments."""

    def call(*args: Any) -> Any:
        return function(*[args[p] for p in positions])

    return call


class HookCaller:
    """Calls one hook over the plugins that implement it; knows who raised and who took how long."""

    def __init__(
        self,
        plugins: Plugins,
        hook: str,
        problems: list[Problem],
        seconds: dict[str, float],
        answered: set[str] | None = None,
    ) -> None:
        self.hook = hook
        self.implementations = plugins.implementations(hook)
        self._problems = problems
        #: Seconds spent in each plugin, over all hooks.
        self.seconds = seconds
        #: The plugins that answered this hook at least once.
        self.answered: set[str] = answered if answered is not None else set()
        for name, _ in self.implementations:
            seconds.setdefault(name, 0.0)

    def __bool__(self) -> bool:
        return bool(self.implementations)

    def leave_out(self, name: str) -> None:
        """This plugin is not called from now on."""
        self.implementations = [one for one in self.implementations if one[0] != name]

    def each(self, *args: Any) -> Iterator[tuple[str, Any]]:
        """``(plugin, answer)`` for every answer other than None; a plugin is called when its turn comes."""
        for name, function in self.implementations:
            answer = self.call(name, function, *args)
            if answer is not None:
                yield name, answer

    def first(self, *args: Any) -> Any:
        """The first answer other than None."""
        return next((answer for _, answer in self.each(*args)), None)

    def all(self, *args: Any) -> list[tuple[str, Any]]:
        """``(plugin, answer)`` for every answer other than None."""
        return list(self.each(*args))

    def call(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """One plugin's answer; None if it raised."""
        began = perf_counter()
        try:
            answer = function(*args)
        except Exception as error:
            if self.hook == "startup" and isinstance(error, UserError):
                raise
            self.failed(name, error)
            return None
        else:
            self.answered.add(name)
            return answer
        finally:
            self.seconds[name] += perf_counter() - began

    def failed(self, name: str, error: Exception) -> None:
        told = "".join(traceback.format_exception(error))
        message = f"{type(error).__name__}: {error}"
        self._problems.append(Problem(name, self.hook, message, told, _place_of(error)))


def _place_of(error: Exception) -> str:
    """Where an exception was raised, as file:line; "" if it was not raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
