"""The plugins of one run, in their configured order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from headway.decisions import Decision
from headway.errors import Mistakes, UserError
from headway.hookspecs import PROJECT, HookSpecs
from headway.inputs import SAVED_AS, InputFiles, log
from headway.plugins.catalogue import Catalogue, PluginConfig, check_needs_of, make_plugin
from headway.plugins.contract import check_attributes, check_traits, traits_of
from headway.plugins.hook_names import check_hooks, hooks_of
from headway.plugins.old_names import old_implementations, warn_of_old_names
from headway.plugins.traits import Required

#: Where a run's recorded plugin states have the plugins of files; no plugin can be called so.
FROM_FILES = "/plugins"
#: What stands among a run's recorded states for a replay of that run alone (:meth:`Plugins.recorded`).
OF_ONE_RUN = frozenset({SAVED_AS, FROM_FILES})


class Plugins:
    """The enabled plugins of one run, in order."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(PROJECT)
        self.manager.add_hookspecs(HookSpecs)
        self.by_name: dict[str, Any] = {}
        #: By plugin the hooks that it has under names of 0.1.
        self._old: dict[str, dict[str, Callable[..., Any]]] = {}
        #: The files that options name: what a replay needs besides the configuration.
        self.files = InputFiles()
        #: The plugins that ``--plugin`` brought, and the file of each.
        self.from_files: dict[str, str] = {}

    @classmethod
    def load(
        cls,
        configs: Iterable[PluginConfig],
        catalogue: Catalogue,
        capabilities: frozenset[type[Decision]] | None,
        files: InputFiles | None = None,
    ) -> Plugins:
        """Make and register what the configuration enables; all mistakes in it are told at once.

        ``capabilities`` are the adapter's; a plugin that needs more is refused with a message that names
        both. None: do not check. ``files``: the files of a run that is repeated.
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
        log.settle()
        brought = catalogue.files()
        plugins.from_files = {name: brought[name] for name in plugins.by_name if name in brought}
        return plugins

    def recorded(self) -> dict[str, Any]:
        """What a replay needs besides the configuration, as it stands among a run's recorded states."""
        needed = {SAVED_AS: self.files.texts, FROM_FILES: self.from_files}
        return {name: found for name, found in needed.items() if found}

    @staticmethod
    def check_needs(
        configs: Iterable[PluginConfig], catalogue: Catalogue, capabilities: frozenset[type[Decision]]
    ) -> None:
        """Refuse a plugin that needs more than this, as :meth:`load` does; none is made."""
        for config in catalogue.expanded(configs):
            check_needs_of(catalogue.get(config.name, config.where), config, capabilities)

    def requiring(self, what: Required) -> list[str]:
        """The plugins that require something of the cluster or the run, in configured order."""
        return [name for name, plugin in self.by_name.items() if what in traits_of(plugin).requires]

    def using(self, kind: type[Decision]) -> bool:
        """Whether a plugin makes decisions of a type, always or where the cluster can carry them out."""
        return any(kind in (*traits.needs, *traits.uses) for traits in map(traits_of, self.by_name.values()))

    @property
    def job_words(self) -> frozenset[str]:
        """The attributes of jobs that their options name, which users can say."""
        return frozenset(word for plugin in self.by_name.values() for word in traits_of(plugin).words)

    def handlers(self) -> list[Any]:
        """The migration handlers (hook ``migrate``), in configured order."""
        found = [function() for _, function in self.implementations("migrate")]
        return [handler for handler in found if handler is not None]

    def add(self, name: str, plugin: Any, where: str = "plugins") -> None:
        """Register an instance; it is asked after the plugins that are registered already."""
        if name in self.by_name:
            raise UserError(f"{where}: plugin {name!r} is enabled twice")
        of = f"{where}: plugin {name!r}"
        check_hooks(type(plugin), of)
        check_attributes(type(plugin), of)
        try:
            self.manager.register(plugin, name=name)
        except pluggy.PluginValidationError as error:
            raise UserError(f"{of}: {error}") from error
        old = old_implementations(plugin)
        check_traits(plugin, of, {*hooks_of(type(plugin)), *old})
        warn_of_old_names(plugin, of)
        self.by_name[name] = plugin
        self._old[name] = old

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """``(plugin name, function taking all the hook's arguments by position)`` in configured order."""
        caller = getattr(self.manager.hook, hook)
        wanted = caller.spec.argnames
        found = []
        order = {name: at for at, name in enumerate(self.by_name)}
        for impl in caller.get_hookimpls():
            function = impl.function
            taken = tuple(impl.argnames)
            if taken != tuple(wanted):
                function = _adapt(function, [wanted.index(a) for a in taken])
            found.append((impl.plugin_name, function))
        found += [(name, old[hook]) for name, old in self._old.items() if hook in old]
        return sorted(found, key=lambda item: order.get(item[0], len(order)))

    def takes(self, hook: str, argument: str) -> bool:
        """Whether any plugin with this hook takes this argument."""
        found = getattr(self.manager.hook, hook).get_hookimpls()
        return any(argument in impl.argnames for impl in found) or any(
            hook in old for old in self._old.values()
        )


def _adapt(function: Callable[..., Any], positions: list[int]) -> Callable[..., Any]:
    """Call ``function`` with the chosen arguments of the hook."""

    def call(*args: Any) -> Any:
        return function(*[args[p] for p in positions])

    return call
