"""Estimate models by name, or from a model file that was fitted to a trace.

A model file is YAML: ``model`` (its name), ``options``, and ``queues`` (a queue's name or number -> options),
whose jobs have a model of their own; all others have ``options``. ``fitted`` says to what, for a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from headway.errors import UserError, nearest
from headway.inputs.strict_yaml import read_mapping
from headway.inputs.validation import explain_validation
from headway.plugins import Catalogue
from headway.workload import ChosenModel, EstimateModel

#: How a name of a model file ends.
_ENDINGS = (".yaml", ".yml")


class ModelFile(pydantic.BaseModel):
    """What a model file says."""

    model_config = pydantic.ConfigDict(extra="forbid")

    model: str = pydantic.Field(min_length=1)
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    queues: dict[int | str, dict[str, Any]] = pydantic.Field(default_factory=dict)
    fitted: dict[str, Any] = pydantic.Field(default_factory=dict)


def estimate_models(catalogue: Catalogue) -> dict[str, EstimateModel]:
    """Every installed estimate model by name."""
    return catalogue.registered("register_estimates")


def chosen_model(catalogue: Catalogue, name: str, options: Mapping[str, Any], where: str) -> ChosenModel:
    """The model of that name, or of that file, with these options; ``where`` they stand, for messages.

    Raises :class:`UserError` for an unknown model or option, for a value that is wrong, and for a file that
    cannot be read.
    """
    if name.endswith(_ENDINGS):
        return _from_file(catalogue, Path(name), options)
    model = named_model(catalogue, name)
    return ChosenModel(name, model, _checked(model, name, options, where))


def named_model(catalogue: Catalogue, name: str) -> EstimateModel:
    """The model of that name; :class:`UserError` if there is none."""
    models = estimate_models(catalogue)
    if name not in models:
        raise UserError(f"no estimate model is called {name!r}.{nearest(name, models)}")
    return models[name]


def _from_file(catalogue: Catalogue, path: Path, options: Mapping[str, Any]) -> ChosenModel:
    data = read_mapping(path, "the model file", "model, options, queues")
    try:
        said = ModelFile.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, str(path), ModelFile)) from error
    model = named_model(catalogue, said.model)
    return ChosenModel(
        said.model,
        model,
        _checked(model, said.model, {**said.options, **options}, f"{path}: options"),
        {
            queue: _checked(model, said.model, {**own, **options}, f"{path}: queues.{queue}")
            for queue, own in said.queues.items()
        },
    )


def _checked(model: EstimateModel, name: str, options: Mapping[str, Any], where: str) -> Any:
    kind = model.Options
    for key in options:
        if key not in kind.model_fields:
            raise UserError(f"{where}: {name} has no option {key!r}.{nearest(str(key), kind.model_fields)}")
    try:
        return kind.model_validate(dict(options))
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, where, kind)) from error
