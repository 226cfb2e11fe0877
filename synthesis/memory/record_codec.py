"""The codec of the record, with the upcasters that read histories of earlier formats.

An earlier event keeps its line and its hash; only its payload is converted when it is read. An upcaster is
never removed. ``tests/workspaces/formats`` has a history of each format.
"""

from typing import Any

from agentx.storage.events.codec import Codec, Upcaster
from agentx.storage.events.facts import FACTS
from agentx.synthesis.memory.checks import with_present_checks
from agentx.synthesis.memory.conclusions import CONCLUSIONS
from agentx.synthesis.memory.items import FORMER_KINDS, FORMER_PREFIXES, LAPSED

_STATUSES = {"resolved": "closed", "superseded": "retired"}
"""The status of an item for a status of format 1.

An ``archived`` item was either a proposal that lapsed, which is ``closed``, or had been resolved for some
days, which is ``retired``.
"""


def record_codec() -> Codec:
    """Return a codec that writes the present format and reads all formats."""
    return Codec(FACTS | CONCLUSIONS, UPCASTERS)


def _from_format_1(concluded: dict[str, Any]) -> dict[str, Any]:
    """Convert a ``Concluded`` payload of format 1, which had seventeen kinds and seven statuses."""
    return concluded | {"changes": [_present(change) for change in concluded.get("changes", ())]}


def _present(change: dict[str, Any]) -> dict[str, Any]:
    if change["type"] == "add":
        item = change["item"]
        kind, sort = FORMER_KINDS.get(item["kind"], (item["kind"], ""))
        item = _with_sort({"detail": {"type": "note"}} | item | {"kind": kind}, sort)
        return change | {"item": _with_present_status(item)}
    return _with_present_status(_with_sort(change, FORMER_PREFIXES.get(change["id"][0], "")))


def _with_sort(fields: dict[str, Any], sort: str) -> dict[str, Any]:
    """Return the fields with the sort in their note, if they have a note."""
    detail = fields.get("detail")
    if not sort or detail is None or detail["type"] != "note":
        return fields
    return fields | {"detail": detail | {"sort": sort}}


def _with_present_status(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an item, or of a change to one, with the status that they have now."""
    if "status" not in fields:
        return fields
    status = fields["status"]
    if status == "archived":
        lapsed = fields.get("reason", "").startswith(LAPSED)
        return fields | {"status": "closed" if lapsed else "retired"}
    return fields | {"status": _STATUSES.get(status, status)}


def _from_format_2(concluded: dict[str, Any]) -> dict[str, Any]:
    """Convert a ``Concluded`` payload of format 2, in which a candidate was called a proposal."""
    return concluded | {"changes": [_as_candidate(change) for change in concluded.get("changes", ())]}


def _as_candidate(change: dict[str, Any]) -> dict[str, Any]:
    if change["type"] == "add":
        return change | {"item": _with_candidate(change["item"])}
    return _with_candidate(change)


def _with_candidate(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"status": "candidate"} if fields.get("status") == "proposed" else fields


def _from_format_3(concluded: dict[str, Any]) -> dict[str, Any]:
    """Convert a ``Concluded`` payload of format 3, in which an item had at most one check, of four kinds."""
    return concluded | {"changes": [_with_checks(change) for change in concluded.get("changes", ())]}


def _with_checks(change: dict[str, Any]) -> dict[str, Any]:
    fields = change["item"] if change["type"] == "add" else change
    if not fields.get("detail"):
        return change
    fields = fields | {"detail": with_present_checks(fields["detail"])}
    return change | {"item": fields} if change["type"] == "add" else fields


UPCASTERS: dict[tuple[str, int], Upcaster] = {
    ("Concluded", 1): _from_format_1,
    ("Concluded", 2): _from_format_2,
    ("Concluded", 3): _from_format_3,
}
"""By event type and version, the function that converts its payload to the next version."""
