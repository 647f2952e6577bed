"""The options of the commands that give jobs the estimates of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headway.inputs.settings import parsed_settings

if TYPE_CHECKING:
    from headway.plugins import Catalogue
    from headway.workload import ChosenModel

estimates_option = click.option(
    "--estimates", metavar="MODEL",
    help="Give jobs the estimates of this model, or of a model file; `headway estimates` lists the models.",
)  # fmt: skip
estimates_set_option = click.option(
    "--estimates-set", "estimate_settings", multiple=True, metavar="KEY=VALUE",
    help="An option of the estimate model. Repeatable.",
)  # fmt: skip


def asked_model(catalogue: Catalogue, estimates: str | None, settings: Sequence[str]) -> ChosenModel | None:
    """The model that was asked for; None if none was."""
    from headway.experiment.estimates import chosen_model

    if estimates is None:
        if settings:
            raise click.UsageError("--estimates-set goes with --estimates MODEL")
        return None
    return chosen_model(catalogue, estimates, parsed_settings(settings, "--estimates-set"), "--estimates-set")
