"""The jobs of a workload model with ``KEY=VALUE`` settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pydantic

from headway.errors import UserError, nearest
from headway.experiment.campaign import workload_models
from headway.inputs.settings import parsed_settings
from headway.inputs.validation import explain_validation
from headway.plugins import Catalogue
from headway.workload import Workload


def drawn(
    catalogue: Catalogue,
    model: str,
    settings: Sequence[str],
    seed: int,
    defaults: Mapping[str, Any] | None = None,
) -> Workload:
    """A workload from the model of that name, with ``KEY=VALUE`` settings.

    ``defaults`` are options where the settings say nothing; what the model does not have is left out.
    Raises :class:`UserError` for an unknown model or option, and for a value that is wrong.
    """
    models = workload_models(catalogue)
    if model not in models:
        raise UserError(f"no workload model is called {model!r}.{nearest(model, models)}")
    kind = models[model].Options
    given = parsed_settings(settings)
    for key in given:
        if key not in kind.model_fields:
            raise UserError(f"--set: {model} has no option {key!r}.{nearest(key, kind.model_fields)}")
    own = {key: value for key, value in (defaults or {}).items() if key in kind.model_fields}
    try:
        options = kind.model_validate({**own, **given})
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, "--set", kind)) from error
    workload: Workload = models[model].generate(np.random.default_rng(seed), options)
    return workload
