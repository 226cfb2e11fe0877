"""Hosted and local models by name, through litellm. No other module imports litellm.

Importing litellm takes two to three seconds and, by default, fetches its price map over the network. So it
is imported at the first call, with ``LITELLM_LOCAL_MODEL_COST_MAP`` and ``LITELLM_MODE`` set. This is the
project's only write to the environment. Every exception of litellm becomes a :class:`ModelError` that says
what to do.
"""

import gc
import logging
import math
import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import copy
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import msgspec

from agentx.storage.text import encodable
from agentx.synthesis.model import call_turns
from agentx.synthesis.model.port import (
    CallPart,
    ChatMessage,
    ModelError,
    Reply,
    TextPart,
    ToolCall,
    ToolSchema,
    Usage,
)

EXTRACT = 240
"""Maximum characters of a provider's message that an error quotes."""

LONGEST_PAUSE_S = 600.0
"""Longest pause that a provider can ask for, in seconds."""

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*[:-]\s*)+")
_API_KEY = re.compile(r"\b(?:sk|pk|gsk|xai|AIza)[-_]?[A-Za-z0-9_\-*]{8,}")


# By the name of litellm's exception class, most specific first. The first one among the base classes of an
# error is used.
_RETRYABLE = {
    "RateLimitError": "the provider of {model} is rate-limiting requests; wait and run again",
    "Timeout": "{model} did not answer in time; run again, or allow more time",
    "APIConnectionError": "no readable answer came from {model} at {where}; "
    "check the network, and that the server runs",
    "InternalServerError": "the server of {model} failed; run again later",
    "ServiceUnavailableError": "the server of {model} is not available; run again later",
    "BadGatewayError": "the server of {model} is not available; run again later",
}
_ADVICE = {
    "ContextWindowExceededError": "the conversation is longer than {model} takes; "
    "ask for less context, or use a model that takes more",
    "ContentPolicyViolationError": "the provider of {model} refused this content; word the request otherwise",
    "AuthenticationError": "the provider of {model} did not accept the key; {key_hint}",
    "PermissionDeniedError": "this key may not use {model}; choose another model or another key ({key_hint})",
    "PaymentRequiredError": "the account behind this key cannot pay for {model}; top it up",
    "NotFoundError": "no model {model} was found at {where}; "
    "check the name: `agentx config set model.name PROVIDER/NAME`",
    "UnsupportedParamsError": "{model} does not support the request (tools, for example); use another model",
    **_RETRYABLE,
    "BadRequestError": "the provider of {model} did not understand the request",
}
_NO_PROVIDER = (
    "{model} does not name a provider; write PROVIDER/NAME, as in openai/gpt-4o-mini, "
    "anthropic/claude-sonnet-4-5 or ollama/llama3.2"
)
_NO_KEY = "no key was found for {model}; {key_hint}, or run a local one, as in ollama/llama3.2"
_BROKE_OFF = "{model} stopped in the middle of its answer; run again"
_OTHER = "{model} could not be asked"


