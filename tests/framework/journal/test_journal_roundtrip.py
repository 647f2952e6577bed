"""Whatever the two vocabularies can say is read back from a journal as it was recorded."""

from __future__ import annotations

import math
import re
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine.default import DefaultDialect

from headway.adapter import Outcome
from headway.decisions import AnyDecision, Hold, Resize, Start, SubmitSubjob
from headway.errors import Failure
from headway.events import AnyEvent, DecisionFailed, JobEnded, JobSubmitted, NodeDown, Tick
from headway.journal import Journal, RunInfo
from headway.journal.encoding import AnyText, Decoder, encode
from headway.model import ClusterDescription, JobDescription, Request

INFO = RunInfo(
    mode="drive",
    started_at=1.7e9,
    version="0.1.0",
    config_text="policy: easy\n",
    seed=1,
    cluster=ClusterDescription.flat(4),
)


def without_pairs(text: str) -> str:
    """Two surrogates that make a character come back as the character: keep the first of them."""
    return re.sub("([\ud800-\udbff])[\udc00-\udfff]+", r"\1", text)


AWKWARD = st.sampled_from(["", "'", '"; drop table events; --', "\0", "a\0b", "\x1a", '\x1a"x"', "\\u0000",
                           "null", "Zürich 🚀", "\udc80", "caf\udce9", " {", "NaN"])  # fmt: skip
LONE_SURROGATES = st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010, categories=["Cs", "Lo", "Co"])
TEXTS = AWKWARD | (st.text(max_size=8) | st.text(LONE_SURROGATES, max_size=4)).map(without_pairs)
FLOATS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7e308, 1e16])
INTS = st.integers() | st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**300])
JSON = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def values(kind: msgspec.inspect.Type, inside: tuple[type, ...] = ()) -> st.SearchStrategy[Any]:
    """Values of a field's type, as msgspec sees it."""
    match kind:
        case msgspec.inspect.StrType():
            return TEXTS
        case msgspec.inspect.FloatType():
            return FLOATS
        case msgspec.inspect.IntType():
            return INTS
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.AnyType():
            return JSON
        case msgspec.inspect.UnionType(types=types):
            return st.one_of([values(each, inside) for each in types])
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values(item, inside), max_size=2).map(tuple)
        case msgspec.inspect.TupleType(item_types=items):
            return st.tuples(*[values(each, inside) for each in items])
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key, inside), values(value, inside), max_size=2)
        case msgspec.inspect.StructType(cls=cls):
            return structs(cls, inside)
    raise NotImplementedError(f"a field of a type that no event or decision had until now: {kind}")


def holds(kind: msgspec.inspect.Type, cls: type) -> bool:
    """Whether a field is a sequence of such structs."""
    match kind:
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType(cls=item)):
            return item is cls
    return False


def structs(cls: type[msgspec.Struct], inside: tuple[type, ...] = ()) -> st.SearchStrategy[Any]:
    """Instances of a struct, any of its optional fields left at its default.

    One that holds others of its kind (a request's parts) does so once: those ``inside`` hold none.
    """
    shape = msgspec.inspect.type_info(cls)
    assert isinstance(shape, msgspec.inspect.StructType)
    required = {field.name: values(field.type, (*inside, cls)) for field in shape.fields if field.required}
    optional = {
        field.name: values(field.type, (*inside, cls))
        for field in shape.fields
        if not field.required and not (cls in inside and holds(field.type, cls))
    }
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: cls(**fields))


EVENTS = {cls.__name__: structs(cls) for cls in get_args(AnyEvent)}
DECISIONS = {cls.__name__: structs(cls) for cls in get_args(AnyDecision)}


