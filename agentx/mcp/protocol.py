"""The protocol: the SDK's server with our tools, resources and prompts, for both transports."""

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from agentx import __version__
from agentx.mcp.catalogue import DEFAULT, Profile, listed
from agentx.mcp.messages import McpAnswer, McpRequest, UserQuestion
from agentx.mcp.offers import PROMPTS, TEMPLATES
from agentx.storage.errors import AgentXError
from agentx.storage.text import one_line

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.context import ServerRequestContext

MOST_ARGUMENTS = 2 << 20
"""Maximum size of the arguments of a request, in characters as JSON."""

INSTRUCTIONS = (
    "AgentX keeps what the user of this project demands, ruled out and decided, and the whole history. "
    "Call `context` with the user's request before you begin; do what it lists as demands, never propose "
    "what it lists as ruled out. Call `check` before a command or a write that may break a rule: `deny` "
    "forbids it, `ask` needs the user's word. Call `remember` with the user's exact words when they state a "
    "rule, a refusal or a decision."
)
_ASKED_S = 600.0
"""How long the user is waited for."""

_MOST_OPEN = 256
"""Maximum number of questions to users that wait for a retry of their call."""

_FORM = {
    "type": "object",
    "properties": {"agree": {"type": "boolean", "title": "I agree"}},
    "required": ["agree"],
}
_KEY = "user"

_NO_RESOURCE = -32002
"""Error code of a resource that cannot be read, until the protocol of 2026."""


class McpPlace(msgspec.Struct, frozen=True):
    """What a request is about: a directory in the workspace, and the tools that are offered."""

    directory: str
    profile: Profile = "default"


class Desk(Protocol):
    """What answers questions about workspaces."""

    async def ask(self, place: McpPlace, request: McpRequest) -> McpAnswer:
        """Answer a question."""
        ...

    async def decide(self, place: McpPlace, question: UserQuestion, asked: str, *, approved: bool) -> None:
        """Record what a user answered, as the user's."""
        ...


class _Open(msgspec.Struct, frozen=True):
    """A question that a user is asked between two requests of the host."""

    place: McpPlace
    request: McpRequest
    question: UserQuestion


