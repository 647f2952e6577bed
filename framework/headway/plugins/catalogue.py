"""Plugins: found, configured, ordered, called.

Plugins are found by entry point (group ``headway.plugins``) and in files (``--plugin FILE.py``).
pluggy holds them and checks their hooks against :mod:`headway.hookspecs`; :class:`HookCaller` then
calls the hooks that a cycle needs without pluggy's own overhead, in the configured order, timing
each plugin and catching what it raises.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pydantic

from headway.decisions import OF_THE_ENGINE, Decision
from headway.errors import UserError, nearest
from headway.inputs import InputFiles
from headway.inputs.entry_points import entry_points
from headway.inputs.extras import extra_of, how_to_install
from headway.inputs.python_file import load_file, own_classes
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription
from headway.plugins.configured import PluginConfig, Preset
from headway.plugins.contract import check_attributes, name_of, options_model, traits_of
from headway.plugins.hook_names import check_hooks, hooks_of, marked, unmarked, warn_of_unmarked
from headway.plugins.old_names import old_names
from headway.plugins.traits import TraitError

GROUP = "headway.plugins"
PRESETS = "headway.presets"


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


class Catalogue:
    """Every plugin class that is installed, was named as a file, or was given."""

    def __init__(self, files: Iterable[str | Path] = (), classes: Iterable[type] = ()) -> None:
        """``classes``: plugins of the program that asks, under the names that :func:`called` gives them."""
        self._entries: dict[str, EntryPoint] = {e.name: e for e in entry_points(group=GROUP)}
        self._presets: dict[str, EntryPoint] = {e.name: e for e in entry_points(group=PRESETS)}
        self._classes: dict[str, type] = {}
        self._sources: dict[str, str] = {n: e.value for n, e in self._entries.items()}
        #: Names of the plugins that came from files: they are enabled without being configured.
        self.from_files: list[str] = []
        for path in files:
            self._load_file(Path(path))
        for cls in classes:
            self._add_class(cls)

    def names(self) -> list[str]:
        return sorted({*self._entries, *self._classes})

    def get(self, name: str, where: str = "plugins") -> type:
        """The class of a plugin; :class:`UserError` with the nearest names if there is none."""
        if name in self._classes:
            return self._classes[name]
        entry = self._entries.get(name)
        if entry is None:
            meant = nearest(name, [*self.names(), *self._presets], listed=False)
            raise UserError(
                f"{where}: no plugin is called {name!r}.{meant} `headway plugins` lists all. If its class "
                "is in a file, give that file: --plugin FILE.py"
            )
        try:
            found = entry.load()
        except Exception as error:
            extra = extra_of(error)
            why = f"{error}: {how_to_install(extra)}" if extra else str(error)
            raise UserError(f"{where}: plugin {name!r} ({entry.value}) does not load: {why}") from error
        self._classes[name] = found
        return found

    def loadable(self) -> dict[str, type]:
        """The classes of the plugins that load, by name; :meth:`not_loadable` tells about the rest."""
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

    def files(self) -> dict[str, str]:
        """The plugins that came from files, and the file of each."""
        return {name: self._sources[name] for name in self.from_files}

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
        """The plugins of files, then the plugins of a configuration. A plugin that is in both has the
        configuration's options."""
        configured = self.expanded(configured)
        named = {config.name for config in configured}
        files = [
            PluginConfig(name, {}, f"--plugin {self._sources[name]}")
            for name in self.from_files
            if name not in named
        ]
        return [*files, *configured]

    def gives(self, configured: Iterable[PluginConfig]) -> frozenset[type[Decision]]:
        """The decision types that a cluster can carry out with these plugins' help, if it takes help."""
        given: set[type[Decision]] = set()
        for config in self.expanded(configured):
            given.update(traits_of(self.get(config.name, config.where)).gives)
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
                if "energy" in traits_of(self.get(config.name, config.where)).requires:
                    raise UserError(
                        f"{config.where}: plugin {config.name!r} needs an energy profile ({how}), found none"
                    )

    def info(self, name: str) -> PluginInfo:
        """What a plugin says of itself."""
        cls = self.get(name)
        documentation = inspect.getdoc(sys.modules[cls.__module__]) or inspect.getdoc(cls) or ""
        traits = traits_of(cls)
        summary = (inspect.getdoc(cls) or documentation or "").split("\n\n")[0].replace("\n", " ")
        return PluginInfo(
            name=name,
            summary=summary,
            documentation=documentation,
            paper=traits.paper,
            hooks=tuple(hooks_of(cls)),
            needs=tuple(kind.__name__ for kind in traits.needs),
            options=options_model(cls),
            source=self._sources.get(name, ""),
        )

    def _load_file(self, path: Path) -> None:
        own = own_classes(load_file(path, "--plugin"))
        found = [cls for cls in own if marked(cls)]
        if not found:
            without = ", ".join(f"{cls.__name__}.{method}" for cls in own for method in unmarked(cls))
            there = f"{without} without @hookimpl" if without else "none"
            raise UserError(
                f"--plugin {path}: expected a class with hooks (@hookimpl methods), found {there}"
            )
        for cls in found:
            _check_class(cls, f"--plugin {path}")
            label = name_of(cls, path.stem if len(found) == 1 else called(cls))
            self._classes[label] = cls
            self._sources[label] = str(path)
            self.from_files.append(label)

    def _add_class(self, cls: type) -> None:
        label = called(cls)
        where = f"plugin class {cls.__name__}"
        if not marked(cls):
            without = ", ".join(unmarked(cls))
            there = f"{without} without @hookimpl" if without else "none"
            raise UserError(f"{where}: expected a class with hooks (@hookimpl methods), found {there}")
        if self._classes.get(label, cls) is not cls or label in self._entries or label in self._presets:
            raise UserError(
                f"{where}: another plugin is called {label!r}; give the class an attribute `name` of its own"
            )
        _check_class(cls, where)
        self._classes[label] = cls
        self._sources[label] = f"{cls.__module__}:{cls.__qualname__}"


