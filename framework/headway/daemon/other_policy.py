"""Schedulers under another policy than the configured one, which begin with what the daemon's scheduler
knows.

The policy is exchanged as a reload of the configuration would exchange it: the plugins that start jobs (hook
``schedule``) give way to the one that is named, or to those of a preset; all others stay as they are
configured. What plugins know is saved and restored, and the new scheduler is told the cluster anew
(:mod:`headway.state.retold`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.config import Config
from headway.decisions import Decision
from headway.errors import UserError
from headway.inputs import InputFiles
from headway.journal.encoding import Decoder, encode
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.plugins.hook_names import hooks_of
from headway.scheduler import Scheduler
from headway.state.retold import described_anew

#: Where the policy stands, for messages.
WHERE = "what-if: policy"
_ONLY_KNOWN = "a what-if reads only files that the daemon's configuration names"
_states: Decoder[dict[str, Any]] = Decoder(dict[str, Any])


class KnownFiles(InputFiles):
    """The files that a run has read, and no others: whoever asks may not read what the daemon may read."""

    def text(self, name: Path, beside: Path | None) -> str:
        if str(name) not in self.texts:
            raise PermissionError(errno.EACCES, _ONLY_KNOWN, str(name))
        return super().text(name, beside)


@dataclass(frozen=True)
class ConfiguredPolicies:
    """Makes schedulers as ``config`` describes them (:class:`headway.service.what_if.OtherPolicies`)."""

    config: Config
    catalogue: Catalogue
    #: Of the run: its plugins, with the files that they have read, and what its adapter can carry out.
    configs: Sequence[PluginConfig]
    plugins: Plugins
    capabilities: frozenset[type[Decision]]
    #: Writes a time for a person.
    clock: Callable[[float], str]

    def scheduler(self, known: Scheduler, policy: str | None, options: Mapping[str, Any]) -> Scheduler:
        """See :meth:`headway.service.what_if.OtherPolicies.scheduler`."""
        configs = list(self.configs)
        if policy is not None:
            configs = self._exchanged(PluginConfig(policy, options, WHERE))
        cluster = described_anew(known.state)
        self.catalogue.check_energy(configs, cluster)
        plugins = Plugins.load(
            configs, self.catalogue, self.capabilities, KnownFiles(self.plugins.files.texts)
        )
        self._refuse(plugins, policy, known)
        saved = _states(encode(known.checkpoint()))
        config = self.config
        return Scheduler(
            cluster, plugins, seed=config.seed, capabilities=self.capabilities, clock=self.clock, saved=saved,
            cycle=config.cycle, wait_for_down_nodes=config.wait_for_down_nodes, tiers=config.tiers,
        )  # fmt: skip

    def _exchanged(self, policy: PluginConfig) -> list[PluginConfig]:
        """The configured plugins with this policy, or preset of several plugins, in place of theirs."""
        instead = self.catalogue.expanded([policy])
        for one in instead:
            self.catalogue.get(one.name, one.where)
        names = {one.name for one in instead}
        found: list[PluginConfig] = []
        for one in self.configs:
            if self._is_policy(one):
                found += instead
                instead = []
            elif one.name not in names:
                found.append(one)
        return [*found, *instead]

    def _is_policy(self, one: PluginConfig) -> bool:
        return "schedule" in hooks_of(self.catalogue.get(one.name, one.where))

    def _refuse(self, plugins: Plugins, policy: str | None, known: Scheduler) -> None:
        """What is missing of what the plugins need, beside what the cluster can carry out."""
        if not plugins.implementations("schedule"):
            raise UserError(
                f"{WHERE}: expected a plugin that starts jobs (hook `schedule`), such as easy; found "
                f"{policy!r}, which starts none"
            )
        asking = plugins.requiring("policy")
        if asking and known.state.site_policy is None:
            raise UserError(
                f"{WHERE}: plugin {asking[0]!r} needs what the batch system says of its site's policy, for "
                "which no configured plugin asks"
            )
