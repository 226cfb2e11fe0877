"""A model of one's own, as an embedder writes it: any object that streams parts and ends with a reply."""

import json

from agentx.synthesis.model.port import Reply, Usage


class Model:
    """Gives its answers in turn; an answer that is not a text is sent as JSON."""

    name = "own/model"

    def __init__(self, *answers, meanwhile=lambda: None):
        self.answers = list(answers)
        self.asked = []
        self.meanwhile = meanwhile

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        self.asked.append(messages)
        self.meanwhile()
        answer = self.answers.pop(0)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        yield Reply(text, (), Usage(10, 5, 0.5), self.name)
