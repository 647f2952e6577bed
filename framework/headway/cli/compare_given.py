"""What ``headway compare`` is given: a campaign's file, or options that say the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.asking import Duration
from headway.cli.numbers import FiniteRange

if TYPE_CHECKING:
    from headway.experiment.campaign import Campaign

COUNT = click.IntRange(min=1)
_LOAD = FiniteRange(min=0, min_open=True)

#: The options that stand for keys of the file, and what each means; flags and values as click takes them.
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--trace", {"name": "traces", "multiple": True, "metavar": "FILE", "help": "Trace. Repeatable."}),
    ("--workload", {"name": "models", "multiple": True, "metavar": "MODEL",
                    "help": "Workload model. Repeatable."}),
    ("--set", {"name": "settings", "multiple": True, "metavar": "KEY=VALUE",
               "help": "An option of the models. Repeatable."}),
    ("--policy", {"name": "policies", "multiple": True, "metavar": "NAME",
                  "help": "Policy or preset. Repeatable; the others are compared with the first."}),
    ("--load", {"name": "loads", "multiple": True, "type": _LOAD, "metavar": "LOAD",
                "help": "Offered load of a trace, or the option `load` of a model. Repeatable."}),
    ("--resample", {"name": "resample", "type": click.Choice(["weeks", "users"]),
                    "help": "Draw another trace from the trace for each seed."}),
    ("--limit", {"name": "limit", "type": COUNT, "metavar": "N", "help": "The first N jobs of each trace."}),
    ("--processors", {"name": "processors", "type": COUNT, "metavar": "N",
                      "help": "Processors of the machine. Default: as the traces or models say."}),
    ("--energy", {"name": "energy", "metavar": "PROFILE", "help": "Energy profile: a name or a file."}),
    ("--seeds", {"name": "seeds", "type": COUNT, "metavar": "N", "help": "Number of seeds. Default: 10."}),
    ("--first-seed", {"name": "first_seed", "type": click.IntRange(min=0), "metavar": "N",
                      "help": "The first seed. Default: 1."}),
    ("--cycle", {"name": "cycle", "type": Duration((86400.0, "a day")), "metavar": "TIME",
                 "help": "Batch mode: start jobs only at multiples of this time (10s, 1m)."}),
    ("--accept", {"name": "accept", "multiple": True, "metavar": "RULE=REASON",
                  "help": "Accept a rule that is not kept, with the reason. Repeatable."}),
)  # fmt: skip


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument CAMPAIGN and the options that stand for it; the command gets them as ``said``."""
    for flag, how in reversed(_OPTIONS):
        more = {key: value for key, value in how.items() if key != "name"}
        command = click.option(flag, how["name"], **more)(command)
    return click.argument("campaign", required=False, type=click.Path(path_type=Path))(command)


@dataclass(frozen=True)
class Given:
    """A campaign to run."""

    plan: Campaign
    #: Its definition in YAML.
    text: str
    #: What it is called, in messages and on its page.
    name: str
    #: Where the files lie that the definition names.
    folder: Path
    #: How the command line says it.
    words: tuple[str, ...]

    @classmethod
    def of(cls, campaign: Path | None, said: Mapping[str, Any], plugin_files: tuple[Path, ...]) -> Given:
        """``said``: the options by name. Raises :class:`click.UsageError` for both a file and options, or
        neither, and :class:`headway.errors.UserError` for what is wrong with them."""
        used = [flag for flag, how in _OPTIONS if said[how["name"]] not in (None, ())]
        if campaign is not None:
            if used:
                raise click.UsageError(
                    f"{', '.join(used)}: expected either CAMPAIGN, a file, or options instead of it, found "
                    "both; say it in the file"
                )
            return cls._of_file(campaign, plugin_files)
        if not said["policies"] or not (said["traces"] or said["models"]):
            raise click.UsageError(
                "expected CAMPAIGN, a file, or --trace FILE (or --workload MODEL) and --policy NAME"
            )
        if said["settings"] and not said["models"]:
            raise click.UsageError("--set goes with --workload")
        return cls._of_options(said, plugin_files)

    @classmethod
    def _of_file(cls, campaign: Path, plugin_files: tuple[Path, ...]) -> Given:
        from headway.experiment.definition import load_campaign

        plan = load_campaign(campaign, plugin_files=plugin_files)
        text = campaign.read_text(encoding="utf-8")
        return cls(plan, text, campaign.stem, campaign.parent, (str(campaign),))

    @classmethod
    def _of_options(cls, said: Mapping[str, Any], plugin_files: tuple[Path, ...]) -> Given:
        import yaml

        from headway.experiment.answers import accepted
        from headway.experiment.asked import definition_of, workload_entry
        from headway.experiment.definition import campaign_of
        from headway.inputs.settings import parsed_settings
        from headway.plugins import Catalogue

        options = parsed_settings(said["settings"])
        sources: list[dict[str, Any]] = [{"trace": trace} for trace in said["traces"]]
        sources += [{"model": model, **({"options": options} if options else {})} for model in said["models"]]
        of_traces = {"resample": said["resample"] or "", "limit": said["limit"]}
        definition = definition_of(
            said["policies"],
            [
                workload_entry(one, loads=said["loads"], **(of_traces if "trace" in one else {}))
                for one in sources
            ],
            Catalogue(plugin_files),
            processors=said["processors"],
            energy=said["energy"],
            seeds=said["seeds"],
            first_seed=said["first_seed"],
            cycle=said["cycle"],
            method={"accept": accepted(said["accept"], of_runs=False)} if said["accept"] else None,
        )
        plan = campaign_of(definition, "the command line", Path(), plugin_files)
        text = yaml.safe_dump(definition, sort_keys=False, allow_unicode=True)
        return cls(plan, text, "of the command line", Path(), _words(said))


def _words(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The options again, as a shell would be given them."""
    words: list[str] = []
    for flag, how in _OPTIONS:
        value = said[how["name"]]
        for one in value if isinstance(value, tuple) else () if value is None else (value,):
            words += [flag, f"{one:g}" if isinstance(one, float) else str(one)]
    return tuple(words)
