"""What a pipeline will take before anything of it runs: every dispatch with its budget, how many there will be, and what they cost."""

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from agentx.pipelines.files import Files, PointerMissing
from agentx.pipelines.inputs import missing
from agentx.synthesis.model.litellm_client import price_of
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, is_by_engine, is_by_model
from agentx.synthesis.pipelines.dispatching.estimates import Budget, Estimator

CALLS = 2
"""How often a model is asked in a dispatch: it writes, and when its writes were answered it says that it is done."""


class Planned(msgspec.Struct, frozen=True, rename={"key": "step"}):
    """An agent that will be sent, once or more.

    Attributes:
        model: Who plays it, by name; empty for a program.
        rounds: How often it is sent at most, as long as all that it writes is in order.
        written: Tokens of what it writes.
    """

    key: str
    stage: str
    role: str
    model: str
    rounds: int
    written: int
    budget: Budget


class Takes(msgspec.Struct, frozen=True):
    """What is used: agents that are sent, tokens that models are shown and that they write, and US dollars.

    Attributes:
        cost_usd: ``None`` where the price of a model is not known.
    """

    dispatches: int
    prompt_tokens: int
    output_tokens: int
    cost_usd: float | None


class Price(msgspec.Struct, frozen=True):
    """What a million tokens cost in US dollars, shown to a model and written by it."""

    prompt: float
    output: float

    def of(self, shown: int, written: int) -> float:
        """What so many tokens cost in US dollars."""
        return (shown * self.prompt + written * self.output) / 1_000_000


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What a pipeline will take.

    Attributes:
        planned: In an order in which each stands behind what it needs; without what the engine does, and what is proved.
        proved: Steps that are proved already, of ``steps``.
        least: Where every review passes at once.
        most: Where every loop goes all its rounds. What is sent again because it was not in order comes on top.
        prices: By model.
        missing: What is read and not there, and written by nobody: with these it does not start.
    """

    planned: tuple[Planned, ...]
    proved: int
    steps: int
    least: Takes
    most: Takes
    prices: dict[str, Price]
    missing: tuple[str, ...] = ()


def outlook_of(
    plan: Plan, files: Files, model: str = "", done: Collection[str] = (), *, made: bool = True
) -> Outlook:
    """What a pipeline will take.

    Args:
        plan: The pipeline.
        files: What there is to read.
        model: Who plays the roles that name no model; empty where that is not known.
        done: Keys of the steps that are proved.
        made: Whether there is a workspace; without one, only source trees have to be there.

    Raises:
        TemplateInvalid: A template of a role cannot be filled in.
    """
    planned = tuple(_planned(plan, Estimator(plan, _there(files), done), model, done))
    models = sorted({one.model for one in planned if one.model})
    prices = {name: price for name in models if (price := price_in(plan, name))}
    return Outlook(
        planned=planned,
        proved=len(set(done)),
        steps=len(plan.steps),
        least=_takes(planned, prices, lambda _: 1),
        most=_takes(planned, prices, lambda one: one.rounds),
        prices=prices,
        missing=tuple(missing(plan, files, done, made=made)),
    )


def _there(files: Files) -> Callable[[ReadFile], Mapping[str, str]]:
    def there(read: ReadFile) -> Mapping[str, str]:
        try:
            return {file.path: file.text for file in files.of(read)}
        except PointerMissing:
            return {}

    return there


def _planned(plan: Plan, estimator: Estimator, model: str, done: Collection[str]) -> Iterator[Planned]:
    for key, step in plan.steps.items():
        role = plan.role(step)
        if key in done or is_by_engine(role):
            continue
        rounds = plan.loops[step.loop].at_most if step.loop else 1
        player = (role.model or model or "?") if is_by_model(role) else ""
        yield Planned(key, step.stage, step.role, player, rounds, estimator.written(step), estimator.of(step))


def takes_of(prompt_tokens: int, written: int) -> tuple[int, int]:
    """Tokens that a model is shown in one dispatch, and that it writes; asked again, it is shown its own words too."""
    return CALLS * prompt_tokens + written, written


def price_in(plan: Plan, model: str) -> Price | None:
    """What a model costs: as the pipeline's file says, else as litellm knows."""
    if (given := plan.pipeline.price) is not None:
        return Price(given.prompt, given.output)
    if model == "?" or model.startswith("script:"):
        return None
    known = price_of(model)
    return Price(*known) if known else None


def _takes(
    planned: Collection[Planned], prices: Mapping[str, Price], times: Callable[[Planned], int]
) -> Takes:
    dispatches = prompts = outputs = 0
    cost, known = 0.0, True
    for one in planned:
        sent = times(one) * one.budget.parts
        dispatches += sent
        if not one.model:
            continue
        shown, written = (sent * each for each in takes_of(one.budget.prompt + one.budget.reads, one.written))
        prompts, outputs = prompts + shown, outputs + written
        price = prices.get(one.model)
        known = known and price is not None
        if price is not None:
            cost += price.of(shown, written)
    return Takes(dispatches, prompts, outputs, cost if known else None)
