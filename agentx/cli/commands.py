"""Every command of the command line: its function, an example, whether it only reads, and who may run it.

Pure data, which the thin start reads as well; a command's module is imported when it is called.
"""

from collections.abc import Sequence

from agentx.storage.errors import UsageError

DAILY, RECURRING, BESIDE, BACK, SAFE, SETUP = (
    "Every day",
    "Rules and recurring work",
    "Beside other agents",
    "Look back",
    "Keep safe",
    "Set up",
)
"""Titles of the parts of ``agentx --help``, in order."""

TOP: dict[str, dict[str, str]] = {
    DAILY: {
        "init": "Create a workspace, empty or from an existing project.",
        "add": "Copy files and directories into the task.",
        "run": "Let an agent work on a message, and watch it.",
        "chat": "Talk with an agent that remembers.",
        "say": "Say something to the agents without starting a run.",
        "approve": "Approve or deny a pending tool call.",
        "undo": "Undo the latest change to the artifacts.",
        "status": "Show the state of the workspace.",
        "log": "List events.",
        "diff": "Compare two moments: files and memory.",
        "context": "Print the context that an agent would get, and why.",
        "search": "Search files, messages, memory and sources.",
        "memory": "List, add, edit, review and retire what is remembered.",
    },
    RECURRING: {
        "gate": "Check an action before it is taken, and grade a task after it.",
        "follow": "Let the rules of other workspaces hold here, too.",
        "flow": "Record procedures, and find the one for a task.",
        "schedule": "Run tasks by the clock, and report on them.",
        "fleet": "Run workspaces on many workers, over Git and a shared queue.",
        "done": "Say that an act was done, or was not.",
        "pipeline": "Run work of many steps by several agents.",
        "agent": "Agents: missions, dispatch, capabilities, directives, cognition.",
    },
    BESIDE: {
        "install": "Give another coding agent this memory, by hooks in its settings.",
        "uninstall": "Remove the hooks from another coding agent again.",
        "mcp": "Serve the workspace to other agents over MCP.",
        "import": "Import the transcripts of other agents, with full history.",
        "recap": "Show in one screen what was learned.",
        "export": "Write the active rules to a file that another agent reads.",
        "watch": "Record edits by people, editors and other agents.",
        "tool": "Call a tool of the workspace from any script.",
        "check": "Run the configured checks.",
        "record": "Record what another agent said and did.",
    },
    BACK: {
        "inspect": "Open a page that shows the workspace: timeline, context, memory.",
        "bisect": "Find the event that made an item or a file what it is.",
        "restore": "Restore a file or directory from an earlier moment.",
    },
    SAFE: {
        "verify": "Check the integrity of everything that is stored.",
        "repair": "Restore damaged or missing data.",
        "rebuild": "Rebuild state and index from the history.",
        "fork": "Create a new workspace from the history up to a moment.",
        "push": "Push to a Git remote.",
        "pull": "Pull from a Git remote.",
        "purge": "Delete a secret or personal data for good; rewrites history.",
    },
    SETUP: {
        "config": "Show and change settings.",
        "models": "List the models in use; install the embedding model.",
        "trust": "Review what a workspace runs, calls and reads, and trust it.",
        "doctor": "Check the installation and the workspace.",
        "serve": "Keep workspaces open, so that commands answer quickly.",
    },
}
"""What ``agentx --help`` lists: a line for each command and group, by part."""

GROUPS = {
    "agent mission": "Show and set what each agent is for.",
    "agent capability": "Check which tools and credentials work.",
    "agent cognition": "Report how a cognitive agent remembers, fetches and spends.",
}
"""A line for each group inside a group."""


class Entry:
    """A command.

    Attributes:
        function: ``MODULE:NAME`` of its function, below this package; its first parameter is the terminal.
        example: Arguments of one call, as its help shows them.
        reads: Whether it only reads and does not speak for the user, so that an agent's own command or
            program may call it.
        served: Whether the server may run it: it is short, asks nothing, and runs no program and no agent.
        again: Whether it does no harm to run it a second time if it is unknown whether it ran.
    """

    __slots__ = ("again", "example", "function", "reads", "served")

    def __init__(self, function: str, example: str, *flags: str) -> None:
        self.function = function
        self.example = example
        self.reads = _READS in flags
        self.served = _SERVED in flags
        self.again = self.reads or _AGAIN in flags


_READS, _SERVED, _AGAIN = "reads", "served", "again"

