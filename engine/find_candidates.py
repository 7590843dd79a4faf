"""What the full model and the draft thought of a token of a reply and of its rivals, computed when somebody asks.

The cycle records do not hold this: it would cost every cycle what it costs here once, a full pass and a few draft
passes. Rows that the KV cache still has are used and kept, so that asking takes nothing away from the next reply.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.candidates import Candidate, Candidates
from engine.errors import BadSetting, NumericFault, PassStopped, SpecularError, is_out_of_memory
from engine.model.loaded import LoadedModel
from engine.model.runner import MAX_DECODE_ROWS, Runner
from engine.sampling.distribution import Floats, process
from engine.settings import GenerateRequest, Sampling

BEST = 5


def find_candidates(
    loaded: LoadedModel, request: GenerateRequest, token: int, drafted: int, cancelled: Callable[[], bool]
) -> Candidates | None:
    """See Engine.candidates."""
    began = time.perf_counter()
    ids = loaded.prompt_ids(request)
    vocabulary = loaded.folder.config.vocabulary
    if loaded.tokenizer is not None:
        vocabulary = min(vocabulary, loaded.tokenizer.vocabulary)
    if not 0 <= token < vocabulary:
        raise BadSetting(f"The token id {token} is not in the model's vocabulary of {vocabulary}.")
    try:
        with loaded.runner.interruptible(cancelled):
            found = _logits(loaded.runner, request.conversation, ids, min(drafted, len(ids) - 1), cancelled)
    except PassStopped:
        return None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, SpecularError) or not is_out_of_memory(error):
            raise
        raise SpecularError("There is not enough memory to look at this token.") from error
    if found is None:
        return None
    full = law(found.full[:vocabulary], request.sampling, ids)
    try:
        draft = law(found.draft[:vocabulary], request.sampling, ids)
    except NumericFault:
        draft = None  # a draft may fail where the model does not: a cycle then goes on without it

    def candidate(index: int) -> Candidate:
        piece = loaded.tokenizer.piece(index) if loaded.tokenizer is not None else ""
        return Candidate(index, piece, None if draft is None else float(draft[index]), float(full[index]))

    return Candidates(
        token=candidate(token),
        full=tuple(candidate(index) for index in best(full)),
        draft=() if draft is None else tuple(candidate(index) for index in best(draft)),
        full_rank=rank(full, token),
        draft_rank=None if draft is None else rank(draft, token),
        accept=None if draft is None else agreement(full, draft, request.sampling),
        recipe=loaded.runner.recipe,
        read=found.read,
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Logits:
    full: Floats
    draft: Floats
    read: int


def _logits(
    runner: Runner, conversation: int, ids: Sequence[int], drafted: int, cancelled: Callable[[], bool]
) -> _Logits | None:
    """Both models' logits after `ids`, whose last `drafted` the draft reads itself, as it did in their cycle."""
    kv = runner.kv
    held = kv.ids_of(conversation)
    start = len(ids) - 1 - min(drafted, MAX_DECODE_ROWS - 1)
    kept = kv.enter(conversation, ids[:start])
    known = list(ids[:kept])
    try:
        kv.ensure(len(ids) + 1)
        for done in range(kept, start, runner.chunk):
            if cancelled():
                return None
            chunk = list(ids[done : min(done + runner.chunk, start)])
            runner.full(chunk, done, 0)
            known = list(ids[: done + len(chunk)])
        if cancelled():
            return None
        for position in range(start, len(ids)):
            draft = np.array(runner.draft((ids[position],), position)[0], np.float32)
        # Overwrites the draft's rows with what the full model wrote there before, bit for bit, and no row behind them:
        # all rows are wanted, because those of a prompt may be written in wider steps.
        full = np.array(runner.full(list(ids[start:]), start, len(ids) - start)[-1], np.float32)
        known = list(held if held[: len(ids)] == tuple(ids) else ids)
    finally:
        kv.leave(known)
    return _Logits(full, draft, start - kept)


def law(logits: Floats, sampling: Sampling, history: Sequence[int]) -> Floats:
    """The probabilities that a cycle record speaks of: those drawn from; greedy, the softmax (after the penalty)."""
    if sampling.greedy:
        sampling = Sampling(temperature=1.0, repetition_penalty=sampling.repetition_penalty)
    return process(logits, sampling, history)


def best(probs: Floats, count: int = BEST) -> tuple[int, ...]:
    """The likeliest ids, best first, lower ids first among equals; none that cannot be drawn."""
    most = min(count, len(probs))
    level = np.partition(probs, len(probs) - most)[len(probs) - most]
    ids = np.flatnonzero(probs >= level)
    order = ids[np.lexsort((ids, -probs[ids]))][:most]
    return tuple(int(index) for index in order if probs[index] > 0)


def rank(probs: Floats, token: int) -> int | None:
    """Place of a token among the likeliest, from 1; None where it cannot be drawn."""
    own = probs[token]
    if own <= 0:
        return None
    return int(np.count_nonzero(probs > own) + np.count_nonzero(probs[:token] == own)) + 1


def agreement(full: Floats, draft: Floats, sampling: Sampling) -> float:
    """The chance that both choose the same token: see engine.sampling.sampler.

    Drawn with the same noise they agree on i with chance 1 / sum_j max(p_j / p_i, q_j / q_i). The larger of the two is
    p_j / p_i exactly for those j whose p_j / q_j is at least p_i / q_i, so that sorted sums serve every i.
    """
    if sampling.greedy:
        return float(int(full.argmax()) == int(draft.argmax()))
    either = np.flatnonzero((full > 0) | (draft > 0))
    p, q = full[either].astype(np.float64), draft[either].astype(np.float64)
    with np.errstate(divide="ignore"):
        ratio = p / q
    order = np.argsort(-ratio, kind="stable")
    p, q = p[order], q[order]
    above, below = np.cumsum(p), q.sum() - np.cumsum(q)  # equal ratios may stand on either side
    both = (p > 0) & (q > 0)
    p, q, above, below = p[both], q[both], above[both], np.maximum(below[both], 0.0)
    return float(min(1.0, (p * q / (q * above + p * below)).sum()))
