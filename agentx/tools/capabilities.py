"""Capabilities: tools and credentials, each with a command that checks whether it works and its last result.

Only the user adds such a command. It runs like the checks of the task: in a copy of the artifacts, with a
time limit and without the environment's secrets; isolated, without network and home directory
(:mod:`agentx.quality.sandbox`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.engine.engine import Engine
from agentx.memory import editing
from agentx.policy.resource_lookup import credentials
from agentx.quality.sandbox import SandboxError, run_in_copy
from agentx.storage.errors import UsageError
from agentx.storage.events.types import CapabilityChecked, Draft
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import CapabilityDetail, MemoryItem, Status
from agentx.tools.quality_tools import sandbox_policy
from agentx.trust.trusted_items import of_capability

TIMEOUT_S = 20.0
"""A capability that takes longer counts as broken."""

MAX_OUTPUT_BYTES = 10_000
MAX_COMMAND = 1_000

ACTOR = "engine:capabilities"


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an open workspace.

    Attributes:
        engine: The workspace.
    """

    engine: Engine

    def all(self, status: Status | None = "active") -> list[MemoryItem]:
        """Return the capabilities with a status (``None`` for all), oldest first, with their last results."""
        return editing.listed(self.engine.snapshot(), "capability", status)

    def credentials(self) -> list[str]:
        """Return the names of environment variables that look like credentials; never their values."""
        settings = self.engine.settings
        return credentials({**settings.environ, **settings.keys})

    def add(self, name: str, command: str, *, domain: str = "", agent: str = "") -> MemoryItem:
        """Add a tool or a credential and the command that checks it; the command is not run yet.

        Args:
            name: A name such as "GitHub access".
            command: Exits with 0 if the capability works; its first output line gives details.
            domain: What it belongs to ("payments").
            agent: Role of the agent that has it; empty for all.

        Raises:
            UsageError: The name or the command is empty or too long, the command holds a secret, or there is
                another capability with this name and role.
        """
        name, command, agent = one_line(clean(name)), command.strip(), one_line(agent)
        if not name or not command:
            raise UsageError(
                "A capability needs a name and a command: `agentx agent capability add NAME --command …`."
            )
        if len(name) + len(command) > MAX_COMMAND:
            raise UsageError(
                f"Name and command have at most {MAX_COMMAND:,} characters; put longer commands in a script."
            )
        if clean(command) != command:
            raise UsageError(
                "The command contains a possible secret; have it read the secret from a file or variable."
            )
        with self.engine.write_path.exclusive():
            named = (name.casefold(), agent)
            same = next((one for one in self.all() if (one.text.casefold(), one.agent) == named), None)
            if same is not None:
                raise UsageError(
                    f"A capability of that name already exists: {same.id}; "
                    "retire it first with `agentx memory retire`."
                )
            detail, actor = CapabilityDetail(command=command), self.engine.settings.actor
            item = editing.write_down(
                self.engine, "capability", name, detail, actor, domain=one_line(domain), agent=agent
            )
        if note := self.engine.trust.keep(of_capability(item.id, detail)):
            self.engine.write_path.notes.append(note)
        return item

    def check(self, names: Sequence[str] = ()) -> list[MemoryItem]:
        """Run the commands of some capabilities (all, if none is named), and record each result.

        Args:
            names: Their IDs.

        Returns:
            The checked capabilities in their new state.

        Raises:
            NoSuchItem: No item has this ID.
            UsageError: The item is not a capability.
            Restricted: The command came with the workspace and is not trusted.
        """
        items = [self._find(name) for name in dict.fromkeys(names)] or self.all()
        for item in items:
            if isinstance(item.detail, CapabilityDetail):
                self._run(item.id, item.detail)
        self.engine.write_path.commit()
        return [editing.find(self.engine, item.id) for item in items]

    def _find(self, name: str) -> MemoryItem:
        item = editing.find(self.engine, name)
        if item.kind != "capability":
            raise UsageError(
                f"{name} is a {item.kind.replace('_', ' ')}, not a capability. "
                "See `agentx agent capability list`."
            )
        return item

    def _run(self, name: str, detail: CapabilityDetail) -> None:
        self.engine.trust.require_item(of_capability(name, detail))
        try:
            result = run_in_copy(
                self.engine.artifacts.root,
                detail.command,
                timeout_s=TIMEOUT_S,
                max_output_bytes=MAX_OUTPUT_BYTES,
                policy=sandbox_policy(self.engine, "the capability"),
                collect_changes=False,
            )
            said = (
                result.output if result.output.strip() else f"It printed nothing (exit {result.exit_code})."
            )
            said = f"It was ended after {TIMEOUT_S:g} s." if result.timed_out else said
            exit_code = result.exit_code
        except SandboxError as error:
            said, exit_code = str(error), None
        checked = CapabilityChecked(
            item=name, exit_code=exit_code, output=self.engine.write_path.body(clean(said))
        )
        self.engine.write_path.record([Draft(data=checked, actor=ACTOR)])