COMMANDS: dict[str, Entry] = {
    "init": Entry("work.init:init", 'init report --title "Quarterly report"'),
    "add": Entry("work.init:add", "add ../notes --to sources"),
    "run": Entry("work.run:run", 'run "Summarise the notes." --max-steps 20'),
    "chat": Entry("work.chat:chat", "chat --session diary"),
    "say": Entry("work.say:say", 'say "From now on, use British English."', _SERVED, _AGAIN),
    "approve": Entry("work.approving:approve", 'approve call_1_1 --deny --reason "it is needed"'),
    "done": Entry("agents.done:done", "done send_reminder patient=Ann appointment=4711"),
    "undo": Entry("work.undo:undo", "undo"),
    "status": Entry("look.status:status", "status", _READS, _SERVED),
    "log": Entry("look.status:log", "log -n 20 --type ToolCallExecuted", _READS, _SERVED),
    "diff": Entry("look.diff:diff", "diff HEAD~5 HEAD --patch", _READS, _SERVED),
    "context": Entry("look.context:context", 'context "change the orders" --explain', _READS, _SERVED),
    "search": Entry("look.context:search", 'search "sum of orders" -k 5', _READS, _SERVED),
    "memory list": Entry("memory.memory:list_items", "memory list --kind rejection", _READS, _SERVED),
    "memory show": Entry("memory.memory:show", "memory show c-3", _READS, _SERVED),
    "memory add": Entry("memory.memory:add", 'memory add "Never create a setup.py." --until June'),
    "memory edit": Entry("memory.memory:edit", 'memory edit c-3 "Never create a requirements.txt file."'),
    "memory check": Entry("memory.checks:check", "memory check c-3 --try"),
    "memory write-checks": Entry("memory.check_writing:write_by_model", "memory write-checks --all"),
    "memory retire": Entry("memory.memory:retire", "memory retire c-5", _SERVED),
    "memory pin": Entry("memory.memory:pin", "memory pin c-3", _SERVED),
    "memory merge": Entry("memory.memory:merge", "memory merge r-3 r-4"),
    "memory review": Entry("memory.review:review", "memory review --accept c-5"),
    "memory explain": Entry(
        "memory.memory:explain_message", 'memory explain "The README says: use tabs."', _READS
    ),
    "memory scribe": Entry("memory.scribe:scribe", "memory scribe --pending"),
    "memory maintain": Entry("memory.maintain:maintain", "memory maintain --dry-run"),
    "gate lessons": Entry("agents.gate:list_lessons", "gate lessons", _READS, _SERVED),
    "gate pre": Entry(
        "agents.gate:look_before", 'gate pre "deploy" --tool Bash --arguments -', _SERVED, _AGAIN
    ),
    "gate post": Entry("agents.gate:grade_after", 'gate post "Fixed the build" --pass', _SERVED),
    "flow list": Entry("memory.flow:list_flows", "flow list", _READS, _SERVED),
    "flow add": Entry("memory.flow:add_flow", 'flow add "deploy" --step "Build." --step "Upload."'),
    "flow show": Entry("memory.flow:show_flow", "flow show deploy", _READS, _SERVED),
    "flow edit": Entry("memory.flow:edit_flow", 'flow edit deploy --trigger "publish the site"'),
    "flow retire": Entry("memory.flow:retire_flows", "flow retire deploy"),
    "flow check": Entry("memory.flow:check_flow", 'flow check "Please publish the site."', _SERVED, _AGAIN),
    "flow backtest": Entry("memory.flow:backtest", "flow backtest --dry-run"),
    "schedule list": Entry("agents.schedule:list_schedules", "schedule list", _READS, _SERVED),
    "schedule add": Entry(
        "agents.schedule:add_schedule", 'schedule add "0 8 * * 1" "Read the mail." --zone Europe/Berlin'
    ),
    "schedule remove": Entry("agents.schedule:remove_schedule", "schedule remove read-the-mail"),
    "schedule next": Entry("agents.schedule:list_due", "schedule next --most 5", _READS),
    "schedule run-due": Entry("agents.schedule:run_due", "schedule run-due"),
    "schedule daemon": Entry("agents.schedule:daemon", "schedule daemon report ../news"),
    "schedule heartbeat": Entry("agents.schedule:heartbeat", "schedule heartbeat"),
    "schedule audit": Entry("look.audit:audit", "schedule audit --since yesterday", _READS),
    "fleet status": Entry("agents.fleet:status", "fleet status --live"),
    "fleet init": Entry("agents.fleet:initialise", "fleet init --remote '/srv/fleet/{workspace}.git'"),
    "fleet submit": Entry("agents.fleet:submit", 'fleet submit "Summarise the notes."'),
    "fleet worker": Entry("agents.fleet:work", "fleet worker --once"),
    "fleet search": Entry("agents.fleet:search", 'fleet search "sum of orders" --workspace report'),
    "fleet index": Entry("agents.fleet:index", "fleet index --publish"),
    "fleet drain": Entry("agents.fleet:drain", "fleet drain"),
    "fleet prune": Entry("agents.fleet:prune", "fleet prune --older 7"),
    "pipeline status": Entry("pipeline.run:show_status", "pipeline status", _READS),
    "pipeline new": Entry("pipeline.pipeline:write_new", "pipeline new essays"),
    "pipeline plan": Entry("pipeline.plan:show_plan", "pipeline plan essays.yaml", _READS),
    "pipeline run": Entry("pipeline.run:run_pipeline", "pipeline run essays.yaml"),
    "pipeline redo": Entry("pipeline.pipeline:redo_stage", 'pipeline redo write --reason "Too long."'),
    "pipeline verify": Entry("pipeline.upkeep:verify", "pipeline verify", _READS),
    "pipeline amend": Entry("pipeline.pipeline:amend_file", 'pipeline amend style.md --reason "New rule."'),
    "pipeline matrix": Entry("pipeline.plan:show_matrix", "pipeline matrix essays.yaml", _READS),
    "pipeline graph": Entry("pipeline.pipeline:draw", "pipeline graph essays.yaml --to essays.svg", _READS),
    "pipeline schema": Entry("pipeline.pipeline:show_schema", "pipeline schema", _READS),
    "agent mission list": Entry("agents.mission:list_missions", "agent mission list", _READS, _SERVED),
    "agent mission set": Entry(
        "agents.mission:set_one", 'agent mission set --agent writer "Readers come back."'
    ),
    "agent boot": Entry("look.context:boot", "agent boot --agent writer", _READS, _SERVED),
    "agent dispatch": Entry("agents.mission:dispatch_one", 'agent dispatch "publish the post"', _READS),
    "agent direct": Entry("agents.direct:direct", "agent direct --why"),
    "agent capability list": Entry("agents.gate:list_capabilities", "agent capability list", _READS, _SERVED),
    "agent capability add": Entry(
        "agents.gate:add_capability", 'agent capability add hugo --command "hugo version"'
    ),
    "agent capability check": Entry("agents.gate:check_capabilities", "agent capability check"),
    "agent cognition report": Entry("agents.cognition:report", "agent cognition report", _READS),
    "import discover": Entry("transfer.import_group:discover", "import discover", _READS),
    "import claude-code": Entry(
        "transfer.import_group:claude_code",
        "import claude-code ~/.claude/projects/-home-ann-shop --into memory",
    ),
    "import codex": Entry("transfer.import_group:codex", "import codex ~/.codex/sessions --into memory"),
    "import gemini": Entry("transfer.import_group:gemini", "import gemini ~/.gemini/tmp --into memory"),
    "import openhands": Entry(
        "transfer.import_group:openhands", "import openhands trajectory.json --into memory"
    ),
    "import swe-agent": Entry(
        "transfer.import_group:swe_agent", "import swe-agent trajectories --into memory"
    ),
    "import openai": Entry("transfer.import_group:openai", "import openai chats.jsonl --into memory"),
    "import aider": Entry(
        "transfer.import_group:aider", "import aider .aider.chat.history.md --into ../memory"
    ),
    "recap": Entry("transfer.recap:recap", "recap", _READS, _SERVED),
    "import rules": Entry("beside.import_rules:import_rules", "import rules AGENTS.md .cursor/rules"),
    "export show": Entry("beside.export:show", "export show", _READS, _SERVED),
    "export agents-md": Entry("beside.export:agents_md", "export agents-md --keep"),
    "export claude-md": Entry("beside.export:claude_md", "export claude-md --check"),
    "export cursor-rules": Entry("beside.export:cursor_rules", "export cursor-rules --max-tokens 1000"),
    "watch": Entry("beside.watch:watch", "watch --once"),
    "tool": Entry("beside.tool:tool", "tool write_file path=notes.md content=@notes.md --as ci"),
    "check": Entry("beside.check:check", "check tests"),
    "record": Entry("beside.record:record", 'record --role assistant "Done: the tests pass." --as ci'),
    "install": Entry("setup.install:install", "install claude-code"),
    "uninstall": Entry("setup.install:uninstall", "uninstall claude-code --user"),
    "bisect": Entry("look.diff:bisect", "bisect --path pyproject.toml", _READS),
    "inspect": Entry("look.inspect:inspect", "inspect --no-open"),
    "restore": Entry("work.undo:restore", "restore outlook.md --at 12"),
    "verify": Entry("keep.verify:verify", "verify", _READS),
    "repair": Entry("keep.verify:repair", "repair"),
    "rebuild": Entry("work.undo:rebuild", "rebuild"),
    "fork": Entry("keep.push:fork", "fork ../report-2 --at 12"),
    "push": Entry("keep.push:push", "push --url ../report.git"),
    "pull": Entry("keep.push:pull", "pull"),
    "follow": Entry("memory.follow:follow", "follow ../team-rules"),
    "purge": Entry("keep.purge:purge", "purge --event 12 --dry-run"),
    "config show": Entry("setup.config:show", "config show", _READS),
    "config get": Entry("setup.config:get", "config get limits.max_steps", _READS),
    "config set": Entry("setup.config:set_one", 'config set checks.tests.command "python -m pytest -q"'),
    "models list": Entry("setup.models:list_models", "models list", _READS),
    "models install": Entry("setup.models:install", "models install minilm"),
    "trust allow": Entry("keep.trust:allow", "trust allow --show"),
    "trust list": Entry("keep.trust:list_trusted", "trust list", _READS),
    "trust issue": Entry("keep.trust:issue", "trust issue --for 30"),
    "trust key": Entry("keep.trust:key", "trust key"),
    "doctor": Entry("setup.doctor:doctor", "doctor", _READS),
    "serve": Entry("setup.serve:serve", "serve --status"),
    "mcp": Entry("setup.mcp:mcp", "mcp --profile storage"),
}
"""Every command by its words. The first of a group is called if the group is called alone."""

