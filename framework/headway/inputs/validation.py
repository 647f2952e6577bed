"""Mistakes that pydantic finds in what was configured, in words."""

from __future__ import annotations

from typing import Any, get_args

import pydantic

from headway.errors import nearest

#: pydantic's types of error -> what a person calls that which was expected.
_EXPECTED = {
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "too_short": "a longer list",
    "string_pattern_mismatch": "a text of another form",
}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def explain_validation(error: pydantic.ValidationError, where: str, model: type[pydantic.BaseModel]) -> str:
    """A pydantic error as one line each: place and key, what was expected, what was found."""
    lines = []
    for item in error.errors():
        # `[key]` is how pydantic says that the key itself is wrong.
        key = ""
        for part in (part for part in item["loc"] if part != "[key]"):
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
        place = f"{where}: {key}" if key else where
        found = item.get("input")
        if item["type"] == "extra_forbidden":
            parent = model
            for part in item["loc"][:-1]:
                written = {field.alias or name: field for name, field in parent.model_fields.items()}
                inner = written.get(str(part))
                annotation = inner.annotation if inner else None
                for candidate in (annotation, *get_args(annotation)):
                    if isinstance(candidate, type) and issubclass(candidate, pydantic.BaseModel):
                        parent = candidate
            known = [field.alias or name for name, field in parent.model_fields.items()]
            lines.append(f"{place}: unknown key.{nearest(str(item['loc'][-1]), known)}")
        elif item["type"] == "missing":
            lines.append(f"{place}: expected a value, found none")
        elif item["type"] == "invalid_key":
            lines.append(f"{place}: expected a text as key, found {item['loc'][-1]!r}")
        else:
            expected = _EXPECTED.get(item["type"], item["msg"])
            for prefix in ("Input should be ", "Value error, ", "expected "):
                expected = expected.removeprefix(prefix)
            # Our own validators say what they found where that is a part of the whole.
            told = item["type"] == "value_error" and ", found " in expected
            lines.append(f"{place}: expected {expected}" + ("" if told else f", found {_short(found)}"))
    return "\n".join(lines)
