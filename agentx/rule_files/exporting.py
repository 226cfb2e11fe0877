"""Export the active rules to a file that other agents read, between markers.

What a person changed between the markers is proposed before the block is written again.
"""

import contextlib
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.history.undo_restore import EXPORT
from agentx.recording.staging import Content
from agentx.rule_files.places import FORMS, SUFFIXES, RulePlace, form_of, place_of, read_text
from agentx.rule_files.proposing import offered, propose
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.rule_file_events import RulesExported
from agentx.storage.events.types import Draft, ToolCallExecuted
from agentx.storage.files.durable import write_file
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.rule_files import block
from agentx.synthesis.rule_files.block import Block, Place
from agentx.synthesis.rule_files.differences import differences
from agentx.synthesis.rule_files.statements import same_words, split

ACTOR = "engine:export"

_CURSOR = "---\ndescription: Rules of this project\nalwaysApply: true\n---\n"
"""The front matter of a new Cursor rule that is in every request."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What an export did.

    Attributes:
        path: The file's name in the record.
        written: Whether the file was changed; of a check, whether it would be.
        rules: Number of rules in it.
        more: Number of rules that did not fit.
        tokens: Size of the block.
        proposals: What a person changed between the markers, as proposals.
        edited: Whether what is between the markers was changed by hand.
    """

    path: str
    written: bool
    rules: int
    more: int
    tokens: int
    proposals: tuple[MemoryItem, ...] = ()
    edited: bool = False


def export(
    engine: Engine,
    form: str,
    path: Path | None = None,
    *,
    max_tokens: int = block.MAX_TOKENS,
    check: bool = False,
) -> Exported:
    """Write the active rules to a file; what stands outside the markers is kept byte for byte.

    Args:
        engine: The workspace.
        form: ``agents-md``, ``claude-md`` or ``cursor-rules``.
        path: The file; by default the usual one of the project.
        max_tokens: Budget of the block.
        check: Change nothing; only report whether the file is up to date.

    Raises:
        UsageError: The form does not exist, the markers are broken, or the file cannot be used.
    """
    if form not in FORMS:
        raise UsageError(f"Unknown form {form!r}; use one of: {', '.join(FORMS)}.")
    target = place_of(engine, path or engine.artifacts.root / FORMS[form])
    if target.path.suffix not in SUFFIXES:
        raise UsageError(f"{target.name} is no Markdown file (.md or .mdc); rules are exported to one.")
    if not check:
        engine.write_path.require_writable()
    with contextlib.nullcontext() if check else engine.write_path.exclusive():
        exists = target.path.exists()
        text = read_text(target.path) if exists else _CURSOR if form == "cursor-rules" else ""
        place = block.find(text)
        proposals = () if check or place is None else _edits(engine, target, place)
        made = block.render(_not_there(engine, target, text), max_tokens)
        new = block.insert(text, made, place)
        changed = new != text or not exists
        if changed and not check:
            _write(engine, target, new, made)
    return Exported(
        path=target.name, written=changed, rules=len(made.items), more=made.more, tokens=made.tokens,
        proposals=tuple(proposals), edited=place is not None and place.is_edited,
    )  # fmt: skip


def _not_there(engine: Engine, target: RulePlace, text: str) -> list[MemoryItem]:
    """Return the items to export, without those that the file states outside the markers anyway."""
    items = block.exported(engine.log.state.items.values())
    if not offered(items, target.name):
        return items
    there = {same_words(one.text) for one in split(block.without(text)).statements}
    return [item for item in items if same_words(item.text) not in there]


def _edits(engine: Engine, target: RulePlace, place: Place) -> list[MemoryItem]:
    """Propose what was changed between the markers since they were written."""
    if not place.is_edited:
        return []
    items = engine.log.state.items
    base = engine.log.event_of(_key(place.digest))
    names = base.data.items if base is not None and isinstance(base.data, RulesExported) else ()
    former = [items[name] for name in names if name in items and items[name].status == "active"]
    made = differences(block.stated(place, target.name), former, items, again=True)
    return propose(engine, target.name, place.body, made, how="edited", actor="watch")


def _key(digest: str) -> str:
    return f"rules-exported:{digest}"


def _write(engine: Engine, target: RulePlace, text: str, made: Block) -> None:
    body = engine.write_path.body(made.body)
    said = Draft(
        data=RulesExported(path=target.name, items=made.items, body=body), actor=ACTOR, key=_key(made.digest)
    )
    beside = [] if engine.log.has_key(said.key) else [said]
    data = text.encode("utf-8", errors="surrogateescape")
    if not target.inside:
        engine.write_path.record(beside)
        try:
            write_file(target.path, data)
        except OSError as error:
            raise AgentXError(f"{target.path} cannot be written: {error.strerror}.") from error
        return
    call_id = f"export-{engine.log.state.seq + 1}"
    engine.write_path.write(
        {target.name: Content(data)},
        lambda changes: ToolCallExecuted(
            call_id=call_id, tool=EXPORT, status="SUCCEEDED", arguments={"path": target.name}, changes=changes
        ),
        actor=ACTOR,
        check=lambda: beside,
    )


def keep(engine: Engine) -> list[Exported]:
    """Bring the files of ``export.keep`` up to date; return those that changed or were edited."""
    done = [
        export(
            engine, form_of(name), engine.artifacts.root / name, max_tokens=engine.config.export.max_tokens
        )
        for name in engine.config.export.keep
    ]
    return [one for one in done if one.written or one.edited]
