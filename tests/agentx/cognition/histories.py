"""Histories of a cognitive agent, made by the fold itself: what a conversation about a bakery might have left."""

import random

import msgspec

from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.types import Draft
from agentx.synthesis.cognition.metrics import (
    ActivatorSnapshot,
    BufferedMemory,
    ClusterAssessment,
    DecayerSnapshot,
    Metrics,
    QueryNode,
    Snapshot,
)
from agentx.synthesis.state.mind import Mind, purged, retention

TEMPERATURE = 6.0

SAID = (
    "The bakery opens at six on weekdays and at seven on Sundays.",
    "Rye bread needs a sourdough that is three days old.",
    "Marta took over the ovens from her father in 1998.",
    "The new oven was delivered on the second of May, two weeks late.",
    "Never sell yesterday's rolls at the full price.",
    "The café next door buys forty croissants every morning.",
    "Flour comes from the mill at Oberau, paid within thirty days.",
    "In August the shop is closed for two weeks.",
    "Jonas is allergic to hazelnuts.",
    "The apprentice starts at four and leaves at noon.",
    "Prices rose by five cents ($0.05) in March & again in June.",
    "The health inspector came twice last year <without notice>.",
    "Poppy seed rolls are made on Fridays only.",
    "A customer was given the wrong wedding cake in 2023.",
    "The delivery van fails its inspection unless the brakes are done.",
    "Answers about prices should name the day on which they were checked.",
)


def play(ws, session="bakery", interactions=36, seed=8, model=True):
    """Record a session; the ids of its memories, in the order in which they came."""
    dice, mind, ids = random.Random(seed), Mind(), []
    for number in range(1, interactions + 1):
        asked = number > 3 and dice.random() < 0.55
        fetches = dice.choice((0, 0, 1, 1, 2)) if asked else 0
        kind = "question" if asked else dice.choice(("statement", "statement", "statement", "feedback"))
        read = Recognized(
            session=session,
            interaction=number,
            message=number,
            input_type=kind,
            utilities={name: dice.random() for name in mind.buffer if dice.random() < 0.2},
        )
        ws.record(Draft(data=read, actor="engine:cognition"))
        mind = mind.recognized(read)
        entered = ()
        if (not asked and len(ids) < len(SAID)) or not ids:
            ids.append(ws.remember("knowledge", SAID[len(ids)]).id)
            entered = (ids[-1],)
        elif fetches:
            gone = [name for name in ids if name not in mind.buffer]
            entered = tuple(dice.sample(gone, min(len(gone), fetches)))
        known = [*mind.buffer, *entered]
        favourites = known[:3]
        accessed = tuple(n for n in known if dice.random() < (0.3 if n in favourites else 0.12))
        done = Interacted(
            session=session,
            interaction=number,
            message=number,
            answer=number,
            entered=entered,
            accessed=accessed if asked else (),
            reinforced=tuple(n for n in accessed if dice.random() < 0.6) if asked else (),
            boost=0.5,
            temperature=TEMPERATURE,
            judge=round(min(1.0, 0.55 + dice.random() * 0.5), 2) if asked else -1.0,
        )
        before, held = mind, mind.interacted(done)
        evicted = purged(held, number, TEMPERATURE, 0.25, 0.5)
        done = msgspec.structs.replace(done, evicted=evicted)
        mind = mind.interacted(done)
        metrics = _metrics(dice, kind, fetches, entered, evicted, model=model)
        snapshot = _snapshot(dice, before, mind, number, fetches, ids, asked=asked)
        done = msgspec.structs.replace(
            done,
            metrics=ws.body(msgspec.json.encode(metrics).decode()),
            snapshot=ws.body(msgspec.json.encode(snapshot).decode()),
        )
        ws.record(Draft(data=done, actor="engine:cognition"))
    return ids


def _metrics(dice, kind, fetches, entered, evicted, *, model):
    asked, spent = kind == "question", 1 if model else 0
    took = 900.0 if model else 1.5
    metrics = Metrics(
        input_type=kind,
        recognizer_latency_ms=took * dice.lognormvariate(0, 0.3),
        recognizer_semantic_memories_count=len(entered),
        recognizer_prompt_tokens=spent * dice.randrange(400, 700),
        recognizer_completion_tokens=spent * dice.randrange(40, 160),
        decayer_triggered=asked,
        decayer_trigger_reason="question" if asked else "",
        decayer_latency_ms=took * 0.6 * dice.lognormvariate(0, 0.3) if asked else 0.0,
        decayer_prompt_tokens=spent * dice.randrange(500, 900) * asked,
        decayer_completion_tokens=spent * dice.randrange(20, 60) * asked,
        decayer_status="sufficient" if asked and not fetches else "activated" if asked else "skipped",
        activator_trigger_count=fetches,
        activator_multi_trigger=fetches > 1,
        activator_latency_ms=took * fetches * dice.lognormvariate(0.2, 0.4),
        activator_prompt_tokens=spent * fetches * dice.randrange(900, 1600),
        activator_completion_tokens=spent * fetches * dice.randrange(80, 200),
        dag_node_count=fetches and dice.randrange(1, 5),
        response_generation_latency_ms=took * 1.6 * dice.lognormvariate(0, 0.4),
        response_prompt_tokens=spent * dice.randrange(700, 1800),
        response_completion_tokens=spent * dice.randrange(60, 300),
        new_memories_stored=list(entered),
        evicted_memory_ids=list(evicted),
        memory_link_stats={"created": len(entered), "total": 12},
        thinking_iterations_used=fetches,
        faults=["The model's answer was no JSON; the code's own was taken."] if dice.random() < 0.05 else [],
        cost_usd=0.0021 * spent,
    )
    parts = (
        "recognizer_latency_ms",
        "decayer_latency_ms",
        "activator_latency_ms",
        "response_generation_latency_ms",
    )
    metrics.total_latency_ms = sum(getattr(metrics, part) for part in parts)
    return metrics


def _snapshot(dice, before, after, number, fetches, ids, *, asked):
    looks = []
    for iteration in range(fetches + asked if fetches < 2 else 2):
        wanting = iteration < fetches
        low, high = (0.52, 0.95) if wanting else (0.05, 0.62)
        model, cosine = dice.uniform(low, high), dice.uniform(low, high)
        looks.append(
            DecayerSnapshot(
                model_uncertainty=model,
                cosine_uncertainty=cosine if wanting else min(cosine, 0.48),
                requires_activation=wanting,
                clusters=(
                    ClusterAssessment(ids[0], 4, dice.random(), 0.6),
                    ClusterAssessment("", 2, dice.random() * 0.4, 0.3),
                ),
            )
        )
    made = tuple(
        ActivatorSnapshot(nodes=(QueryNode("q1", "when", (), (ids[0],)),), retrieved=(ids[0],))
        for _ in range(fetches)
    )
    return Snapshot(
        before=_buffer(before, number), after=_buffer(after, number), decayer=tuple(looks), activator=made
    )


def _buffer(mind, now):
    return tuple(
        BufferedMemory(
            id=name,
            level="L3" if name.endswith(("5", "8")) else "L2",
            decay=retention(slot, now, TEMPERATURE),
            utility=slot.utility,
            reward=slot.reward,
            strength=slot.strength,
            tokens=14,
        )
        for name, slot in mind.buffer.items()
    )
