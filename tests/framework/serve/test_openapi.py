"""The description: whole, of every resource, and true of what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest
from web import ByHeader, Told
from web import client as client_of

from headway.serve.actions import ACTIONS
from headway.serve.app import make_app
from headway.serve.openapi import document
from headway.serve.resources import RESOURCES, Resource
from headway.service import protocol as p

DOCUMENT = document("/v1")
OPERATIONS = [(path, method, one) for path, item in DOCUMENT["paths"].items() for method, one in item.items()]

#: What OpenAPI 3.1 asks of the parts that are used here.
_RESPONSE = {
    "type": "object",
    "required": ["description"],
    "properties": {"content": {"type": "object", "minProperties": 1}},
}
SHAPE = {
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "info": {"type": "object", "required": ["title", "version"]},
        "paths": {
            "patternProperties": {
                "^/": {
                    "additionalProperties": {
                        "type": "object",
                        "required": ["operationId", "summary", "responses"],
                        "properties": {
                            "parameters": {
                                "type": "array",
                                "items": {
                                    "required": ["name", "in", "schema", "required"],
                                    "properties": {"in": {"enum": ["path", "query", "header"]}},
                                },
                            },
                            "responses": {
                                "minProperties": 1,
                                "patternProperties": {"^[1-5][0-9]{2}$": _RESPONSE},
                                "additionalProperties": False,
                            },
                        },
                    }
                }
            },
            "additionalProperties": False,
        },
    },
}


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for one in part.values():
            yield from references(one)
    elif isinstance(part, list):
        for one in part:
            yield from references(one)


def test_it_has_the_shape_of_openapi() -> None:
    jsonschema.validate(DOCUMENT, SHAPE)
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = [one["operationId"] for _, _, one in OPERATIONS]
    assert len(set(names)) == len(names)


def test_each_reference_leads_to_a_shape_and_each_shape_is_used() -> None:
    used = {one.rpartition("/")[2] for one in references(DOCUMENT)}
    assert used == set(DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=lambda one: str(one)[:40])
def test_parameters_are_those_of_the_path(path: str, method: str, operation: dict[str, Any]) -> None:
    given = operation.get("parameters", [])
    for one in given:
        jsonschema.Draft202012Validator.check_schema(one["schema"])
    in_path = {one["name"] for one in given if one["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path))
    assert all(one["required"] for one in given if one["in"] == "path")


def test_it_is_of_every_resource_and_action() -> None:
    described = {(path.removeprefix("/v1"), method) for path, method, _ in OPERATIONS}
    there = {(one.path, "get") for one in RESOURCES} | {(one.path, "post") for one in ACTIONS}
    assert described == there | {
        ("/what-if", "post"),
        ("/self", "get"),
        ("/stream", "get"),
        ("/openapi.json", "get"),
    }


def test_everybody_may_read_it() -> None:
    answer = client_of(make_app(Told(), ByHeader())).get("/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))


def resolved(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: one.path)
def test_what_is_answered_is_as_described(resource: Resource) -> None:
    """An answer of the least that its shape has, and the answer to nonsense."""
    told = Told(p.Reply("unknown", "no such thing"))
    asking = client_of(make_app(told, ByHeader()), {"test-user": "alice"})
    path = "/v1" + re.sub(r"{\w+}", "x", resource.path)
    responses = DOCUMENT["paths"]["/v1" + resource.path]["get"]["responses"]
    for query, code in (("", 404), ("?no_such_parameter=1", 400)):
        answer = asking.get(path + query)
        assert answer.status_code == code
        schema = responses[str(code)]["content"]["application/problem+json"]["schema"]
        resolved(schema).validate(answer.json())


def test_an_answer_is_as_described() -> None:
    answer = client_of(make_app(Told(), ByHeader()), {"test-user": "alice"}).get("/v1/jobs").json()
    schema = DOCUMENT["paths"]["/v1/jobs"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    resolved(schema).validate(answer)
    with pytest.raises(jsonschema.ValidationError):
        resolved(schema).validate({**answer, "data": {"jobs": 3}})