class LiteLLMClient:
    """A model that litellm knows by name: ``openai/gpt-4o-mini``, ``anthropic/…``, ``ollama/…``.

    Args:
        name: Provider and model, in litellm's form.
        api_key: Key for the provider; default: the provider's own variable (``OPENAI_API_KEY``, …).
        api_base: Address of the server; default: the provider's own.
        retries: Maximum number of retries after a transient failure; no retry once text was yielded.
        idle_s: Maximum pause within an answer that has begun, in seconds.
        backoff_s: Wait before the first retry, in seconds; it doubles each time.
        temperature: Sampling temperature; default: the provider's own.
        max_tokens: Maximum number of tokens of an answer; 0 for the provider's own.

    >>> LiteLLMClient("openai/gpt-4o-mini", api_base="http://localhost:8000/v1").name
    'openai/gpt-4o-mini'
    """

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        retries: int = 2,
        idle_s: float = 60.0,
        backoff_s: float = 0.5,
        temperature: float | None = None,
        max_tokens: int = 0,
    ) -> None:
        self.name = name
        self._api_key = api_key or None
        self._api_base = api_base or None
        self._retries = retries
        self._idle_s = idle_s
        self._backoff_s = backoff_s
        self.temperature = temperature
        self.max_tokens = max_tokens

    def limited(self, max_tokens: int) -> "LiteLLMClient":
        """Return the same model with a limit for its answers."""
        other = copy(self)
        other.max_tokens = max_tokens
        return other

    def tempered(self, temperature: float) -> "LiteLLMClient":
        """Return the same model at a temperature; a provider without this setting ignores it."""
        other = copy(self)
        other.temperature = temperature
        return other

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[TextPart | CallPart | Reply]:
        """Call the model; see :meth:`ModelClient.stream`.

        The time limit includes retries, but not the wait for a turn.
        """
        litellm = _litellm()
        request = self._request(litellm, messages, tools)
        deadline = time.monotonic() + timeout_s
        for attempt in range(self._retries + 1):
            answer = _AnswerBuilder()
            deadline += call_turns.wait_for_turn(self.name)
            try:
                for chunk in self._chunks(litellm, request, deadline):
                    yield from answer.add(chunk)
                yield answer.reply(self.name, _cost(litellm, self.name, answer.usage))
            except ModelError as error:
                pause = max(self._backoff_s * 2**attempt, error.retry_after_s)
                if error.too_many_calls and call_turns.pause(self.name, pause):
                    pause = 0.0
                out_of_time = time.monotonic() + pause >= deadline
                if answer.begun or not error.retryable or attempt == self._retries or out_of_time:
                    raise
                time.sleep(pause)
            else:
                return

    def _request(
        self, litellm: Any, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [_wire_message(message) for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "drop_params": True,  # a provider without stream_options still answers
            "api_base": self._api_base,
            "api_key": _key(litellm, self.name, self._api_base, self._api_key),
            # This class retries itself, because it knows whether any text was yielded.
            "num_retries": 0,
            "max_retries": 0,
            # With tools, litellm would otherwise import the optional package `mcp`.
            "_skip_mcp_handler": True,
        }
        if self.temperature is not None:
            request["temperature"] = self.temperature
        if self.max_tokens:
            request["max_tokens"] = self.max_tokens
        if tools:
            request["tools"] = [
                {"type": "function", "function": msgspec.structs.asdict(tool)} for tool in tools
            ]
        return request

    def _chunks(self, litellm: Any, request: dict[str, Any], deadline: float) -> Iterator[Any]:
        """Yield the chunks of one attempt within the time limits.

        Another thread reads the socket. A server that sends comments but no chunks would otherwise keep the
        read from ever reaching its own time limit.
        """
        remaining = max(deadline - time.monotonic(), 0.001)
        parts: SimpleQueue[Any] = SimpleQueue()
        stop = Event()

        def pump() -> None:
            """Pass on the chunks; last comes the error that stopped them, or ``None``."""
            stream: Any = None
            try:
                stream = litellm.completion(**request, timeout=remaining + 1.0)
                for chunk in stream:
                    if stop.is_set():
                        return
                    parts.put(chunk)
                # The last chunk always has a finish reason: if none was received, litellm makes one up.
                whole = getattr(stream, "received_finish_reason", "") is not None
                parts.put(None if whole else _BrokeOffError())
            except Exception as error:  # noqa: BLE001 -- passed to the caller's thread, which translates it
                parts.put(error)
            finally:
                with suppress(Exception):  # closing a broken stream may raise any exception
                    stream.completion_stream.close()

        Thread(target=pump, name="agentx-model", daemon=True).start()
        limit = remaining
        try:
            while True:
                try:
                    item = parts.get(timeout=max(min(limit, deadline - time.monotonic()), 0.001))
                except Empty:
                    raise ModelError(
                        f"{self.name} did not answer within {min(limit, remaining):.0f} seconds; "
                        "run again, or allow more time",
                        retryable=True,
                    ) from None
                if isinstance(item, Exception):
                    raise _translate(litellm, item, self.name, self._api_base, self._api_key) from item
                if item is None:
                    return
                yield item
                limit = self._idle_s
        finally:
            stop.set()


def embed_texts(
    model: str, texts: Sequence[str], *, api_base: str | None = None, api_key: str | None = None
) -> list[list[float]]:
    """Return the vectors of texts, in order, by a hosted model in one request.

    The texts are not empty; the model's name has litellm's form. Raises :class:`ModelError` on any failure.
    """
    litellm = _litellm()
    call_turns.wait_for_turn(model)
    answers: Future[Any] = Future()

    def ask() -> None:
        try:
            answers.set_result(
                litellm.embedding(
                    model=model,
                    input=list(texts),
                    timeout=60.0,
                    api_base=api_base or None,
                    api_key=_key(litellm, model, api_base, api_key),
                    max_retries=2,
                )
            )
        except Exception as error:  # noqa: BLE001 -- passed to the caller's thread, which translates it
            answers.set_exception(error)

    # In the caller's thread litellm would use its event loop, or leave one there that nobody closes.
    Thread(target=ask, name="agentx-embedding", daemon=True).start()
    try:
        answer = answers.result()
        rows = sorted(answer.data, key=lambda row: int(row["index"]))
        return [[float(value) for value in row["embedding"]] for row in rows]
    except Exception as error:  # litellm raises many types, including bare ValueErrors
        raise _translate(litellm, error, model, api_base, api_key) from error


def price_of(model: str) -> tuple[float, float] | None:
    """Return the US dollar prices of a million prompt and a million output tokens; ``None`` if unknown."""
    try:
        each = _litellm().cost_per_token(model=model, prompt_tokens=1_000, completion_tokens=1_000)
    except Exception:  # noqa: BLE001 -- a model without a price raises one of several errors; it is not known
        return None
    prompt, output = (round(1_000.0 * float(one), 6) for one in each)
    return prompt, output


def window_of(model: str) -> tuple[int, int] | None:
    """Return the maximum input and output tokens of a model; ``None`` if unknown."""
    try:
        known = _litellm().get_model_info(model=model)
        return int(known["max_input_tokens"]), int(known["max_output_tokens"])
    except Exception:  # noqa: BLE001 -- as above; or the model has no such limits
        return None


def _litellm() -> Any:
    """Return the litellm module, imported at the first call, with logging and telemetry off."""
    # In any other mode litellm reads an `.env` file beside or above itself, or in the current directory. An
    # agent, or the author of a cloned workspace, could put another server address for the key there.
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MODE="PRODUCTION")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # litellm's own deprecation warnings do not concern us, and would fail its calls where warnings are
    # errors. The filter is set at each call, since the caller may have reset the filters; Python does not
    # add it twice.
    warnings.filterwarnings("ignore", module=r"litellm\b")
    with _collecting_no_garbage():
        import litellm  # noqa: PLC0415 -- heavy: two seconds and a half

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # Counting the tokens of a Llama model would otherwise use the network.
    litellm.disable_hf_tokenizer_download = True
    return litellm


