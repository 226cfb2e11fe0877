"""A resolver is tried when a directive is made: a tool that is not there, a path that fits nothing, no value."""

import pytest

from agentx.storage.errors import UsageError
from agentx.synthesis.directing.field_check import checker
from agentx.synthesis.directing.fields import parse
from agentx.synthesis.model.port import ToolSchema
from tests.synthesis.directing.test_fields import Story, mail

ORDER = {
    "type": "object",
    "properties": {"order": {"$ref": "#/$defs/Order"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "$defs": {
        "Order": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}}},
        }
    },
}  # fmt: skip
TOOLS = [
    ToolSchema("send_email", "", {"type": "object", "properties": {"titles": {"type": "array", "items": {"type": "string"}}}}),
    ToolSchema("refund", "", ORDER),
    ToolSchema("free", "", {"type": "object"}),
]  # fmt: skip


def check(words, story=None, **options):
    past = (story or Story()).past()
    checker(lambda _runs: past, options.pop("tools", TOOLS), **options)(parse(words))


@pytest.mark.parametrize(
    "words",
    [
        "values(tool=send_email, path=titles[*])",
        "values(tool=refund, path=order.id)",
        "values(tool=refund, path=order.lines[*].sku)",
        "values(tool=refund, path=$..note)",
        "values(tool=refund, path=$..lines[?@.sku=='a'])",
        "values(tool=refund, path=status, of=output)",
        "values_seen(tool=refund, path=order.id, seen_by=send_email, seen=$[*])",
        "count(tool=refund)",
        "hours_since_last_run(default=24)",
        "today",
    ],
)
def test_what_fits_the_schema_is_accepted_before_anything_ran(words):
    check(words)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("values(tool=send_mail, path=titles[*])", "no tool 'send_mail'; the tools are free, refund, send_email"),
        ("values(tool=send_email, path=title)", r"'title' matches nothing in the arguments of send_email.*titles"),
        ("values(tool=refund, path=order.sku)", "matches nothing in the arguments of refund"),
        ("values_seen(tool=refund, path=order.id, seen_by=look, seen=$[*])", "no tool 'look'"),
        ("hours_since_last_run", "gives no value now .*nothing ran yet.* add default="),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_the_reason(words, why):
    with pytest.raises(UsageError, match=why):
        check(words)


def test_recorded_calls_count_beside_the_schema():
    story = Story().run(0, mail("One"), ("old_tool", {"x": {"y": 1}}, "SUCCEEDED"), output='{"sent": 2}')
    check("values(tool=old_tool, path=x.y)", story)
    check("values(tool=send_email, path=sent, of=output)", story)
    with pytest.raises(UsageError, match=r'in the output of send_email, which look like \{"sent":2\}'):
        check("values(tool=send_email, path=titles, of=output)", story)


def test_for_a_text_program_no_tool_is_known():
    with pytest.raises(UsageError, match="the executor has no tools"):
        check("count(tool=refund)", tools=(), text_only=True)
    check("count(tool=refund)", tools=())  # nobody said which tools there are
