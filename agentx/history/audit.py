"""The morning audit: what happened in some workspaces since a moment, and what the user should do."""

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.log.history import told_already
from agentx.synthesis.learning.auditing import Audit, Cost, Todo, audit


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Audits of some workspaces since a moment.

    Attributes:
        since: In the format of :attr:`agentx.storage.events.types.Event.at`.
        workspaces: In the requested order.
        costs: What each component used in all of them.
        todo: What to do in all of them; if there are several, each command names its workspace.
    """

    since: str
    workspaces: tuple[Audit, ...]
    costs: tuple[Cost, ...]
    todo: tuple[Todo, ...]


def begin(since: str, now: datetime, zone: tzinfo | None = None) -> str:
    """Return the moment that the user means, in UTC as events store it.

    Args:
        since: ``yesterday``, ``today``, or a date or time in ISO 8601; a day begins at midnight.
        now: The present, with its zone.
        zone: Zone of a time that names none; that of the machine by default.

    Raises:
        UsageError: ``since`` has none of these forms.

    >>> begin("yesterday", datetime(2026, 11, 22, 8, tzinfo=UTC), UTC)
    '2026-11-21T00:00:00.000000Z'
    """
    today = now.astimezone(zone).date()
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        moment = datetime.fromisoformat(days[since].isoformat() if since in days else since)
        if moment.tzinfo is None:
            moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
        at = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"Invalid time {since!r}; use yesterday, today, or a date or time such as 2026-11-20 or "
            "2026-11-20T18:00."
        ) from error
    return stamp(at)


def look_back(engine: Engine, since: str) -> Audit:
    """Audit what happened in a workspace since a moment of :func:`begin`, and its state; read-only."""
    return audit(engine.log.history.read(on_damage=told_already), since, str(engine.root))


def together(audits: Iterable[Audit], since: str) -> Report:
    """Combine the audits of some workspaces, with the total costs and to-dos."""
    workspaces = tuple(audits)
    costs: dict[str, Cost] = {}
    for cost in (cost for one in workspaces for cost in one.costs):
        before = costs.get(cost.component)
        costs[cost.component] = before + cost if before else cost
    todo = (
        _placed(item, one.root) if len(workspaces) > 1 else item for one in workspaces for item in one.todo
    )
    return Report(
        since=since,
        workspaces=workspaces,
        costs=tuple(sorted(costs.values(), key=lambda cost: (-cost.usd, cost.component))),
        todo=tuple(todo),
    )


def _placed(todo: Todo, root: str) -> Todo:
    """Name the workspace in a command, as the user would type it in the working directory."""
    path, here = Path(root), Path.cwd()
    short = str(path.relative_to(here)) if path.is_relative_to(here) and path != here else root
    command = todo.command.replace("agentx ", f"agentx -C {shlex.quote(short)} ", 1)
    return msgspec.structs.replace(todo, command=command)
