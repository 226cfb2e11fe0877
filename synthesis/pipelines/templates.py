"""Templates of a pipeline: Jinja in its sandbox, strict about names.

Only what a person wrote in a pipeline's file is ever a template. What files hold and agents say is a value in one, so
braces in it mean nothing.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from agentx.storage.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

MAX_FILLED = 2_000_000
"""Characters that a template may come to."""


class TemplateInvalid(UsageError):
    """A template is not well-formed, or names something that it is not given."""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template in.

    Args:
        template: Text with ``{{ name }}``.
        values: By name.

    Raises:
        TemplateInvalid: It is no template, names something that there is not, or does what a sandbox forbids.

    >>> fill("drafts/ch{{ chapter.id }}-draft.md", {"chapter": {"id": "03"}})
    'drafts/ch03-draft.md'
    """
    if "{" not in template:
        return template
    from jinja2 import TemplateError  # noqa: PLC0415 - 60 ms, and only pipelines need it

    try:
        filled: list[str] = []
        size = 0
        for part in _compiled(template).generate(values):
            filled.append(part)
            size += len(part)
            if size > MAX_FILLED:
                raise TemplateInvalid(f"a template comes to more than {MAX_FILLED:,} characters")
    except TemplateError as error:
        raise TemplateInvalid(f"a template cannot be filled: {error.message or error}") from error
    except (
        ArithmeticError,
        TypeError,
        ValueError,
        AttributeError,
        LookupError,
        RecursionError,
        MemoryError,
    ) as error:
        raise TemplateInvalid(f"a template cannot be filled: {error}") from error
    return "".join(filled)


@lru_cache(maxsize=1_000)
def _compiled(template: str) -> "Template":
    return _environment().from_string(template)


@cache
def _environment() -> "SandboxedEnvironment":
    from jinja2 import StrictUndefined  # noqa: PLC0415 - as above
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
