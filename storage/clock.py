"""UTC time stamps, in the form in which events carry them."""

from datetime import UTC, datetime


def stamp(moment: datetime | None = None, *, timespec: str = "microseconds") -> str:
    """Format a time as ``2026-11-20T18:00:00.000000Z``.

    Args:
        moment: The time; one without a time zone is taken for UTC. The current time by default.
        timespec: The precision, as in :meth:`datetime.isoformat`.
    """
    moment = datetime.now(UTC) if moment is None else moment
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
