"""``agentx mcp``: the protocol over standard input and output, for a host that starts this program."""

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentx.core.long_lived import collect_garbage
from agentx.mcp.messages import McpAnswer, McpRequest, UserQuestion
from agentx.mcp.protocol import McpPlace, Protocols
from agentx.mcp.resident import Resident
from agentx.settings import Settings

_THREADS = 8


class _Desk:
    """Asks the resident process in threads, so that the host is heard meanwhile."""

    def __init__(self, resident: Resident, threads: ThreadPoolExecutor) -> None:
        self._resident = resident
        self._threads = threads

    async def ask(self, _place: McpPlace, request: McpRequest) -> McpAnswer:
        """Answer a question."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._resident.ask, request)

    async def decide(self, _place: McpPlace, question: UserQuestion, asked: str, *, approved: bool) -> None:
        """Record what the user answered, as the user's."""

        def told() -> None:
            self._resident.decide(question, asked, approved=approved)

        await asyncio.get_running_loop().run_in_executor(self._threads, told)


def serve_stdio(place: McpPlace, settings: Settings) -> None:
    """Serve one host until it closes standard input.

    Args:
        place: The workspace, and the tools that are offered.
        settings: The settings from the environment.
    """
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # a host shows its user what is on stderr
    collect_garbage()
    resident = Resident(os.path.abspath(place.directory), settings)
    threads = ThreadPoolExecutor(_THREADS, "agentx-mcp")
    threads.submit(resident.begin)
    try:
        asyncio.run(_served(Protocols(_Desk(resident, threads), lambda _ctx: place)))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        resident.close()


async def _served(protocols: Protocols) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - heavy

    server: Any = protocols.server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