def called(cls: type) -> str:
    """What configurations call a class that a program gives: its attribute ``name``, else the name of the
    class in small letters."""
    return name_of(cls, cls.__name__.lower())


def _check_class(cls: type, where: str) -> None:
    """Raise :class:`UserError`, led by ``where``, for hooks, attributes or traits that cannot be."""
    of = f"{where}: class {cls.__name__!r}"
    check_hooks(cls, of)
    check_attributes(cls, of)
    # Methods of 0.1 are served without the mark.
    warn_of_unmarked(cls, of, served=old_names(cls))
    try:
        traits_of(cls)
    except TraitError as error:
        raise UserError(f"{where}: {error}") from error


def make_plugin(cls: type, config: PluginConfig, files: InputFiles | None = None) -> Any:
    """An instance with validated options; :class:`UserError` names place, key, expected, found.

    ``files`` are the files that options name, as the context of their validation has them."""
    options = options_of(cls, config, files)
    return _made(cls, config) if options is None else _made(cls, config, options)


def options_of(cls: type, config: PluginConfig, files: InputFiles | None = None) -> pydantic.BaseModel | None:
    """The validated options of :func:`make_plugin`; None for a class without any."""
    model = options_model(cls)
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
    except TraitError as error:
        raise UserError(f"{config.where}: plugin {config.name!r}: {error}") from error
    except UserError:
        raise
    except Exception as error:
        problem = f"cannot be made: {type(error).__name__}: {error}"
        raise UserError(f"{config.where}: plugin {config.name!r} {problem}") from error


def check_needs_of(kind: type, config: PluginConfig, capabilities: frozenset[type[Decision]]) -> None:
    able = capabilities | OF_THE_ENGINE
    missing = [need.__name__ for need in traits_of(kind).needs if need not in able]
    if missing:
        can = ", ".join(sorted(c.__name__ for c in capabilities))
        raise UserError(
            f"{config.where}: plugin {config.name!r} needs {', '.join(missing)}, which the cluster's "
            f"adapter cannot carry out (it can: {can})"
        )
