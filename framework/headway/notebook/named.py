"""How a program names plugins and workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.errors import UserError, nearest
from headway.inputs.settings import setting_texts
from headway.plugins.catalogue import called
from headway.plugins.hook_names import marked
from headway.workload.samples import located

#: A plugin or preset: its name, a plugin class of the program, or one of these with its options.
Plugin = str | type | Mapping[str | type, Mapping[str, Any]]


@dataclass(frozen=True)
class Named:
    """Plugins as a command would name them, with what it could not say."""

    names: tuple[str, ...] = ()
    #: The program's own classes among them.
    classes: tuple[type, ...] = ()
    #: Of those that were given options, by name.
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def named(plugins: Iterable[Plugin], where: str) -> Named:
    """What the plugins are called. ``where`` leads the message of :class:`UserError` for something else, such
    as an object: each run makes its own, so that nothing of another run is in it."""
    names: list[str] = []
    classes: list[type] = []
    options: dict[str, Mapping[str, Any]] = {}
    for plugin in plugins:
        entries = plugin.items() if isinstance(plugin, Mapping) else [(plugin, None)]
        for one, given in entries:
            if not isinstance(one, str | type):
                raise UserError(
                    f"{where}: expected a plugin's name or class, or one with its options such as "
                    f"{{'window': {{'size': 5}}}}, found {_shown(one)}"
                )
            name = one if isinstance(one, str) else called(one)
            if isinstance(one, type) and one not in classes:
                classes.append(one)
            names.append(name)
            if given:
                options[name] = given
    return Named(tuple(names), tuple(classes), options)


def _shown(one: object) -> str:
    kind = type(one)
    return f"an object; give its class {kind.__name__}" if marked(kind) else repr(one)[:80]


def several(plugins: Plugin | Sequence[Plugin]) -> Sequence[Plugin]:
    """One plugin, or several, as several."""
    if isinstance(plugins, str | type | Mapping):
        return [plugins]
    return plugins


def source_of(name: str | Path, models: Callable[[], Iterable[str]], where: str) -> Path | None:
    """The file of a trace; None: it is a model's name. A file that is there comes before a model; ``models``
    is asked for the models' names only where there is none.

    Raises :class:`UserError`, led by ``where``, for a text that is neither, and for a sample that does not
    exist.
    """
    path = Path(name)
    if isinstance(name, Path) or located(path).exists():
        return path
    known = list(models())
    if name in known:
        return None
    raise UserError(
        f"{where}: expected a trace's file or the name of a workload model, found {name!r}, which is neither."
        f"{nearest(name, known)}"
    )


def as_settings(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options as a command is given them."""
    return tuple(setting_texts(options))


def known(given: Mapping[str, Any], names: Iterable[str], function: str) -> dict[str, Any]:
    """The keyword arguments of a function; :class:`TypeError` for a name that is none of its own."""
    names = list(names)
    for name in given:
        if name not in names:
            hint = nearest(name, names)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}.{hint}")
    return dict(given)
