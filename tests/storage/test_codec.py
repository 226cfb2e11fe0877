"""One event is one line: it reads back as it was, and nothing in it can change unnoticed."""

import contextlib
import math
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentx.storage.events.codec import (
    GENESIS,
    MAX_LINE_BYTES,
    Codec,
    DamagedLine,
    EventRefused,
    EventTooLarge,
    purge,
    split,
)
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import (
    Body,
    Draft,
    Purged,
    RunEnded,
    ToolCallExecuted,
    Unknown,
    UserMessageSent,
)
from agentx.synthesis.memory.conclusions import Add, Concluded, Patch
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.memory.record_codec import record_codec

CODEC = record_codec()

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | _TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_BY_TYPE = {
    str: _TEXT,
    int: st.integers(0, 2**53),
    bool: st.booleans(),
    float: st.floats(0, 1e6, allow_nan=False),
    type(None): st.none(),
    Any: _JSON,
}


def _values(kind):
    """Whatever a field of a payload may hold, by its type."""
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (tuple, list):
        return st.lists(_values(inner[0]), max_size=3).map(origin)
    if origin is dict:
        return st.dictionaries(_TEXT, _values(inner[1]), max_size=3)
    if origin in (Union, UnionType):
        return st.one_of([_values(one) for one in inner])
    return st.builds(kind, **{field.name: _values(field.type) for field in msgspec.structs.fields(kind)})


_DRAFTS = st.builds(
    Draft,
    data=st.one_of([_values(payload) for payload in FACTS.values()]),
    actor=_TEXT,
    run=_TEXT,
    cause=st.integers(0, 2**53),
    key=_TEXT,
)


def _line(text: str = "hello", **fields) -> bytes:
    draft = Draft(data=UserMessageSent(body=Body(text)), actor="user", **fields)
    return CODEC.encode(draft, seq=1, previous=GENESIS)[0]


@given(_DRAFTS, st.integers(1, 2**53))
@settings(max_examples=200)
def test_every_type_of_event_reads_back_as_it_was_written(draft, seq):
    line, event = CODEC.encode(draft, seq=seq, previous=GENESIS)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert CODEC.decode(line) == event
    assert (event.data, event.actor, event.run, event.cause, event.key) == (
        draft.data, draft.actor, draft.run, draft.cause, draft.key,
    )  # fmt: skip
    assert split(line).extends(GENESIS)


def test_a_conclusion_reads_back_as_it_was_written():
    item = MemoryItem(id="c1", kind="constraint", text="Never.", evidence=(Evidence(seq=1, quote="Never."),))
    concluded = Concluded(
        extractor="demands", version=1, through=3, changes=(Add(item), Patch(id="c1", status="retired"))
    )
    line, event = CODEC.encode(Draft(data=concluded, actor="engine:x"), seq=4, previous=GENESIS)
    assert CODEC.decode(line) == event
    assert event.data == concluded


@given(st.data())
@settings(max_examples=400)
def test_any_byte_that_changes_is_noticed(data):
    line = _line(data.draw(st.sampled_from(["hello", '"quoted","data":', "Ünïcödé\n\x00"])), key="k", run="r")
    place = data.draw(st.integers(0, len(line) - 2))
    changed = data.draw(st.integers(0, 255))
    assume(changed != line[place])
    mutated = line[:place] + bytes([changed]) + line[place + 1 :]
    with contextlib.suppress(DamagedLine):
        assert not split(mutated).extends(GENESIS)


def test_every_single_byte_replaced_by_its_other_case_or_a_quote_is_noticed():
    line = _line()
    for place in range(len(line) - 1):
        for other in {line[place : place + 1].swapcase(), b'"', b"\n", b" "} - {line[place : place + 1]}:
            try:
                noticed = not split(line[:place] + other + line[place + 1 :]).extends(GENESIS)
            except DamagedLine:
                noticed = True
            assert noticed, (place, other)


