"""A model that plays each module of the loop, and what was put on record."""

import json

from agentx.synthesis.model.port import Reply, Usage

MEASURED = [
    "recognizer_latency_ms",
    "input_type",
    "recognizer_semantic_memories_count",
    "recognizer_has_episodic",
    "recognizer_utility_updates_count",
    "recognizer_prompt_tokens",
    "recognizer_completion_tokens",
    "decayer_triggered",
    "decayer_trigger_reason",
    "decayer_latency_ms",
    "decayer_prompt_tokens",
    "decayer_completion_tokens",
    "decayer_status",
    "activator_trigger_count",
    "activator_multi_trigger",
    "activator_latency_ms",
    "activator_prompt_tokens",
    "activator_completion_tokens",
    "dag_node_count",
    "dag_edge_count",
    "response_generation_latency_ms",
    "response_prompt_tokens",
    "response_completion_tokens",
    "total_latency_ms",
    "new_memories_stored",
    "evicted_memory_ids",
    "memory_link_stats",
    "topic_construction_action",
    "topic_construction_id",
    "topic_construction_summary",
    "thinking_iterations_used",
    "per_iteration_metrics",
    "thinking_loop_latency_ms",
]
"""Every key of the source's tables."""

INES = "Ines runs the harbour of Vila. We met Ines on Tuesday."
ASKED = "Who runs the harbour of Vila?"


class Scripted:
    """A model that answers each question of the loop by what it was given for it; nothing is made up.

    ``answer`` is its answer; ``recognized`` changes what it recognises, and ``assessed`` what it is lacking.
    A text instead of an object is the whole reply. ``reflect`` is its reflection.
    """

    name = "a/model"

    def __init__(self, answer="It is Ines.", recognized=(), assessed=(), reply=None, reflect=None):
        self.answer, self.recognized, self.assessed = answer, dict(recognized), dict(assessed)
        self.reply, self.reflect = reply, reflect or GOOD["reflect"]
        self.asked, self.temperature = [], None

    def tempered(self, temperature):
        self.temperature = temperature
        return self

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        what = tools[0].name if tools else "respond"
        self.asked.append((what, "\n".join(message.content for message in messages)))
        wanted = tools[0].parameters["properties"] if tools else {}
        if what == "respond":
            said = self.answer
        elif what == "reflect":
            said = self.reflect
        elif self.reply is not None:
            said = self.reply
        else:
            whole = (
                {"answer": self.answer, **GOOD["assessed"], **GOOD["recognized"]}
                | self.recognized
                | self.assessed
            )
            said = {name: value for name, value in whole.items() if name in wanted}
        yield Reply(said if isinstance(said, str) else json.dumps(said), (), Usage(10, 5, 0.01), self.name)

    def prompts(self, what):
        return [prompt for name, prompt in self.asked if name == what]


GOOD = {
    "recognized": {"input_type": "question", "memories": [], "topic": ""},
    "assessed": {"uncertainty": 0.1, "missing": []},
    "reflect": {"procedures": ["Name the harbour first."], "utilities": [], "judge": 0.8},
}
LACKING = {"uncertainty": 0.9, "missing": ["who runs the harbour"]}


def of(ws, kind):
    return [event for event in ws.engine.log.history.read(0) if isinstance(event.data, kind)]


def last(ws, kind):
    return of(ws, kind)[-1].data
