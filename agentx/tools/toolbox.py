"""All tools of an agent in one object."""

from agentx.tools.memory_tools import MemoryTools


class Toolbox(MemoryTools):
    """Storage, quality and memory tools; ``names()`` lists what a workspace allows.

    From Python::

        ws.tools.write_file("report.md", "# Report")        # returns what it did, raises our errors
        ws.tools.call("write_file", {"path": "report.md"})  # a ToolResult, as an agent gets it
    """
