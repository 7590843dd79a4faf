"""For tests of plans: parts and demands of known shapes, made-up ones, and a clock for passes that stream."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.known_shapes import SHAPES, tensor_bytes
from engine.offload.demands import Demands, DraftOption, demands_of
from engine.offload.parts import MLP, OUTPUT, Part, parts_of
from engine.offload.plan import Plan, Residency
from engine.offload.rates import Rates, default_rates
from engine.recipe import Recipe

CARD = default_rates("cuda")


@dataclass(frozen=True, slots=True)
class Case:
    """What a plan is made from."""

    parts: tuple[Part, ...]
    demands: Demands
    rates: Rates


def shape_case(name: str, *, context: int = 512, device: str = "cuda") -> Case:
    """A model of a known shape, 16-bit."""
    config = SHAPES[name].config
    sizes = tensor_bytes(config)
    parts = parts_of(config, sizes)
    return Case(parts, demands_of(config, sizes, parts, device=device, context=context), default_rates(device))


def random_case(chance: random.Random) -> Case:
    """Sizes, rates and drafts of any model on any machine: fast memory is at least six times as fast as the link."""
    attention = chance.randint(1, 400) * 10**6
    mlp = int(attention * chance.uniform(0.7, 5))
    layers = chance.randint(1, 40)
    parts = [
        Part(2 * layer + (kind == MLP), layer, kind, (), size)
        for layer in range(layers)
        for kind, size in (("attention", attention), (MLP, mlp))
    ]
    if chance.random() < 0.7:
        parts.append(Part(len(parts), None, OUTPUT, (), chance.randint(1, 1000) * 10**6))
    total = sum(part.nbytes for part in parts)
    drafts = tuple(
        DraftOption(Recipe(weight_bits=bits), total * bits // 16, total * bits // 16, chance.uniform(0.3, 0.99))
        for bits in (8, 4, 3)
        if chance.random() < 0.6
    )
    demands = Demands(
        always=chance.randint(0, 10**9),
        output_read=0,
        kv=chance.randint(0, 10**9),
        attended=chance.randint(0, 10**8),
        workspace=chance.randint(0, 10**9),
        margin=chance.randint(0, 3 * 10**8),
        others=chance.randint(0, 10**9),
        drafts=drafts,
        allow_host=chance.random() < 0.3,
        streamed_rows=chance.choice((16, 48)),
    )
    device, row = 10 ** chance.uniform(10, 12.6), chance.uniform(0, 0.1)
    rates = Rates(
        device=device,
        link=device / chance.uniform(6, 60),
        cpu=device / chance.uniform(1, 40),
        draft=device * 0.8,
        row=row,
        cpu_row=row + chance.uniform(0, 0.3),
        handover=5e-5,
        slow="The bus",
    )
    return Case(tuple(parts), demands, rates)


def simulated_pass(plan: Plan, rates: Rates, beside: int, idle: float = 0.0, passes: int = 3) -> float:
    """Seconds of a pass as engine.offload.weight_stream orders copies and kernels, once passes follow one another.

    beside: bytes that are read at a pass's end. idle: seconds before each pass in which copies go on.
    """
    ended = 0.0
    link = 0.0  # when the side stream is free
    began = 0.0
    for _ in range(passes):
        began = ended + idle
        ended, link = _one_pass(plan, rates, beside, began, max(link, ended))
    return ended - began


def _one_pass(plan: Plan, rates: Rates, beside: int, began: float, link: float) -> tuple[float, float]:
    streamed: Sequence[Part] = plan.streamed
    ready: list[float] = []
    for part in streamed[: plan.slots]:
        link += part.nbytes / rates.link
        ready.append(link)
    now, turn = began, 0
    for part, lies in zip(plan.parts, plan.residency, strict=True):
        if lies is Residency.STREAMED:
            now = max(now, ready[turn])
        now += part.nbytes / rates.device
        if lies is Residency.STREAMED:
            following = turn + plan.slots
            if following < len(streamed):
                link = max(link, now) + streamed[following].nbytes / rates.link
                ready.append(link)
            turn += 1
    return now + beside / rates.device, link