class Protocols:
    """The handlers of the SDK's server.

    Args:
        desk: Answers questions.
        place_of: Tells what a request is about.
    """

    def __init__(self, desk: Desk, place_of: Callable[["ServerRequestContext[Any]"], McpPlace]) -> None:
        from mcp import types  # noqa: PLC0415 - loaded by `agentx mcp` and by the server's HTTP alone
        from mcp.server.lowlevel import Server  # noqa: PLC0415 - as above
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - as above
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415 - as above

        self._types, self._error, self._modern = types, MCPError, MODERN_PROTOCOL_VERSIONS
        self._desk = desk
        self._place_of = place_of
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self.server: Server[Any] = Server(
            "agentx",
            version=__version__,
            title="AgentX",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.server.middleware.clear()  # no telemetry that nobody asked for

    # --- tools ------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Any, _params: Any) -> "types.ListToolsResult":
        place = self._place_of(ctx)
        if place.profile == "default":
            tools = [listed(tool) for tool in DEFAULT]
        else:
            tools = (await self._answered(ctx, "tools")).listed
        return self._types.ListToolsResult(tools=[self._types.Tool.model_validate(tool) for tool in tools])

    async def _call_tool(
        self, ctx: Any, params: "types.CallToolRequestParams"
    ) -> "types.CallToolResult | types.InputRequiredResult":
        if too_large := _too_large(params.arguments):
            return self._result(McpAnswer(text=too_large, failed=True))
        place = self._place_of(ctx)
        request = self._request(ctx, "call", params.name, params.arguments, may_ask=self._can_ask(ctx))
        if params.request_state is not None:
            return await self._continued(ctx, request, params)
        made = await self._desk.ask(place, request)
        if made.ask is None:
            return self._result(made)
        waiting = _Open(place, request, made.ask)
        if ctx.protocol_version in self._modern:
            return self._input_required(waiting)
        agreed = await self._elicited(ctx, made.ask)
        return self._result(await self._decided(ctx, waiting, agreed=agreed))

    async def _continued(
        self, ctx: Any, request: McpRequest, params: "types.CallToolRequestParams"
    ) -> "types.CallToolResult":
        """Go on with a call whose user was asked between two requests."""
        waiting = self._open.pop(params.request_state or "", None)
        if waiting is None or waiting.request != request:
            text = "The question to the user has expired; call the tool again."
            return self._result(McpAnswer(text=text, failed=True))
        answer = (params.input_responses or {}).get(_KEY)
        agreed = _agreed(answer) if isinstance(answer, self._types.ElicitResult) else None
        return self._result(await self._decided(ctx, waiting, agreed=agreed))

    def _input_required(self, waiting: _Open) -> "types.InputRequiredResult":
        state = secrets.token_urlsafe(16)
        self._open[state] = waiting
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        form = self._types.ElicitRequestFormParams(message=waiting.question.text, requested_schema=_FORM)
        request = self._types.ElicitRequest(params=form)
        return self._types.InputRequiredResult(input_requests={_KEY: request}, request_state=state)

    async def _elicited(self, ctx: Any, question: UserQuestion) -> bool | None:
        """Ask the user through the host; ``None`` if there was no answer."""
        try:
            async with asyncio.timeout(_ASKED_S):
                answer = await ctx.session.elicit_form(question.text, _FORM, ctx.request_id)
        except (self._error, TimeoutError, ValueError):  # the host cannot, or its answer is no answer
            return None
        return _agreed(answer)

    async def _decided(self, ctx: Any, waiting: _Open, *, agreed: bool | None) -> McpAnswer:
        """Do what the user decided; without a decision, what is done where nobody can be asked."""
        question, place = waiting.question, waiting.place
        alone = msgspec.structs.replace(waiting.request, may_ask=False)
        if agreed is None:
            if question.remember:
                return await self._desk.ask(place, alone)
            text = f"The user did not answer. `agentx approve {question.call_id}` lets it run."
            return McpAnswer(text=text, failed=True)
        asked = f"{one_line(_client(ctx)) or 'a host'} over MCP"
        if question.remember and not agreed:
            return McpAnswer(text="Not kept: the user does not want it remembered.")
        try:
            await self._desk.decide(place, question, asked, approved=agreed)
        except AgentXError as error:
            return McpAnswer(text=str(error), failed=True)
        if question.remember:
            return McpAnswer(text=f"Kept as the user's: {question.remember[1]}")
        return await self._desk.ask(place, msgspec.structs.replace(alone, call_id=question.call_id))

    def _can_ask(self, ctx: Any) -> bool:
        can = ctx.session.client_capabilities
        elicits = can.elicitation if can is not None else None
        if elicits is None or (elicits.url is not None and elicits.form is None):
            return False
        return ctx.protocol_version in self._modern or bool(ctx.session.can_send_request)

    def _result(self, made: McpAnswer) -> "types.CallToolResult":
        text = self._types.TextContent(type="text", text=made.text)
        return self._types.CallToolResult(content=[text], is_error=made.failed)

    # --- resources and prompts --------------------------------------------------------------------

    async def _list_resources(self, ctx: Any, params: Any) -> "types.ListResourcesResult":
        made = await self._answered(ctx, "resources", arguments={"cursor": params.cursor if params else ""})
        found = [self._types.Resource.model_validate(one) for one in made.listed]
        return self._types.ListResourcesResult(resources=found, next_cursor=made.next_cursor or None)

    async def _list_templates(self, _ctx: Any, _params: Any) -> "types.ListResourceTemplatesResult":
        found = [self._types.ResourceTemplate.model_validate(one) for one in TEMPLATES]
        return self._types.ListResourceTemplatesResult(resource_templates=found)

    async def _read_resource(
        self, ctx: Any, params: "types.ReadResourceRequestParams"
    ) -> "types.ReadResourceResult":
        uri = str(params.uri)
        made = await self._answered(ctx, "read", uri)
        text = self._types.TextResourceContents(uri=uri, text=made.text, mime_type=made.mime)
        return self._types.ReadResourceResult(contents=[text])

    async def _list_prompts(self, _ctx: Any, _params: Any) -> "types.ListPromptsResult":
        return self._types.ListPromptsResult(
            prompts=[self._types.Prompt.model_validate(one) for one in PROMPTS]
        )

    async def _get_prompt(self, ctx: Any, params: "types.GetPromptRequestParams") -> "types.GetPromptResult":
        made = await self._answered(ctx, "prompt", params.name, dict(params.arguments or {}))
        text = self._types.TextContent(type="text", text=made.text)
        return self._types.GetPromptResult(messages=[self._types.PromptMessage(role="user", content=text)])

    # --- questions --------------------------------------------------------------------------------

    async def _answered(
        self, ctx: Any, kind: Any, name: str = "", arguments: dict[str, Any] | None = None
    ) -> McpAnswer:
        """Ask what is no tool call.

        Raises:
            MCPError: It failed; what to do is in the message.
        """
        if too_large := _too_large([name, arguments]):
            raise self._error(self._types.INVALID_PARAMS, too_large)
        made = await self._desk.ask(self._place_of(ctx), self._request(ctx, kind, name, arguments))
        if made.failed:
            legacy = kind == "read" and ctx.protocol_version not in self._modern
            raise self._error(_NO_RESOURCE if legacy else self._types.INVALID_PARAMS, made.text)
        return made

    def _request(
        self, ctx: Any, kind: Any, name: str = "", arguments: Any = None, *, may_ask: bool = False
    ) -> McpRequest:
        return McpRequest(
            kind=kind,
            name=name,
            arguments=arguments or {},
            profile=self._place_of(ctx).profile,
            agent=_client(ctx),
            may_ask=may_ask,
        )


def _client(ctx: Any) -> str:
    """Return the name that a host gives itself."""
    params = ctx.session.client_params
    return str(params.client_info.name)[:100] if params is not None else ""


def _agreed(answer: Any) -> bool | None:
    """Return whether a user agreed; ``None`` if the form was dismissed."""
    if answer.action == "cancel":
        return None
    return answer.action == "accept" and (answer.content or {}).get("agree") is True


def _too_large(arguments: Any) -> str:
    """Return why arguments are refused: their size, or that they are no JSON; empty if they are not."""
    try:
        size = len(json.dumps(arguments))
    except (ValueError, RecursionError):
        return "The arguments are not JSON."
    if size > MOST_ARGUMENTS:
        return f"The arguments have more than {MOST_ARGUMENTS:,} characters: pass less, or in parts."
    return ""