def same(one: Any, other: Any) -> bool:
    """Equal, where nan equals nan, the sign of zero counts, and True is not 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, msgspec.Struct):
        return all(same(getattr(one, f), getattr(other, f)) for f in one.__struct_fields__)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)


@pytest.mark.parametrize("kind", EVENTS)
def test_every_kind_of_event_is_written_and_read_back_identical(kind: str) -> None:
    decode: Decoder[Any] = Decoder(AnyEvent)

    @settings(max_examples=50, deadline=None)
    @given(EVENTS[kind])
    def holds(event: Any) -> None:
        assert same(decode(encode(event)), event)

    holds()


@pytest.mark.parametrize("kind", DECISIONS)
def test_every_kind_of_decision_is_written_and_read_back_identical(kind: str) -> None:
    decode: Decoder[Any] = Decoder(AnyDecision)

    @settings(max_examples=50, deadline=None)
    @given(DECISIONS[kind])
    def holds(decision: Any) -> None:
        assert same(decode(encode(decision)), decision)

    holds()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Journal.open(tmp_path_factory.mktemp("journal") / "journal.db") as journal:
        yield journal


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cycles=st.lists(
        st.tuples(
            FLOATS,
            st.lists(st.one_of(*EVENTS.values()), max_size=4),
            st.lists(st.tuples(st.one_of(*DECISIONS.values()), st.booleans(), TEXTS), max_size=4),
        ),
        max_size=4,
    )
)
@example(cycles=[(math.nan, [Tick(math.nan)], [(Hold("a\0b", "\udc80"), False, "\0\ud800")])])
@example(cycles=[(math.inf, [DecisionFailed(-math.inf, Start("\udcff"), "no")], [])])
def test_recorded_cycles_are_read_back_identical(journal: Journal, cycles: Any) -> None:
    run = journal.begin_run(INFO)
    for seq, (now, happened, decided) in enumerate(cycles):
        journal.record_events(seq, now, happened)
        journal.record_decisions(seq, [decision for decision, _, _ in decided])
        journal.record_outcomes(seq, [Outcome(accepted, message) for _, accepted, message in decided])
    journal.end_run("done")

    read = list(journal.cycles(run))

    assert [cycle.seq for cycle in read] == list(range(len(cycles)))
    for cycle, (now, happened, decided) in zip(read, cycles, strict=True):
        # A column's zero has no sign.
        assert cycle.now == now or (math.isnan(cycle.now) and math.isnan(now))
        assert same(cycle.events, tuple(happened))
        assert same(cycle.decisions, tuple(decision for decision, _, _ in decided))
        assert same(cycle.outcomes, tuple(Outcome(ok, message) for _, ok, message in decided))
    assert journal.unfinished(run) == []


@settings(max_examples=60, deadline=None)
@given(mode=TEXTS, config=TEXTS, reason=TEXTS, seed=INTS, states=st.dictionaries(TEXTS, JSON, max_size=3))
def test_a_run_and_its_checkpoint_are_read_back_identical(
    journal: Journal, mode: str, config: str, reason: str, seed: int, states: dict[str, Any]
) -> None:
    info = RunInfo(mode, 1.5, "0.1.0", config, seed, ClusterDescription.flat(7), states)
    run = journal.begin_run(info)
    journal.checkpoint(3, states)
    journal.end_run(reason, ended_at=2.5)

    record = journal.last_run(mode)

    assert record is not None
    assert (record.id, record.ended_at, record.end_reason) == (run, 2.5, reason)
    assert (record.info.mode, record.info.config_text, record.info.seed) == (mode, config, seed)
    assert record.info.cluster == info.cluster
    assert same(record.info.plugin_states, states)
    checkpoint = journal.last_checkpoint(run)
    if states:
        assert checkpoint is not None
        assert checkpoint.seq == 3
        assert same(checkpoint.states, states)
    else:
        assert checkpoint is None


@settings(max_examples=60, deadline=None)
@given(first=TEXTS, second=TEXTS)
@example("\0", '\x1a"\\u0000"')
@example("\udc80", '\x1a"\\udc80"')
def test_the_histories_of_two_awkward_names_are_never_mixed(
    journal: Journal, first: str, second: str
) -> None:
    run = journal.begin_run(INFO)
    journal.record_events(1, 1.0, [JobEnded(1.0, first), JobEnded(2.0, second)])
    journal.end_run("done")

    histories = [[entry.time for entry in journal.job_history(job, run)] for job in (first, second)]

    assert histories == ([[1.0, 2.0]] * 2 if first == second else [[1.0], [2.0]])


@given(TEXTS)
@example("a\0b")
@example("\udc80")
@example("\x1a")
def test_a_column_s_text_is_one_that_every_database_takes(text: str) -> None:
    column, dialect = AnyText(), DefaultDialect()
    stored = column.process_bind_param(text, dialect)
    assert stored is not None
    assert "\0" not in stored
    stored.encode()
    assert column.process_result_value(stored, dialect) == text


def test_numbers_that_a_plugin_computed_with_numpy_are_written_as_plain_numbers() -> None:
    decode: Decoder[Any] = Decoder(AnyDecision)
    decision = Resize("7", processors=np.int64(3), placement=(("n1", np.int32(3)),))  # type: ignore[arg-type]
    assert same(decode(encode(decision)), Resize("7", processors=3, placement=(("n1", 3),)))


def test_what_is_no_json_is_refused_with_the_name_of_its_owner_and_nothing_is_written(
    journal: Journal,
) -> None:
    run = journal.begin_run(INFO)
    journal.checkpoint(1, {"predictor": {"mean": 4.0}})
    with pytest.raises(Failure, match="the state of plugin 'predictor'"):
        journal.checkpoint(2, {"fair-share": 1, "predictor": object()})
    checkpoint = journal.last_checkpoint(run)
    assert checkpoint is not None
    assert checkpoint.states == {"predictor": {"mean": 4.0}}

    job = JobDescription("1", 0.0, Request(1, 60.0), attributes={"odd": object()})
    with pytest.raises(Failure, match="JobSubmitted"):
        journal.record_events(1, 0.0, [NodeDown(0.0, "n1"), JobSubmitted(0.0, job)])
    journal.record_events(1, 0.0, [])
    with pytest.raises(Failure, match="SubmitSubjob"):
        journal.record_decisions(1, [SubmitSubjob("1", job)])
    journal.end_run("done")
    assert [(c.seq, c.events, c.decisions) for c in journal.cycles(run)] == [(1, (), ())]
