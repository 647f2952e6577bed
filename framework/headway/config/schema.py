"""The JSON schema of the configuration file, for editors: with the options of what is installed.

It calls no file wrong that :func:`headway.config.load_config` takes: where headway reads a value in several
forms (``600``, ``10m``; a word or a list of words) the schema takes any text, number or list. What only
headway knows, such as keys that exclude each other, the schema leaves to ``headway check``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from headway.config.adapters import Adapters
from headway.config.site import Config
from headway.plugins import Catalogue

#: What editors and their language servers know.
DIALECT = "http://json-schema.org/draft-07/schema#"
#: A value that headway reads before it looks at its type.
_ANY_FORM = {"type": ["string", "number", "boolean", "array"]}
_FIELD = re.compile(r"\s+(\w+)\s*:")
_COMMENT = re.compile(r"\s*#: ?(.*)")


def configuration_schema(catalogue: Catalogue, adapters: Adapters) -> dict[str, Any]:
    """The schema; the same for the same installation."""
    found = _schema(Config, "Config")
    definitions: dict[str, Any] = found.pop("$defs", {})
    plugins = found["properties"]["plugins"]
    plugins["items"] = _plugins(catalogue, definitions)
    options = {name: _adapter_options(adapters, name, definitions) for name in adapters.names()}
    for name in ("ClusterConfig", "MemberConfig"):
        cluster = definitions[f"Config.{name}"]
        cluster["properties"]["adapter"]["enum"] = list(options)
        cluster["allOf"] = [
            {
                "if": {"properties": {"adapter": {"const": adapter}}, "required": ["adapter"]},
                "then": {"properties": {"options": one}},
            }
            for adapter, one in options.items()
        ]
    found = {"$schema": DIALECT, **found, "title": "headway's configuration file"}
    found["$defs"] = dict(sorted(definitions.items()))
    return found


def _plugins(catalogue: Catalogue, definitions: dict[str, Any]) -> dict[str, Any]:
    """An entry of ``plugins``: a name, or a name with its options."""
    options: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name in sorted(catalogue.loadable()):
        info = catalogue.info(name)
        said[name] = info.summary
        options[name] = _options(info.options, f"plugin {name}", definitions)
    for name, preset in sorted(catalogue.presets().items()):
        first = options.get(preset.plugins[0][0], {}) if preset.plugins else {}
        said[name], options[name] = preset.summary, first
    # What does not load here may load where the configuration is used.
    unknown = sorted(set(catalogue.names()) - set(options))
    for name in unknown:
        said[name], options[name] = "", {}
    with_options = {
        name: {"description": said[name], "anyOf": [one, {"type": "null"}]} for name, one in options.items()
    }
    return {
        "anyOf": [
            *({"const": name, "description": said[name]} for name in sorted(said)),
            {
                "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False,
                "properties": dict(sorted(with_options.items())),
            },
        ]
    }  # fmt: skip


def _adapter_options(adapters: Adapters, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    return _options(getattr(adapters.get(name), "Options", None), f"adapter {name}", definitions)


def _options(model: Any, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a model of options, which is put among the definitions."""
    if model is None:
        return {"type": "object", "maxProperties": 0}
    schema = _schema(model, name)
    definitions.update(schema.pop("$defs", {}))
    definitions[name] = schema
    return {"$ref": f"#/$defs/{_escaped(name)}"}


def _schema(model: type[pydantic.BaseModel], name: str) -> dict[str, Any]:
    """A model's schema; its definitions are named after it."""
    schema = model.model_json_schema(
        ref_template=f"#/$defs/{_escaped(name)}.{{model}}", schema_generator=_Generator
    )
    schema["$defs"] = {f"{name}.{key}": one for key, one in schema.get("$defs", {}).items()}
    return schema


def _escaped(name: str) -> str:
    """A name within a reference."""
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25").replace(" ", "%20")


class _Generator(GenerateJsonSchema):
    """Takes every form in which a value may be written, and adds what is said of fields in comments."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        return self._of_any_form(schema["schema"])

    def function_wrap_schema(self, schema: core_schema.WrapValidatorFunctionSchema) -> JsonSchemaValue:
        return self._of_any_form(schema["schema"])

    def _of_any_form(self, schema: core_schema.CoreSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema)
        if schema["type"] in ("model", "model-fields"):
            return inner
        return {"anyOf": [inner, dict(_ANY_FORM)]}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        said = _comments(schema["cls"].__mro__)
        for name, one in found.get("properties", {}).items():
            if name in said:
                one.setdefault("description", said[name])
        return found


def _comments(classes: Iterable[type]) -> Mapping[str, str]:
    """Field -> what its comment ``#:`` says; of a field that several classes have, the first's."""
    found: dict[str, str] = {}
    for kind in classes:
        if not issubclass(kind, pydantic.BaseModel) or kind is pydantic.BaseModel:
            continue
        try:
            lines = inspect.getsource(kind).splitlines()
        except (OSError, TypeError):
            continue
        said: list[str] = []
        for line in lines:
            if comment := _COMMENT.fullmatch(line):
                said.append(comment.group(1))
                continue
            if said and (field := _FIELD.match(line)):
                found.setdefault(field.group(1), " ".join(said).replace("``", "`"))
            said = []
    return found