def test_a_purged_event_keeps_its_place_and_its_chain_but_not_its_content():
    line = _line("a secret that must go")
    purged = purge(line)
    assert b"secret" not in purged
    assert purge(purged) == purged
    assert split(purged).extends(GENESIS)
    event = CODEC.decode(purged)
    assert event.data == Purged()
    assert (event.seq, event.type, event.hash) == (1, "UserMessageSent", CODEC.decode(line).hash)


def test_any_byte_of_a_purged_event_that_changes_is_noticed():
    purged = purge(_line())
    for place in range(len(purged) - 1):
        for other in {purged[place : place + 1].swapcase(), b"0", b'"'} - {purged[place : place + 1]}:
            try:
                noticed = not split(purged[:place] + other + purged[place + 1 :]).extends(GENESIS)
            except DamagedLine:
                noticed = True
            assert noticed, (place, other)


def test_the_same_content_has_another_digest_each_time_so_that_a_purged_one_cannot_be_guessed():
    assert split(_line()).digest != split(_line()).digest


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
@settings(max_examples=300)
def test_what_is_no_event_raises_our_own_error_alone(line):
    with pytest.raises(DamagedLine):
        CODEC.decode(line)


@given(st.data())
@settings(max_examples=300)
def test_a_line_cut_or_garbled_raises_our_own_error_alone(data):
    line = _line("some words")
    start, end = sorted((data.draw(st.integers(0, len(line))), data.draw(st.integers(0, len(line)))))
    garbled = line[:start] + data.draw(st.binary(max_size=10)) + line[end:]
    with contextlib.suppress(DamagedLine):
        CODEC.decode(garbled)


def _forged(header: str, data: str) -> bytes:
    return f'{header},"data":{data},"salt":"{"0" * 32}","hash":"{"0" * 64}"}}\n'.encode(
        "utf-8", "surrogatepass"
    )


_HEADER = '{"seq":1,"at":"2026-11-20T09:31:05.123456Z","type":"UserMessageSent","v":1,"actor":"user"'


@pytest.mark.parametrize(
    ("header", "data"),
    [
        (_HEADER, "[" * 100_000),
        (_HEADER, '{"body":' * 50_000),
        (_HEADER, '{"body":7}'),
        (_HEADER, "null"),
        (_HEADER, '{"body":{"text":"\ud800"}}'),
        (_HEADER.replace('"seq":1', '"seq":"1"'), '{"body":{"text":""}}'),
        (_HEADER.replace('"seq":1', '"seq":' + "9" * 400), '{"body":{"text":""}}'),
        (_HEADER.replace('"v":1', '"v":0'), '{"body":{"text":""}}'),
        (_HEADER.replace('"v":1', '"v":-3'), '{"body":{"text":""}}'),
        (_HEADER.replace('"actor":"user"', '"actor":null'), '{"body":{"text":""}}'),
        (_HEADER.replace("UserMessageSent", "NeverHeardOf"), "{bad"),
        ("{}", "{}"),
    ],
)  # fmt: skip
def test_a_forged_line_raises_our_own_error_alone(header, data):
    with pytest.raises(DamagedLine):
        CODEC.decode(_forged(header, data))


def test_an_event_of_an_unknown_type_is_kept_with_its_content():
    event = CODEC.decode(
        _forged(_HEADER.replace("UserMessageSent", "SomethingFromLater"), '{"what":"later"}')
    )
    assert event.type == "SomethingFromLater"
    assert event.data == Unknown(raw='{"what":"later"}')


def test_a_newer_shape_of_a_known_type_is_unknown_too():
    event = CODEC.decode(_forged(_HEADER.replace('"v":1', '"v":2'), '{"body":"another shape"}'))
    assert event.data == Unknown(raw='{"body":"another shape"}')


def test_a_field_that_a_later_version_added_is_passed_over():
    event = CODEC.decode(_forged(_HEADER, '{"body":{"text":"hi","mood":"glad"},"later":1}'))
    assert event.data == UserMessageSent(body=Body("hi"))


