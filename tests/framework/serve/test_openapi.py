"""The description: whole, of every resource, and true of what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from journals import fill
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from web import ByHeader, Told
from web import client as client_of

from headway.inquiry.reports import CycleReport, DecisionReport
from headway.serve.actions import ACTIONS
from headway.serve.app import make_app
from headway.serve.callers import Ways
from headway.serve.doors import doors
from headway.serve.guard import Guard
from headway.serve.history import History
from headway.serve.openapi import document
from headway.serve.past import HISTORY
from headway.serve.resources import RESOURCES, Resource
from headway.serve.stream import DaemonItem, EventItem, Stream, jobs_item, seen
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


def test_it_is_of_all_that_is_served() -> None:
    described = {(path, method) for path, method, _ in OPERATIONS}
    there = {(f"/v1{one.path}", "get") for one in (*RESOURCES, *HISTORY)}
    there |= {(f"/v1{one.path}", "post") for one in ACTIONS}
    there |= {(f"/v1/{name}", "get") for name in ("self", "stream", "openapi.json")}
    there |= {
        ("/v1/session", "post"),
        ("/v1/session", "delete"),
        ("/metrics", "get"),
        ("/v1/what-if", "post"),
    }
    assert described == there


def test_each_route_is_described() -> None:
    """What the application serves is the page, the entrance, and what the description has."""
    app = make_app(Told(), ByHeader(), more=doors(Ways()))
    assert isinstance(app, Guard) and isinstance(app.app, Starlette)
    served = set()
    for route in app.app.routes:
        within = route.routes if isinstance(route, Mount) and route.path == "/v1" else [route]
        for one in within:
            if isinstance(one, Route):
                prefix = "/v1" if one is not route else ""
                served |= {(prefix + one.path, method.lower()) for method in one.methods or ()}
    described = {(path, method) for path, method, _ in OPERATIONS}
    # This source has no stream.
    there = (described | {("/enter", "get")}) - {("/v1/stream", "get")}
    assert {one for one in served if one[1] != "head"} == there


def test_everybody_may_read_it() -> None:
    answer = client_of(make_app(Told(), ByHeader())).get("/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))


def resolved(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def schema_of(path: str, code: str = "200", kind: str = "application/json", method: str = "get") -> Any:
    return DOCUMENT["paths"][path][method]["responses"][code]["content"][kind]["schema"]


def test_the_rest_is_as_described() -> None:
    asking = client_of(make_app(Told(), ByHeader(), more=doors(Ways())), {"test-user": "alice"})
    resolved(schema_of("/v1/self")).validate(asking.get("/v1/self").json())
    headers = {"content-type": "application/json"}
    refused = asking.post("/v1/session", headers=headers)
    problem = "application/problem+json"
    resolved(schema_of("/v1/session", str(refused.status_code), problem, "post")).validate(refused.json())
    ended = asking.delete("/v1/session", headers=headers)
    assert ended.status_code == 204 and ended.headers["set-cookie"]
    away = asking.get("/metrics")
    resolved(schema_of("/metrics", str(away.status_code), problem)).validate(away.json())


def test_items_of_the_stream_are_as_described() -> None:
    events = DOCUMENT["paths"]["/v1/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"][
        "x-events"
    ]
    stream = Stream()
    stream.put("cycle", CycleReport(1, 2.0, 0.1, 0.1, {"Tick": 1}, {}))
    stream.put("decision", DecisionReport("Start", "7", "fits"))
    stream.put("event", EventItem("NodeDown", 1.0, node="n1"))
    stream.put("jobs", jobs_item(["7"], ["8"]))
    stream.put("daemon", DaemonItem(False, 3.0))
    stream.put("anew", None)
    items = seen(stream, "root", True)
    assert {item.kind for item in items} == set(events) - {"failed"}
    for item in items:
        resolved(events[item.kind]).validate(msgspec.json.decode(item.data))


@pytest.mark.parametrize("resource", HISTORY, ids=lambda one: one.path)
def test_the_past_is_as_described(resource: Resource, tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    fill(place, 1.8e9)
    asking = client_of(
        make_app(Told(), ByHeader(), history=History(str(place), lambda _: True)), {"test-user": "alice"}
    )
    path = "/v1" + resource.path
    answer = asking.get(path.replace("{job}", "earlier0"))
    assert answer.status_code == 200
    resolved(schema_of(path)).validate(answer.json())
    nonsense = asking.get(path.replace("{job}", "earlier0") + "?no_such_parameter=1")
    assert nonsense.status_code == 400
    resolved(schema_of(path, "400", "application/problem+json")).validate(nonsense.json())


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