@contextmanager
def _collecting_no_garbage() -> Iterator[None]:
    """Pause garbage collection: a fifth of litellm's import would be spent on objects that all stay."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


class _BrokeOffError(Exception):
    """The server closed the stream before it marked the answer as complete."""


class _AnswerBuilder:
    """Builds an answer from chunks."""

    def __init__(self) -> None:
        self.usage: Any = None
        self.begun = False
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._finish = ""

    def add(self, chunk: Any) -> Iterator[TextPart | CallPart]:
        """Add a chunk and yield what it adds, in displayable form."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self._finish = choice.finish_reason or self._finish
        for delta in choice.delta.tool_calls or ():
            # A piece belongs to the latest call with its index, unless its id differs from that call's id:
            # some servers number every call 0.
            call = next((call for call in reversed(self._calls) if call["index"] == delta.index), None)
            if call is None or (delta.id and call["id"] and delta.id != call["id"]):
                call = {"index": delta.index, "id": "", "name": "", "arguments": ""}
                self._calls.append(call)
            call["id"] = call["id"] or delta.id or ""
            call["name"] = call["name"] or delta.function.name or ""
            call["arguments"] += delta.function.arguments or ""
            if delta.function.arguments:
                yield CallPart(encodable(delta.function.arguments))
        text = choice.delta.content or ""
        self._text.append(text)
        self.begun = self.begun or bool(text)
        if text:
            yield TextPart(encodable(text))

    def reply(self, model: str, cost_usd: float) -> Reply:
        """Return the complete answer, after its last chunk."""
        text = encodable("".join(self._text))
        calls = tuple(
            ToolCall(
                encodable(call["id"]) or f"call_{n}", encodable(call["name"]), encodable(call["arguments"])
            )
            for n, call in enumerate(self._calls)
        )
        sides = ("prompt_tokens", "completion_tokens")
        prompt, output = (int(getattr(self.usage, side, 0) or 0) for side in sides)
        usage = Usage(prompt, output, cost_usd)
        return Reply(text, calls, usage, model, cut_off=self._finish == "length")


