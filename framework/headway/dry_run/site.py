"""What a dry run runs under: the configuration, the plugins, the seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.dry_run.asked import Asked
    from headway.plugins import Catalogue, PluginConfig
    from headway.workload import ChosenModel


@dataclass(frozen=True)
class Site:
    """A configuration with what the options change in it."""

    config: Config
    catalogue: Catalogue
    #: The plugins that are enabled.
    plugins: list[PluginConfig]
    seed: int
    #: The model that gives jobs their estimates.
    estimates: ChosenModel | None
    #: The policy's name, as the command or the configuration says it.
    label: str
    #: What a journal keeps as the configuration.
    text: str
    #: Is told what may not be as it was meant, a sentence at a time.
    warn: Callable[[str], None]

    @classmethod
    def of(cls, asked: Asked, config: Config, warn: Callable[[str], None]) -> Site:
        """``config``: what :func:`configured` gave; :class:`UserError` for a plugin or an option that does
        not exist."""
        from headway.plugins import Catalogue

        said = asked.plugins
        catalogue = Catalogue(said.plugin_files, said.plugin_classes)
        chosen = enabled(config, catalogue, said.policy, said.config_path is not None, said.plugin_options)
        plugins = _with_further(chosen, said.further, catalogue, said.plugin_options)
        _tell_what_is_emulated_alone(config, plugins, catalogue, warn)
        seed = asked.chance.seed if asked.chance.seed is not None else config.seed
        estimates = _estimates(asked, catalogue)
        if asked.machine.cycle is not None:
            config.cycle = asked.machine.cycle
        label = said.policy or label_of(config, plugins, catalogue)
        changed = said.policy is not None or asked.machine.cycle is not None or bool(said.further)
        text = _changed_text(config, plugins) if changed else config.text
        return cls(config, catalogue, plugins, seed, estimates, label, text, warn)


def configured(asked: Asked) -> Config:
    """The configuration that was asked for; :class:`UserError` if something is wrong with it."""
    from headway.config import Adapters, load_config, parse_config

    said = asked.plugins
    adapters = Adapters.with_files(said.adapter_files)
    if said.config_path is not None:
        return load_config(said.config_path, adapters)
    return parse_config("mode: dry-run", adapters=adapters)


def _estimates(asked: Asked, catalogue: Catalogue) -> ChosenModel | None:
    """The model of users' estimates that was asked for; None if none was."""
    from headway.experiment.estimates import chosen_model
    from headway.inputs.settings import parsed_settings

    said = asked.work
    if said.estimates is None:
        return None
    where = "--estimates-set"
    return chosen_model(catalogue, said.estimates, parsed_settings(said.estimate_settings, where), where)


def enabled(
    config: Config,
    catalogue: Catalogue,
    policy: str | None,
    configured: bool,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[PluginConfig]:
    """The plugins of a dry run: the plugins of files, then ``policy`` (with a placement) or the
    configuration's. ``options``: of ``policy``, by its name."""
    from headway.plugins import PluginConfig
    from headway.plugins.hook_names import hooks_of

    if policy is None:
        return catalogue.enabled(config.plugin_configs())
    there = catalogue.expanded(config.plugin_configs()) if configured else []
    own = {c.name: c.options for c in there}
    beside = next((c.beside for c in there), None)
    # What the configuration says of the same plugins stands, but for what the preset says itself.
    chosen = [
        PluginConfig(c.name, {**own.get(c.name, {}), **c.options}, c.where, beside)
        for c in catalogue.expanded([PluginConfig(policy, (options or {}).get(policy, {}), "--policy")])
    ]
    hooks = {c.name: list(hooks_of(catalogue.get(c.name, c.where))) for c in chosen}
    if not any("schedule" in found for found in hooks.values()):
        policies = [n for n, kind in catalogue.loadable().items() if "schedule" in hooks_of(kind)]
        raise UserError(
            f"--policy: expected a policy ({', '.join([*policies, *catalogue.presets()])}), found the plugin "
            f"{policy!r}, which implements {', '.join(hooks[policy])}"
        )
    others = [c for c in there if c.name not in hooks]
    return [
        c
        for c in catalogue.enabled([*chosen, *others])
        if c.name in hooks or "schedule" not in hooks_of(catalogue.get(c.name, c.where))
    ]


def _with_further(
    configs: list[PluginConfig],
    further: Sequence[str],
    catalogue: Catalogue,
    options: Mapping[str, Mapping[str, Any]],
) -> list[PluginConfig]:
    """These plugins, and the plugins of ``--with`` that are not among them, with their options."""
    from headway.plugins import PluginConfig

    there = {config.name for config in configs}
    wanted = [PluginConfig(name, options.get(name, {}), "--with") for name in dict.fromkeys(further)]
    return [*configs, *(one for one in catalogue.expanded(wanted) if one.name not in there)]


def _changed_text(config: Config, plugins: Sequence[PluginConfig]) -> str:
    """A configuration in YAML that enables what options enabled, beside or instead of what the file says."""
    import yaml

    said = {
        "mode": "dry-run",
        "plugins": [{c.name: dict(c.options)} for c in plugins],
        "cycle": config.cycle,
        "wait_for_down_nodes": config.wait_for_down_nodes or None,
        "pools": {name: {"tier": tier} for name, tier in config.tiers.items()} or None,
    }
    return yaml.safe_dump({key: value for key, value in said.items() if value is not None})


def _tell_what_is_emulated_alone(
    config: Config, configs: Sequence[PluginConfig], catalogue: Catalogue, warn: Callable[[str], None]
) -> None:
    """Say which plugins do something here that the configured cluster cannot do."""
    from headway.plugins import Plugins

    where = config.keeps_suspended()
    if where is None:
        return
    for name in Plugins.load(configs, catalogue, None).requiring("lending"):
        warn(
            f"{where}: plugin {name!r} suspends jobs to make room, and this cluster keeps the processors of "
            "a suspended job: only the emulation gives them to other jobs, and `headway run` refuses the "
            "plugin; requeue or cancel jobs instead"
        )


def label_of(config: Config, configs: list[PluginConfig], catalogue: Catalogue) -> str:
    """What the configuration calls the policy: its name, or that of the preset that it is part of."""
    from headway.plugins.hook_names import hooks_of

    policies = (c.name for c in configs if "schedule" in hooks_of(catalogue.get(c.name, c.where)))
    policy = next(policies, configs[0].name if configs else "none")
    for entry in config.plugin_configs():
        if any(c.name == policy for c in catalogue.expanded([entry])):
            return entry.name
    return policy