MOVED = {
    "audit": "schedule audit",
    "backtest": "flow backtest",
    "boot": "agent boot",
    "capability": "agent capability",
    "cognition": "agent cognition",
    "daemon": "schedule daemon",
    "direct": "agent direct",
    "dispatch": "agent dispatch",
    "heartbeat": "schedule heartbeat",
    "maintain": "memory maintain",
    "mission": "agent mission",
    "scribe": "memory scribe",
}
"""Old spellings, which work for one release, by their first word."""


def below(group: str) -> dict[str, str]:
    """Return the words that may follow a group, each with a line for its help; empty for a command.

    The line of a command is empty: its docstring has it.

    >>> below("agent cognition")
    {'report': ''}
    """
    start = f"{group} "
    words = dict.fromkeys(name.removeprefix(start).split()[0] for name in COMMANDS if name.startswith(start))
    return {word: GROUPS.get(start + word, "") for word in words}


def spoken(arguments: Sequence[str]) -> list[str]:
    """Return every command that arguments may call, cautiously: any of their words may name a subcommand.

    >>> spoken(["memory", "show", "add"])
    ['memory show', 'memory add']
    >>> spoken(["agent", "--json"])
    ['agent mission list']
    """

    def reached(name: str) -> list[str]:
        words = list(below(name))
        named = [word for word in words if word in arguments[1:]] or words[:1]
        return [found for word in named for found in reached(f"{name} {word}")] or [name]

    return reached(arguments[0])


