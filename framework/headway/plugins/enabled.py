"""The plugins of one run, in their configured order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from headway.decisions import Decision
from headway.errors import Mistakes, UserError
from headway.events import Event
from headway.hookspecs import PROJECT, HookSpecs
from headway.inputs import InputFiles
from headway.plugins.catalogue import Catalogue, PluginConfig, check_needs_of, make_plugin
from headway.plugins.hook_names import check_hooks, hook_names


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
                    check_needs_of(kind, config, capabilities)
                plugins.add(config.name, make_plugin(kind, config, plugins.files), config.where)
        mistakes.tell()
        return plugins

    @staticmethod
    def check_needs(
        configs: Iterable[PluginConfig], catalogue: Catalogue, capabilities: frozenset[type[Decision]]
    ) -> None:
        """Refuse a plugin that needs more than this, as :meth:`load` does; none is made."""
        for config in catalogue.expanded(configs):
            check_needs_of(catalogue.get(config.name, config.where), config, capabilities)

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