def test_an_old_shape_is_lifted_one_version_at_a_time():
    steps = []

    def first(content):
        steps.append(1)
        return {"body": content["message"]}

    def second(content):
        steps.append(2)
        return {"body": {"text": content["body"]}}

    lifting = Codec(FACTS, {("UserMessageSent", 1): first, ("UserMessageSent", 2): second})
    event = lifting.decode(_forged(_HEADER, '{"message":"hello"}'))
    assert (event.data, event.v, steps) == (UserMessageSent(body=Body("hello")), 1, [1, 2])
    assert lifting.encode(Draft(data=event.data, actor="user"), seq=1, previous=GENESIS)[1].v == 3


@pytest.mark.parametrize("data", ['{"other":1}', "7", '{"message":7}'])
def test_an_old_shape_that_cannot_be_lifted_is_a_damaged_line(data):
    lifting = Codec(FACTS, {("UserMessageSent", 1): lambda content: {"body": {"text": content["message"]}}})
    with pytest.raises(DamagedLine):
        lifting.decode(_forged(_HEADER, data))


def test_an_event_at_the_limit_is_written_and_one_over_it_is_refused():
    room = MAX_LINE_BYTES - len(_line(""))
    assert len(_line("x" * room)) == MAX_LINE_BYTES
    with pytest.raises(EventTooLarge, match="put its long text in a blob"):
        _line("x" * (room + 1))


@pytest.mark.parametrize(
    "draft",
    [
        Draft(data=UserMessageSent(body=Body("lone \ud800 surrogate")), actor="user"),
        Draft(data=UserMessageSent(body=Body("")), actor="user:\udcff"),
        Draft(data=RunEnded(status="COMPLETED", cost_usd=math.nan), actor="agent:main"),
        Draft(data=RunEnded(status="SINGING"), actor="agent:main"),
        Draft(data=ToolCallExecuted(call_id="1", tool="t", status="FAILED", arguments={"n": 10**5000}), actor="a"),
        Draft(data=ToolCallExecuted(call_id="1", tool="t", status="FAILED", arguments={"o": object()}), actor="a"),
    ],
)  # fmt: skip
def test_what_could_not_be_read_back_is_refused_before_it_is_written(draft):
    with pytest.raises(EventRefused):
        CODEC.encode(draft, seq=1, previous=GENESIS)


def test_control_characters_come_back_and_never_break_the_line():
    text = "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff"
    line = _line(text)
    assert line.count(b"\n") == 1
    assert CODEC.decode(line).data.body.text == text


def test_the_time_is_utc_with_microseconds():
    draft = Draft(data=UserMessageSent(body=Body("")), actor="user")
    at = datetime(2026, 11, 20, 9, 31, 5, 7, tzinfo=UTC)
    assert CODEC.encode(draft, seq=1, previous=GENESIS, at=at)[1].at == "2026-11-20T09:31:05.000007Z"


@given(_DRAFTS, st.integers(1, 2**53))
def test_a_line_that_follows_is_read_in_one_go_as_it_is_step_by_step(draft, seq):
    line, event = CODEC.encode(draft, seq=seq, previous=GENESIS)
    assert CODEC.follow(line, seq, GENESIS) == event
    assert CODEC.follow(line, seq + 1, GENESIS) is None
    assert CODEC.follow(line, seq, "ab" * 32) is None
    assert CODEC.follow(line[:-1], seq, GENESIS) is None


@given(st.data())
@settings(max_examples=300)
def test_a_line_with_any_byte_changed_does_not_follow(data):
    line = _line(data.draw(st.sampled_from(["hello", '"quoted","data":', "Ünïcödé\n\x00"])), key="k", run="r")
    place = data.draw(st.integers(0, len(line) - 1))
    changed = data.draw(st.integers(0, 255))
    assume(changed != line[place])
    assert CODEC.follow(line[:place] + bytes([changed]) + line[place + 1 :], 1, GENESIS) is None


@given(st.binary(max_size=300), st.text("0123456789abcdefX", max_size=64))
def test_what_is_no_event_follows_from_nothing(line, previous):
    assert CODEC.follow(line, 1, previous) is None
    assert CODEC.follow(_line()[:40] + line + _line()[-150:], 1, previous) is None