def find(arguments: Sequence[str]) -> str:
    """Return the command or group that arguments name, the longest one; empty for none.

    >>> find(["memory", "--json", "add", "list"])
    'memory add'
    """
    found = ""
    for word in arguments:
        if word.startswith("-"):
            continue
        longer = f"{found} {word}".lstrip()
        if longer not in COMMANDS and not below(longer):
            break
        found = longer
    return found


def front(arguments: Sequence[str]) -> list[str]:
    """Move ``-C DIR`` and ``--json`` to the front, where the application itself accepts them.

    Arguments after ``--`` keep their place.

    Raises:
        UsageError: No directory follows ``-C``.

    >>> front(["say", "hello", "-C", "tasks/report", "--json"])
    ['-C', 'tasks/report', '--json', 'say', 'hello']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    shared: list[str] = []
    own: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word == "-C":
            directory = next(words, "")
            if not directory:
                raise UsageError("-C needs a directory: `-C DIR`.")
            shared += [word, directory]
        elif word == "--json":
            shared.append(word)
        else:
            own.append(word)
    return [*shared, *own, *arguments[end:]]


def line(arguments: Sequence[str]) -> list[str]:
    """Return the arguments from the command's first word on; empty if they name no command.

    >>> line(["-C", "tasks/report", "--json", "say", "hello"])
    ['say', 'hello']
    """
    words = list(arguments)
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] == "-C" else 1]
    return words
