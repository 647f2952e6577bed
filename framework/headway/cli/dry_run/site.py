"""What a dry run runs under: the configuration, the plugins, the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headway.cli.common import messages, say, set_up_log
from headway.cli.estimate_options import asked_model
from headway.errors import UserError
from headway.inputs.log import set_up_later

if TYPE_CHECKING:
    from headway.cli.dry_run.asked import Asked
    from headway.config import Config
    from headway.plugins import Catalogue, PluginConfig
    from headway.workload import ChosenModel


@dataclass(frozen=True)
class Site:
    """A configuration with what the command's options change in it."""

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

    @classmethod
    def of(cls, asked: Asked) -> Site:
        """Read the configuration that was asked for and set up its log; :class:`UserError` for a plugin or
        an option that does not exist."""
        from headway.config import Adapters, load_config, parse_config
        from headway.plugins import Catalogue

        said = asked.plugins
        adapters = Adapters.with_files(said.adapter_files)
        if said.config_path is not None:
            config = load_config(said.config_path, adapters)
        else:
            config = parse_config("mode: dry-run", adapters=adapters)
        if asked.work.from_cluster:
            set_up_log(config.log)
        else:
            set_up_later(partial(set_up_log, config.log))
        catalogue = Catalogue(said.plugin_files)
        chosen = enabled(config, catalogue, said.policy, said.config_path is not None)
        plugins = _with_further(chosen, said.further, catalogue)
        _tell_what_is_emulated_alone(config, plugins, catalogue)
        seed = asked.chance.seed if asked.chance.seed is not None else config.seed
        estimates = asked_model(catalogue, asked.work.estimates, asked.work.estimate_settings)
        if asked.machine.cycle is not None:
            config.cycle = asked.machine.cycle
        label = said.policy or label_of(config, plugins, catalogue)
        changed = said.policy is not None or asked.machine.cycle is not None or bool(said.further)
        text = _changed_text(config, plugins) if changed else config.text
        return cls(config, catalogue, plugins, seed, estimates, label, text)


def enabled(config: Config, catalogue: Catalogue, policy: str | None, configured: bool) -> list[PluginConfig]:
    """The plugins of a dry run: the plugins of files, then ``policy`` (with a placement) or the
    configuration's."""
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
        for c in catalogue.expanded([PluginConfig(policy, {}, "--policy")])
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
    configs: list[PluginConfig], further: Sequence[str], catalogue: Catalogue
) -> list[PluginConfig]:
    """These plugins, and the plugins of ``--with`` that are not among them."""
    from headway.plugins import PluginConfig

    there = {config.name for config in configs}
    wanted = [PluginConfig(name, {}, "--with") for name in dict.fromkeys(further)]
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
    config: Config, configs: Sequence[PluginConfig], catalogue: Catalogue
) -> None:
    """Say which plugins do something here that the configured cluster cannot do."""
    from headway.plugins import Plugins

    where = config.keeps_suspended()
    if where is None:
        return
    for name in Plugins.load(configs, catalogue, None).requiring("lending"):
        say(
            f"{where}: plugin {name!r} suspends jobs to make room, and this cluster keeps the processors of "
            "a suspended job: only the emulation gives them to other jobs, and `headway run` refuses the "
            "plugin; requeue or cancel jobs instead",
            messages(), style="yellow",
        )  # fmt: skip


def label_of(config: Config, configs: list[PluginConfig], catalogue: Catalogue) -> str:
    """What the configuration calls the policy: its name, or that of the preset that it is part of."""
    from headway.plugins.hook_names import hooks_of

    policies = (c.name for c in configs if "schedule" in hooks_of(catalogue.get(c.name, c.where)))
    policy = next(policies, configs[0].name if configs else "none")
    for entry in config.plugin_configs():
        if any(c.name == policy for c in catalogue.expanded([entry])):
            return entry.name
    return policy
