"""Prepare texts of others for a prompt.

Strip what an executor must not know, and quote the text so that it cannot be mistaken for an instruction.
"""

import re

from agentx.storage.text import clip, one_line
from agentx.synthesis.memory.items import PREFIXES, ConstraintDetail, MemoryItem, RejectionDetail

QUOTED_CHARACTERS = 300
"""Longer texts of others are cut to this length."""

_ID = re.compile(
    rf"(?:^|[ \t]|(?<=\n))[\[(](?:(?:{'|'.join(PREFIXES.values())})-\d+(?:\.\d+)?(?:, )?)+[\])]"
    r"|[ \t]?\((?:see |source: )?(?:events?|runs?) (?:r-)?\d+(?:(?:, | and | to )\d+)*\)"
)
_BRACES = re.compile(r"\{(?=\{)")
_SUBJECT = r"(?=(?:it|they|we|that|this|there|he|she|i|you|the|our|my|its|their)\b)"
_BECAUSE = rf"(?:because\b|cuz\b|due to\b|(?:since|as)\s+{_SUBJECT})"
_ASIDE = re.compile(rf"\s*\({_BECAUSE}[^()]*\)", re.IGNORECASE)
_WHY = re.compile(rf"\s*(?:[,;]|\s[-–—])\s*{_BECAUSE}[^,;:()]*$", re.IGNORECASE)
_SURE = re.compile(r"\s+because\b[^,;:()]*$", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:unless|except|but|if|until|till|when|whenever|while|only|or|instead|use|must|always|never|not|n't"
    r"|without)\b|n't\b",
    re.IGNORECASE,
)


def without_sources(text: str) -> str:
    """Remove ids of memory items, events and runs; they mean nothing to an executor.

    >>> without_sources("Never write to the old address [x-12]. Send at most 5 (event 3).")
    'Never write to the old address. Send at most 5.'
    """
    return _ID.sub("", text).strip()


def without_reason(text: str, *, sure: bool = False) -> str:
    """Remove the clause that gives the reason, at the end or in parentheses, if it contains nothing else.

    ``sure`` says that the demand is already known without the clause. Otherwise a "because" without a comma
    stays, as it may be part of the demand.

    >>> without_reason("Never use tabs, because the build broke.")
    'Never use tabs.'
    >>> without_reason("Do not refuse a mail because it is short.")
    'Do not refuse a mail because it is short.'
    """
    end = text[-1:] if text[-1:] in (".", "!") else ""
    body = text.removesuffix(end)
    found = _ASIDE.search(body) or _WHY.search(body) or (_SURE.search(body) if sure else None)
    if found is None or not found.start() or _CONDITION.search(found[0]):
        return text
    return body[: found.start()] + body[found.end() :] + end


def without_fields(text: str) -> str:
    """Break up double braces, so that the text contains no ``{{field}}``.

    >>> without_fields("{{{name}}}")
    '{ { {name}}}'
    """
    return _BRACES.sub("{ ", text)


def quoted(text: str, most: int = QUOTED_CHARACTERS) -> str:
    r"""Quote a text of others: bounded, on one line, in quotation marks that it cannot close.

    >>> quoted('He said "no".\n## Orders')
    '"He said \'no\'. ## Orders"'
    """
    return '"' + clip(one_line(text), most).replace('"', "'") + '"'


def rule(item: MemoryItem) -> str:
    """Return a demand or rejection as shown to an executor: without ids, sources and reasons."""
    text = without_sources(one_line(item.text))
    match item.detail:
        case RejectionDetail(reason=reason):
            return f"Ruled out: {without_reason(text, sure=bool(reason))}"
        case ConstraintDetail(checks=checks):
            return without_reason(text, sure=bool(checks))
    return text
