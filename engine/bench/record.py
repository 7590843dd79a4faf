"""Recording a trace: a reply of the real engine, with what its draft proposed at every token."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.bench.traces import RANKS, Ranked, Trace
from engine.model.runner import MAX_DECODE_ROWS, Runner
from engine.sampling.sampler import Sampler

TRACED_TOKENS = 256  # where nobody says how long


def record_trace(
    runner: Runner,
    sampler: Sampler,
    prompt: Sequence[int],
    most: int,
    *,
    end_ids: Collection[int] = (),
    model: str = "",
    set_name: str = "",
) -> Trace:
    """Make a reply of at most `most` tokens in long cycles: the draft goes on whatever its confidence.

    One token more is drafted than is verified, so that the full model's own token after a wholly right block has a
    proposal too. The cache is filled from the first token on. Raises NumericFault where draft or model computes NaN,
    ValueError for a prompt that is empty or leaves the context no room.
    """
    if not 0 < len(prompt) < runner.capacity:
        raise ValueError(f"a prompt of {len(prompt)} tokens cannot be traced in a context of {runner.capacity}")
    ids, top, probs = list(prompt), [], []
    for first in range(0, len(prompt) - 1, runner.chunk):
        runner.full(ids[first : min(first + runner.chunk, len(prompt) - 1)], first, 0)
    ended = False
    while not ended:
        ranks = _drafts(runner, sampler, ids, min(MAX_DECODE_ROWS - 1, runner.capacity - len(ids)))
        chain = [ranked[0][0] for ranked in ranks[:-1]]
        logits = runner.full((ids[-1], *chain), len(ids) - 1, len(chain) + 1)
        choice = sampler.judge(logits, len(ids), ids, chain)
        for ranked, token, prob in zip(ranks, choice.ids, choice.probs, strict=False):
            ids.append(token)
            top.append(ranked)
            probs.append(prob)
            ended = token in end_ids or len(top) >= most or len(ids) >= runner.capacity
            if ended:
                break
    return Trace(
        prompt_ids=tuple(prompt),
        ids=tuple(ids[len(prompt) :]),
        top=tuple(top),
        full_prob=tuple(probs),
        recipe=runner.recipe.to_json(),
        model=model,
        set=set_name,
    )


def _drafts(runner: Runner, sampler: Sampler, ids: Sequence[int], count: int) -> list[Ranked]:
    """The draft's best tokens at the next `count` places, each after its first choices before."""
    ranks: list[Ranked] = []
    block: list[int] = []
    for place in range(count):
        logits = runner.draft((block[-1] if block else ids[-1],), len(ids) - 1 + place)
        ranks.append(sampler.ranked(logits[0], len(ids) + place, ids, block, RANKS))
        block.append(ranks[-1][0][0])
    return ranks