def _wire_message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": encodable(message.content)}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _json_object(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _json_object(arguments: str) -> str:
    """Return arguments that a provider accepts: several reject a conversation with malformed JSON in it."""
    try:
        msgspec.json.decode(arguments.encode("utf-8", "replace"), type=dict[str, Any])
    except msgspec.DecodeError:
        return msgspec.json.encode({"malformed_arguments": encodable(arguments)}).decode()
    return encodable(arguments)


def _cost(litellm: Any, model: str, usage: Any) -> float:
    with suppress(Exception):  # without a usage or a price it raises one of several errors
        return (
            float(sum(litellm.cost_per_token(model=model, usage_object=usage))) if usage is not None else 0.0
        )
    return 0.0


def _translate(
    litellm: Any, error: Exception, model: str, api_base: str | None, api_key: str | None
) -> ModelError:
    """Translate a vendor's error into a :class:`ModelError` with advice for the user."""
    begun = isinstance(error, _BrokeOffError) or not getattr(error, "is_pre_first_chunk", True)
    error = getattr(error, "original_exception", None) or error
    missing = [] if api_key else _missing_keys(litellm, model)
    if begun:
        advice = _BROKE_OFF
    elif "LLM Provider NOT provided" in str(error):
        advice = _NO_PROVIDER
    elif missing and not api_base:
        advice = _NO_KEY
    else:
        names = _names(error)
        advice = next((sentence for name, sentence in _ADVICE.items() if name in names), _OTHER)
    sentence = advice.format(
        model=model,
        where=api_base or "the provider's address",
        key_hint=f"set {' or '.join(missing)}" if missing else "set the key that belongs to it",
    )
    if advice not in (_NO_PROVIDER, _NO_KEY):
        sentence += _said(error, api_key)
    too_many = advice == _RETRYABLE["RateLimitError"]
    return ModelError(
        sentence,
        retryable=advice == _BROKE_OFF or advice in _RETRYABLE.values(),
        too_many_calls=too_many,
        retry_after_s=_retry_after(error) if too_many else 0.0,
    )


def _retry_after(error: Exception) -> float:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3); 0 for none.

    A server that asks for more than :data:`LONGEST_PAUSE_S` is asked again after that.
    """
    headers = getattr(error, "litellm_response_headers", None) or {}
    said = str(headers.get("retry-after", ""))
    seconds = 0.0
    with suppress(ValueError, OverflowError):
        try:
            seconds = float(said)
        except ValueError:
            seconds = parsedate_to_datetime(said).timestamp() - time.time()
    return min(max(seconds, 0.0), LONGEST_PAUSE_S) if math.isfinite(seconds) else 0.0


def _names(error: Exception) -> set[str]:
    """Return the class names of an error, corrected for an unreachable server.

    litellm reports one as an internal server error.
    """
    names = {base.__name__ for base in type(error).__mro__}
    if "InternalServerError" in names:
        cause: BaseException | None = error.__context__
        while cause is not None:
            if type(cause).__name__ in ("APIConnectionError", "ConnectError"):
                return {"APIConnectionError"}
            cause = cause.__context__
    return names


def _key(litellm: Any, model: str, api_base: str | None, api_key: str | None) -> str | None:
    """Return the key to send. A self-hosted server often needs none, but the client requires a value."""
    return api_key or ("none" if api_base and _missing_keys(litellm, model) else None)


def _missing_keys(litellm: Any, model: str) -> list[str]:
    """Return the variables that could hold this provider's key and are not set."""
    with suppress(Exception):  # nothing is known about the keys of an unknown provider
        known = litellm.validate_environment(model)
        if not known["keys_in_environment"]:
            return sorted(name for name in known["missing_keys"] if name.endswith("_API_KEY"))
    return []


def _said(error: Exception, api_key: str | None) -> str:
    """Return the provider's message as one bounded line, with keys removed."""
    words = " ".join(str(error).partition("Traceback")[0][: 20 * EXTRACT].split())
    words = _PREFIXES.sub("", words)
    if api_key:
        words = words.replace(api_key, "[key]")
    words = _API_KEY.sub("[key]", words)
    return f" (it said: {words[:EXTRACT]})" if words else ""
