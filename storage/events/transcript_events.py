"""Payloads of what is imported from the transcripts of other agents, apart from messages and calls."""

import msgspec

from agentx.storage.events.types import Body, Event, Payload
from agentx.storage.text import shorten

_WORDS = 20


class HostRecordKept(Payload, frozen=True):
    """A record of a host's transcript that is neither a message nor a call, kept as it is.

    It is material: nobody's word. Examples: what the host itself put into the conversation (a summary, the
    output of a local command), arguments too long for the event of their call, a record of an unknown type.

    Attributes:
        host: The host, such as ``claude-code``.
        sort: What it is, in the host's or the importer's terms.
        body: Its text; for a record of an unknown type, its JSON.
        known: Whether the importer knows such records.
    """

    host: str
    sort: str
    body: Body
    known: bool = True

    def _line(self, _event: Event, /) -> str:
        return f"{self.host} recorded {self.sort}: {shorten(self.body.text, _WORDS)}"

    def _rank(self, _event: Event, /) -> int:
        return 1


class ModelUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and cost of a model in a transcript; the cost is 0 if the price is not known."""

    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


class TranscriptImported(Payload, frozen=True):
    """A transcript was read to its end. All figures are those of the whole file, as it was then.

    A file that grew is imported again; the event then replaces the earlier one of the same file.

    Attributes:
        host: The host, such as ``claude-code``.
        file: The transcript.
        digest: Hex blake2b-128 of what was read of it.
        sessions: Ids of its sessions, the runs of their events.
        project: Name of the project that the work was on.
        began: Time of its first record.
        ended: Time of its last record.
        size_bytes: Size of what was read.
        records: Number of records.
        counted: What became of them, by name.
        passed: Known records without content of their own, which were only counted, by type.
        unknown: Records of unknown types, which are kept, by type.
        unapplied: Of what this import added: edits of files whose content the transcript does not show, or
            that are not the import's.
        usage: What the models used.
    """

    host: str
    file: str
    digest: str
    sessions: tuple[str, ...] = ()
    project: str = ""
    began: str = ""
    ended: str = ""
    size_bytes: int = 0
    records: int = 0
    counted: dict[str, int] = msgspec.field(default_factory=dict)
    passed: dict[str, int] = msgspec.field(default_factory=dict)
    unknown: dict[str, int] = msgspec.field(default_factory=dict)
    unapplied: int = 0
    usage: tuple[ModelUsage, ...] = ()

    def _line(self, _event: Event, /) -> str:
        return f"Import {self.file} of {self.host}: {self.records} record{'s' * (self.records != 1)}"

    def _rank(self, _event: Event, /) -> int:
        return 7
