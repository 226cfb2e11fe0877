"""A model for the OpenAI Agents SDK that plays prepared turns."""

import json

import agents
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class PlayedModel(agents.Model):
    """Plays one prepared turn for each request, and keeps what it was given."""

    def __init__(self, *turns):
        self.turns, self.given, self.told = list(turns), [], []

    async def get_response(self, system_instructions, input, *args, **named):  # noqa: A002 - the SDK's name
        self.given.append(list(input) if isinstance(input, list) else [input])
        self.told.append(system_instructions or "")
        turn = self.turns.pop(0)
        return agents.ModelResponse(output=turn, usage=agents.Usage(), response_id=None)

    def stream_response(self, *args, **named):
        raise NotImplementedError


def says(text):
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return [
        ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")
    ]


def calls(name, arguments, call_id="c1"):
    made = ResponseFunctionToolCall(
        arguments=json.dumps(arguments), call_id=call_id, name=name, type="function_call", id="f"
    )
    return [made]
