"""The forecast of a pipeline before it runs: each dispatch with its token budget, and the total costs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from agentx.pipelines.pointing.inputs import missing
from agentx.pipelines.pointing.pointed_files import Files, PointerMissing
from agentx.synthesis.model.litellm_client import price_of, window_of
from agentx.synthesis.pipelines.definition.pipeline import AgentType, Role
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, is_by_engine, is_by_model, is_by_person
from agentx.synthesis.pipelines.dispatching.estimates import Budget, Estimator

CALLS = 2
"""Model calls in a dispatch: one writes the files, and one ends the work after the writes were answered."""


class Planned(msgspec.Struct, frozen=True, rename={"key": "step"}):
    """An agent that will be sent at least once.

    Attributes:
        model: Name of the model that plays it; empty for a program.
        rounds: Maximum number of dispatches, if all its output is in order.
        written: Expected tokens of its output.
    """

    key: str
    stage: str
    role: str
    model: str
    rounds: int
    written: int
    budget: Budget


class Takes(msgspec.Struct, frozen=True):
    """Usage: dispatches, tokens shown to models, tokens written by models, and US dollars.

    Attributes:
        cost_usd: ``None`` where the price of a model is not known.
    """

    dispatches: int
    prompt_tokens: int
    output_tokens: int
    cost_usd: float | None


class StepPrice(msgspec.Struct, frozen=True):
    """Prices in US dollars per million tokens, for input and output of a model."""

    prompt: float
    output: float

    def of(self, shown: int, written: int) -> float:
        """Return the price of these tokens in US dollars."""
        return (shown * self.prompt + written * self.output) / 1_000_000


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What a pipeline is expected to use.

    Attributes:
        planned: In dependency order; without steps of the engine and steps that are proved.
        proved: Number of steps that are proved already, out of ``steps``.
        least: Usage if every review passes at once.
        most: Usage if every loop runs all its rounds. Retries after faulty output come on top.
        prices: By model.
        missing: What the pipeline does not start without, one sentence each: files that a role reads, that do
            not exist, and that no role writes; limits that the model has; a price for a limit of the cost.
    """

    planned: tuple[Planned, ...]
    proved: int
    steps: int
    least: Takes
    most: Takes
    prices: dict[str, StepPrice]
    missing: tuple[str, ...] = ()


def outlook_of(
    plan: Plan, files: Files, model: str = "", done: Collection[str] = (), *, made: bool = True
) -> Outlook:
    """Return what a pipeline is expected to use.

    ``model`` is that of roles that name none; it is empty where that is not known. ``done`` has the keys of
    proved steps. Without a workspace, ``made`` is false, and only source trees have to exist.

    Raises:
        TemplateInvalid: A template of a role cannot be filled in.
    """

    def there(read: ReadFile) -> Mapping[str, str]:
        if not made and not read.source:
            return {}
        try:
            return {file.path: file.text for file in files.of(read)}
        except PointerMissing:
            return {}

    planned = tuple(_planned(plan, Estimator(plan, there, done), model, done))
    models = sorted({one.model for one in planned if one.model})
    prices = {name: price for name in models if (price := price_in(plan, name))}
    return Outlook(
        planned=planned,
        proved=len(set(done)),
        steps=len(plan.steps),
        least=_takes(planned, prices, lambda _: 1),
        most=_takes(planned, prices, lambda one: one.rounds),
        prices=prices,
        missing=(
            *missing(plan, files, done, made=made),
            *model_faults(plan, lambda role: role.model or model or "?"),
        ),
    )


def model_faults(plan: Plan, name_of: Callable[[Role], str]) -> Iterator[str]:
    """Yield a sentence for each limit that a model does not allow, or that cannot be kept.

    An agent type with a larger window or output than its model; a limit of the cost without a price.
    ``name_of`` returns the name of the model that plays a role; ``?`` where it is not known.
    """
    models: defaultdict[str, dict[str, AgentType]] = defaultdict(dict)
    for role in plan.pipeline.roles.values():
        if is_by_model(role):
            models[name_of(role)][role.agent] = plan.agent(role)
    for model, declared in models.items():
        if model == "?" or model.startswith("script:"):
            continue
        limit = plan.pipeline.limits.max_cost_usd
        if limit and price_in(plan, model) is None:
            yield (
                f"`limits.max_cost_usd` is ${limit:,.2f}, but the price of {model} is not known: "
                "add `price` to the pipeline's file."
            )
        known = window_of(model)
        for name, agent in declared.items() if known else ():
            for key, most in zip(("window", "output"), known or (), strict=True):
                if getattr(agent, key) > most:
                    yield (
                        f"Agent type {name} has `{key}: {getattr(agent, key):,}` tokens, but {model} has "
                        f"{most:,}: set `agents.{name}.{key}` in the pipeline's file."
                    )


def _planned(plan: Plan, estimator: Estimator, model: str, done: Collection[str]) -> Iterator[Planned]:
    for key, step in plan.steps.items():
        role = plan.role(step)
        if key in done or is_by_engine(role) or is_by_person(role):
            continue
        rounds = plan.loops[step.loop].at_most if step.loop else 1
        player = (role.model or model or "?") if is_by_model(role) else ""
        yield Planned(key, step.stage, step.role, player, rounds, estimator.written(step), estimator.of(step))


def takes_of(prompt_tokens: int, written: int) -> tuple[int, int]:
    """Return the tokens shown and written in a dispatch.

    The second call shows the model its own output too.
    """
    return CALLS * prompt_tokens + written, written


def price_in(plan: Plan, model: str) -> StepPrice | None:
    """Return the price of a model: from the pipeline's file, else from litellm; ``None`` if unknown."""
    if (given := plan.pipeline.price) is not None:
        return StepPrice(given.prompt, given.output)
    if model == "?" or model.startswith("script:"):
        return None
    known = price_of(model)
    return StepPrice(*known) if known else None


def _takes(
    planned: Collection[Planned], prices: Mapping[str, StepPrice], times: Callable[[Planned], int]
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
        known = known and one.model in prices
        cost += prices[one.model].of(shown, written) if known else 0.0
    return Takes(dispatches, prompts, outputs, cost if known else None)
