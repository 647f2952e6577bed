"""The interface's description (OpenAPI 3.1), made from the structs that are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from headway.inquiry.reports import CycleReport, DecisionReport, WhatIfReport
from headway.serve.actions import ACTIONS, KEY_HEADER, Action
from headway.serve.past import HISTORY
from headway.serve.problems import TITLES, Problem
from headway.serve.resources import RESOURCES, Listed, Resource, lists_of
from headway.serve.stream import DaemonItem, EventItem, JobsItem
from headway.serve.what_if import ABOUT, PATH, WhatIfBody
from headway.service.protocol import Outcome
from headway.version import __version__

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{name}"
#: Codes that any resource may answer, and those of the past as well.
_OF_READS, _OF_PAST = (400, 401, 403, 404, 421, 503), (429,)
_OF_ACTIONS = (400, 401, 403, 409, 413, 415, 421, 503)
_OF_WHAT_IF = (400, 401, 403, 413, 415, 421, 503)
#: What the stream's events have as data, by kind; of the others nothing.
_ITEMS: Mapping[str, type[msgspec.Struct]] = {
    "cycle": CycleReport, "decision": DecisionReport, "event": EventItem, "jobs": JobsItem,
    "daemon": DaemonItem,
}  # fmt: skip
_FAILED: Schema = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
_PROMISE = (
    "Version 1: fields, resources and parameters are added; none is taken away or changes its meaning. "
    "Programs ignore fields that they do not know. Texts for people (remark, detail, reason, sentences) may "
    "change."
)


class Self(msgspec.Struct, frozen=True):
    """The user that asks, as this interface knows it, and what the way here allows."""

    user: str
    scopes: tuple[str, ...]


@cache
def description(version: str) -> bytes:
    """The description as JSON, of the interface under the path ``version``."""
    return msgspec.json.encode(document(version))


def document(version: str) -> Schema:
    """The same as an object."""
    read = (*RESOURCES, *HISTORY)
    shapes = list(
        dict.fromkeys([*(one.shape for one in read), *_ITEMS.values(), WhatIfReport, Outcome, Problem, Self])
    )
    requests: list[type[msgspec.Struct]] = [
        *(one.request for one in read),
        *(one.request for one in ACTIONS),
        WhatIfBody,
    ]
    refs, components = msgspec.json.schema_components([*shapes, *requests], ref_template=_REFERENCE)
    ref_of = dict(zip([*shapes, *requests], refs, strict=True))
    fields = {kind: components[kind.__name__] for kind in requests}
    paths: dict[str, Schema] = {}
    for resource in read:
        codes = _OF_READS if resource in RESOURCES else (*_OF_READS, *_OF_PAST)
        paths[version + resource.path] = {"get": _read(resource, fields[resource.request], ref_of, codes)}
    for action in ACTIONS:
        paths[version + action.path] = {"post": _action(action, ref_of)}
    paths[version + PATH] = {"post": _what_if(ref_of)}
    paths[f"{version}/self"] = {"get": _self(ref_of[Self])}
    paths[f"{version}/session"] = _session()
    paths[f"{version}/stream"] = {"get": _stream(ref_of)}
    paths["/metrics"] = {"get": _exposition()}
    paths[f"{version}/openapi.json"] = {"get": _itself()}
    asked = {one.request.__name__ for one in read}
    return {
        "openapi": "3.1.0",
        "info": {"title": "headway", "version": "1", "description": _PROMISE, "x-headway": __version__},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in asked},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "an own token, or Slurm's"},
                "session": {"type": "apiKey", "in": "cookie", "name": "headway-PORT"},
            },
        },
        # Or by the way the request came: a Unix socket, a proxy.
        "security": [{"token": []}, {"session": []}, {}],
    }


def _read(
    resource: Resource, fields: Mapping[str, Any], ref_of: Mapping[Any, Schema], codes: tuple[int, ...]
) -> Schema:
    in_path = {part[1:-1] for part in resource.path.split("/") if part.startswith("{")}
    lists = lists_of(resource.request)
    needed = set(fields.get("required", ())) | in_path
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in needed,
            "schema": _in_query(lists.get(name), schema),
        }
        for name, schema in fields["properties"].items()
        if name != "request"
    ]
    answer = _answer(ref_of[resource.shape])
    name = "_".join(part.strip("{}") for part in resource.path.strip("/").split("/"))
    return {
        "operationId": f"read_{name}",
        "summary": resource.about,
        "parameters": parameters,
        "responses": {
            "200": _content(resource.about, answer),
            **_problems(codes),
        },
    }


def _answer(shape: Schema) -> Schema:
    """What is sent for a question."""
    return {
        "type": "object",
        "properties": {
            "as_of": {
                "type": ["number", "null"],
                "description": "the time of the cycle that this is the state after, absolute seconds",
            },
            "data": shape,
            "remark": {"type": "string", "description": "what is missing, or may be"},
            "silent_since": {
                "type": ["number", "null"],
                "description": "since when the daemon has not answered, if this is the last that is known",
            },
        },
        "required": ["as_of", "data"],
    }


def _what_if(ref_of: Mapping[Any, Schema]) -> Schema:
    return {
        "operationId": "what_if",
        "summary": ABOUT,
        "requestBody": _body(ref_of[WhatIfBody]),
        "responses": {"200": _content(ABOUT, _answer(ref_of[WhatIfReport])), **_problems(_OF_WHAT_IF)},
    }


def _body(schema: Schema) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _in_query(listed: Listed | None, schema: Schema) -> Schema:
    """The schema of a field that stands in the query: a list is the field several times."""
    if listed is None:
        return schema
    items = {"type": "string", "pattern": "^.*:[0-9]+$"} if listed is Listed.AMOUNTS else schema["items"]
    return {"type": "array", "items": items, "maxItems": schema["maxItems"]}


def _action(action: Action, ref_of: Mapping[Any, Schema]) -> Schema:
    outcome = ref_of[Outcome]
    return {
        "operationId": action.path.strip("/").replace("/", "_"),
        "summary": action.about,
        "parameters": [
            {
                "name": KEY_HEADER,
                "in": "header",
                "required": False,
                "description": "a request with a key that was there within an hour is not done again",
                "schema": {"type": "string", "maxLength": 128},
            }
        ],
        "requestBody": _body(ref_of[action.request]),
        "responses": {
            "200": _content("It was done, or a part of it.", outcome),
            "202": _content("It waits.", outcome),
            **_problems(_OF_ACTIONS),
        },
    }


def _self(ref: Schema) -> Schema:
    about = "The user that asks, as this interface knows it."
    return {
        "operationId": "read_self",
        "summary": about,
        "responses": {"200": _content(about, ref), **_problems((401, 403, 421))},
    }


def _session() -> Schema:
    return {
        "post": {
            "operationId": "begin_session",
            "summary": "Let this browser be the user of a token, which comes in the header Authorization.",
            "security": [{"token": []}],
            "responses": {"204": _cookie("The session's cookie."), **_problems((401, 403, 415, 421))},
        },
        "delete": {
            "operationId": "end_session",
            "summary": "End the session, if there is one.",
            "security": [{"session": []}, {}],
            "responses": {"204": _cookie("The cookie is over."), **_problems((403, 415, 421))},
        },
    }


def _cookie(about: str) -> Schema:
    return {"description": about, "headers": {"Set-Cookie": {"schema": {"type": "string"}}}}


def _exposition() -> Schema:
    about = "What the daemon measures, as Prometheus reads it; as OpenMetrics where that is accepted."
    text = {"schema": {"type": "string"}}
    return {
        "operationId": "scrape",
        "summary": about,
        "responses": {
            "200": {
                "description": about,
                "content": {"text/plain": text, "application/openmetrics-text": text},
            },
            **_problems((401, 403, 421, 503)),
        },
    }


def _stream(ref_of: Mapping[Any, Schema]) -> Schema:
    number = {"type": "integer", "minimum": 0}
    data = {kind: ref_of[shape] for kind, shape in _ITEMS.items()}
    return {
        "operationId": "read_stream",
        "summary": "What happens, as it happens (server-sent events).",
        "parameters": [
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": number},
            {"name": "after", "in": "query", "required": False, "schema": number},
        ],
        "responses": {
            "200": {
                "description": "Events with a number (id), a kind (event) and JSON (data). Behind `anew` "
                "what was read is to be read again; `failed` is the last, and has no number.",
                "content": {
                    "text/event-stream": {
                        "schema": {"type": "string"},
                        # Kind -> the schema of its data.
                        "x-events": {**data, "anew": {"type": "null"}, "failed": _FAILED},
                    }
                },
            },
            **_problems((400, 401, 403, 421, 429)),
        },
    }


def _itself() -> Schema:
    return {
        "operationId": "read_openapi",
        "summary": "This description. Everybody may read it.",
        "security": [{}],
        "responses": {"200": _content("This description.", {"type": "object"})},
    }


def _content(about: str, schema: Schema) -> Schema:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _problems(codes: tuple[int, ...]) -> dict[str, Schema]:
    schema = {"$ref": _REFERENCE.format(name=Problem.__name__)}
    return {
        str(code): {"description": TITLES[code], "content": {"application/problem+json": {"schema": schema}}}
        for code in codes
    }
