"""Capabilities: the tools and credentials that exist, each with a command that says whether it works, and what it said last.

Only a person names such a command. It is run where the checks of the task are run: in a copy of the artifacts, with a time
limit and without the environment's secrets; isolated, without network and home (:mod:`agentx.quality.sandbox`).
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
from agentx.trust.items import of_capability

TIMEOUT_S = 20.0
"""A capability answers by then, or it does not work."""

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
        """The capabilities with a status (``None`` for all), oldest first, each with its last result."""
        return editing.listed(self.engine.snapshot(), "capability", status)

    def credentials(self) -> list[str]:
        """The names of environment variables that look like credentials; never their values."""
        settings = self.engine.settings
        return credentials({**settings.environ, **settings.keys})

    def add(self, name: str, command: str, *, domain: str = "", agent: str = "") -> MemoryItem:
        """Name a tool or a credential, and the command that finds out whether it works; it is not run yet.

        Args:
            name: What it is: "GitHub access".
            command: Exits with 0 where it works; its first line says more.
            domain: What it belongs to ("payments").
            agent: Role of the agent that has it; empty for all.

        Raises:
            UsageError: One of them is empty or too long, or there is another of that name and role.
        """
        name, command, agent = one_line(clean(name)), command.strip(), one_line(agent)
        if not name or not command:
            raise UsageError(
                "A capability needs a name and a command: `agentx capability add NAME --command …`."
            )
        if len(name) + len(command) > MAX_COMMAND:
            raise UsageError(
                f"Name and command have at most {MAX_COMMAND:,} characters; put what is longer into a script."
            )
        if clean(command) != command:
            raise UsageError(
                "The command holds what looks like a secret: let it read that from where it is kept."
            )
        with self.engine.write_path.exclusive():
            named = (name.casefold(), agent)
            same = next((one for one in self.all() if (one.text.casefold(), one.agent) == named), None)
            if same is not None:
                raise UsageError(
                    f"There is a capability of that name, {same.id}; retire it first with `agentx memory retire`."
                )
            detail, actor = CapabilityDetail(command=command), self.engine.settings.actor
            item = editing.write_down(
                self.engine, "capability", name, detail, actor, domain=one_line(domain), agent=agent
            )
        if note := self.engine.trust.keep(of_capability(item.id, detail)):
            self.engine.write_path.notes.append(note)
        return item

    def check(self, names: Sequence[str] = ()) -> list[MemoryItem]:
        """Run the commands of some capabilities (of all where none is named), and record what each said.

        Args:
            names: Their ids.

        Returns:
            They as they are now.

        Raises:
            NoSuchItem: There is no item of such an id.
            UsageError: It is no capability.
            Restricted: Its command came with the workspace, and nobody trusts it.
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
                f"{name} is a {item.kind.replace('_', ' ')}, no capability; see `agentx capability list`."
            )
        return item

    def _run(self, name: str, detail: CapabilityDetail) -> None:
        self.engine.trust.require_item(of_capability(name, detail))
        try:
            result = run_in_copy(
                self.engine.write_path.artifacts.root,
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
