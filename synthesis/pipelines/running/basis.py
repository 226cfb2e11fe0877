"""What a step rests on beside its inputs: digests of its role's texts, and of its markers and checks."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from agentx.storage.events.pipeline_events import Basis
from agentx.synthesis.pipelines.definition.pipeline import Check
from agentx.synthesis.pipelines.definition.plan import Plan, Step

_EXPRESSION = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.\w+|\[\s*(?:'[^']*'|\"[^\"]*\")\s*\])*)")
_KEY = re.compile(r"\.(\w+)|'([^']*)'|\"([^\"]*)\"")


def basis_of(plan: Plan, step: Step, by: str = "") -> Basis:
    """Return what a step rests on now. ``by`` names who plays its role."""
    return Basis(_prompt(plan, step), _checks(step), by)


def _prompt(plan: Plan, step: Step) -> str:
    """Return the digest of the role's texts and of the values that they use.

    Values that no text uses do not count, so that a further item changes no other item's prompt.
    """
    role = plan.role(step)
    texts = [
        *(role.title, role.duty, role.task, role.prompt, *role.standards),
        *(text for write in step.writes for text in (write.rule.file, write.rule.format, write.rule.content)),
        *(text for read in step.reads for text in (read.rule.file, read.rule.purpose)),
        *(text for one in step.forbidden for text in (one.file, one.why)),
        *(f"{one.rule.to} {one.rule.source}" for one in step.appends),
        *(text for one in step.appends for text in (one.rule.section, one.rule.under, one.rule.topic)),
    ]
    return _digest(texts, [*_used(texts, step.values), *_item(step)])


def _checks(step: Step) -> str:
    rules: list[Any] = [
        [write.rule.file, write.rule.marker, write.rule.verdict, _told(write.rule.checks)]
        for write in step.writes
    ]
    rules += [[read.rule.file, _told(read.rule.checks)] for read in step.reads if read.rule.checks]
    texts = [text for write in step.writes for text in _texts(write.rule.checks)]
    texts += [text for read in step.reads for text in _texts(read.rule.checks)]
    return _digest(rules, _used(texts, step.values))


def _told(checks: Iterable[Check]) -> list[dict[str, Any]]:
    return [check.model_dump(exclude_defaults=True) for check in checks]


def _texts(checks: Iterable[Check]) -> Iterator[str]:
    """Yield the templates of checks."""
    for check in checks:
        yield from (check.length.words,) if check.length else ()
        yield from (*check.sections, *check.uses, *check.absent)


def _item(step: Step) -> Iterator[str]:
    """Yield the title of the step's item, which every prompt states."""
    for value in step.values.values():
        if step.item and isinstance(value, Mapping) and value.get("id"):
            yield f"{value['id']} {value.get('title', '')}"


def _used(texts: Iterable[str], values: Mapping[str, Any]) -> list[Any]:
    """Return the values that templates use.

    >>> _used(["{{ words }} on {{ part.title }}"], {"words": 9, "part": {"title": "One", "of": 3}})
    [9, 'One']
    """
    paths = dict.fromkeys(path for text in texts if "{" in text for path in _paths(text))
    return [_value(values[name], keys) for name, keys in paths if name in values]


@lru_cache(maxsize=4_000)
def _paths(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names in a template, each with the keys that follow it."""
    found = (one for part in _EXPRESSION.findall(text) for one in _NAME.findall(part))
    return tuple((name, tuple("".join(key) for key in _KEY.findall(keys))) for name, keys in found)


def _value(value: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(value, Mapping):
            break  # a method of a text
        if key not in value:
            return value if hasattr(value, key) else None
        value = value[key]
    return value


def _digest(*parts: Any) -> str:
    data = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return blake2b(data.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
