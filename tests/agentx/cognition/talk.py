"""A talk of 47 messages, 20 of them questions, and a model that plays its part in it and counts its tokens."""

import json
import re
from collections import Counter

from agentx.synthesis.cognition import recognizer
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.model.port import Reply, ToolCall, Usage

TALK = (
    "Hello, I am Teresa and I run a small print shop in Aveiro.",
    "My brother Nuno keeps the books, he comes in on Thursdays.",
    "We have two presses: an old Heidelberg from 1962 and a new digital one.",
    "Who keeps the books?",
    "The Heidelberg is called Greta by everybody here.",
    "Yesterday Greta broke down in the middle of a wedding order.",
    "The mechanic, Senhor Pinho, charges 85 euros an hour.",
    "What is the old press called?",
    "Please keep your answers to one or two sentences.",
    "The wedding order is for the Tavares family, 180 cards on cotton paper.",
    "It has to be ready on the 14th of June.",
    "How many cards do the Tavares want, and by when?",
    "Senhor Pinho came this morning; a roller bearing was worn out.",
    "He replaced it in three hours.",
    "So what will his work cost me without the part?",
    "The bearing itself was 140 euros from a dealer in Porto.",
    "What was worn out in the old press?",
    "My daughter Lia wants to learn letterpress this summer.",
    "She is sixteen and very patient.",
    "Where did the bearing come from?",
    "The rent of the shop is 720 euros a month.",
    "The landlord wants to raise it to 790 in September.",
    "How old is Lia?",
    "I ordered 2,000 sheets of cotton paper from a mill in Tomar.",
    "The mill delivers on Mondays only.",
    "What rent will I pay in autumn?",
    "Nuno is getting married to Carla in October.",
    "In which month do they marry?",
    "Which day does the mill deliver?",
    "A new customer, the museum, wants 500 posters of an old map.",
    "The museum pays within sixty days, which is long for us.",
    "The posters have to be on the digital press, since the map has nine colours.",
    "On which press do I print the posters, and why?",
    "The Tavares wedding has been moved to the 28th of June.",
    "When do the cards for the Tavares have to be ready now?",
    "No, I asked for the date of the cards.",
    "The cards are due three days before the wedding.",
    "Lia printed her first card today, a sailing boat in blue.",
    "What did Lia print first?",
    "Whom does Nuno marry?",
    "I lent Carla my copy of the type catalogue from 1931.",
    "Who has my type catalogue?",
    "What do I know about how the museum pays?",
    "Remind me what the mechanic charges.",
    "How many sheets did I order, and where?",
    "What are my two presses?",
    "What is there to do for the shop in June?",
)
"""A print shop's talk."""


class Player:
    """Plays each module of the loop sensibly, with the tokens that the product counts; without a network.

    Attributes:
        calls: Number of calls by the tool that they ask for; ``respond`` for none.
        prompt: Prompt tokens by the same names, with the schemas of the tools.
    """

    name = "a/player"

    def __init__(self):
        self.calls, self.prompt = Counter(), Counter()
        self.shown = []

    def tempered(self, temperature):
        return self

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        what = tools[0].name if tools else "respond"
        text = "\n".join(message.content for message in messages)
        size = count_tokens(text) + sum(
            count_tokens(json.dumps([tool.name, tool.description, tool.parameters])) for tool in tools
        )
        self.calls[what] += 1
        self.prompt[what] += size
        self.shown.append((what, text))
        played = self.played(what, text)
        calls = (ToolCall("call_1", what, json.dumps(played)),) if tools else ()
        said = "" if tools else played
        written = count_tokens(said) + sum(count_tokens(call.arguments) for call in calls)
        yield Reply(said, calls, Usage(size, written), self.name)

    def played(self, what, text):
        """What a model of some sense says to a prompt."""
        if what == "respond":
            return "That is as you told me, and I keep to it in one or two sentences."
        said = _part(text, "Message") or _part(text, "Question")
        answered = "- You:" in text or "\n> That is" in text
        sort = recognizer.input_type(said, answered=answered)
        if what in {"assess", "curate", "expand", "reflect"}:
            known = re.findall(r"^- \[([^]]+)\]", text, re.MULTILINE)
            return {
                "assess": {"uncertainty": 0.4, "missing": [], "clusters": []},
                "expand": {"queries": [{"id": "q1", "text": said, "needs": []}]},
                "curate": {"keep": known[:12]},
                "reflect": {"procedures": [], "utilities": [], "judge": 0.8},
            }[what]
        memories = [
            {"level": one.level, "text": one.text, "quote": said[one.start : one.end]}
            for one in recognizer.extract(said)
        ]
        topics = re.findall(r"^- \[(e-\d+)\]", _section(text, "Topics"), re.MULTILINE)
        common = {
            "input_type": sort
            if sort != "feedback"
            else "blame"
            if recognizer.reward(said) < 0
            else "praise",
            "memories": memories if sort != "question" else [],
            "topic": (topics or ["The print shop"])[0] if memories else "",
        }
        if what == "recognize":
            return common
        answer = "Noted." if sort == "statement" else "That is as you told me, in one or two sentences."
        return {"answer": answer, "missing": [], "uncertainty": 0.1, **common}


def _section(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n\n## ")[0]


def _part(text, title):
    return "\n".join(line.removeprefix("> ") for line in _section(text, title).splitlines())
