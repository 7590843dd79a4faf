"""Acceptance traces: what a draft proposed at every token of a reply, so that policies can be replayed without a model.

A file is gzipped JSON lines, one reply a line: {"prompt_ids": [...], "ids": [...], "top": [[[id, probability] x 4] a
token], "full_prob": [...], "recipe": {...}, "model": "...", "set": "..."}. `top` holds the draft's best four at each
token of the reply, the first of them what it proposed there in a real cycle: after the true tokens, with what the
cycle's earlier draft passes wrote in the cache. Probabilities have three digits.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import SpecularError

Ranked = tuple[tuple[int, float], ...]
RANKS = 4
_SECOND_OF_WRONG = 0.75  # how often the draft's second choice is right where its first is not: starter model, 4 bits


@dataclass(frozen=True, slots=True)
class Trace:
    """One reply. top[t]: (id, probability), best first, of the draft before token t; full_prob[t]: the full model's
    probability of token t. recipe: as Recipe.to_json gives it."""

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    top: tuple[Ranked, ...]
    full_prob: tuple[float, ...]
    recipe: dict[str, Any]
    model: str
    set: str

    @property
    def acceptance(self) -> float:
        """Share of tokens at which the draft's first choice is the reply's token."""
        return sum(ranked[0][0] == token for ranked, token in zip(self.top, self.ids, strict=True)) / len(self.ids)


def write_traces(path: Path, traces: Iterable[Trace], *, append: bool = False) -> None:
    """Write traces to a file, or add them at its end. Raises SpecularError when the file cannot be written."""
    lines = "".join(json.dumps(_rounded(trace), separators=(",", ":")) + "\n" for trace in traces)
    try:
        # Neither name nor time in the header: the same traces make the same file.
        with path.open("ab" if append else "wb") as file:
            file.write(gzip.compress(lines.encode(), mtime=0))
    except OSError as error:
        raise SpecularError(f"The trace file {path} cannot be written: {error.strerror}.") from error


def read_traces(path: Path) -> list[Trace]:
    """All replies of a trace file. Raises SpecularError naming the file, and the line where one is wrong."""
    try:
        text = gzip.decompress(path.read_bytes()).decode()
    except OSError as error:
        raise SpecularError(f"The trace file {path} cannot be read: {error.strerror or error}.") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SpecularError(f"The trace file {path} is damaged: {error}.") from error
    traces = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            traces.append(_checked(json.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise SpecularError(f"Line {number} of the trace file {path} is no trace: {error}.") from error
    if not traces:
        raise SpecularError(f"The trace file {path} is empty.")
    return traces


def synthetic(alpha: float, replies: int = 8, tokens: int = 256, seed: int = 0, vocabulary: int = 32000) -> list[Trace]:
    """Replies of a draft that is right with probability alpha, and knows how sure it is. Their tokens never repeat
    on purpose, so that look-ups find nothing."""
    chance = random.Random(seed)

    def ranked(token: int) -> Ranked:
        first = chance.betavariate(2 * alpha, 2 * (1 - alpha)) if 0 < alpha < 1 else alpha
        others = [chance.randrange(vocabulary) for _ in range(RANKS)]
        order = [token, *others]
        if chance.random() >= first:
            order.insert(0, order.pop(1))
            if chance.random() >= _SECOND_OF_WRONG:
                order.insert(RANKS, order.pop(1))
        probs = [first, *((1 - first) * share for share in (0.6, 0.2, 0.1))]
        if probs[1] > first:
            probs[0], probs[1] = probs[1], probs[0]
        return tuple((i, round(p, 3)) for i, p in zip(order[:RANKS], probs, strict=True))

    traces = []
    for _ in range(replies):
        ids = tuple(chance.randrange(vocabulary) for _ in range(tokens))
        prompt = tuple(chance.randrange(vocabulary) for _ in range(32))
        top = tuple(ranked(token) for token in ids)
        traces.append(Trace(prompt, ids, top, (1.0,) * tokens, {}, "synthetic", f"alpha {alpha:g}"))
    return traces


def _rounded(trace: Trace) -> dict[str, Any]:
    values = asdict(trace)
    values["top"] = [[[token, round(prob, 3)] for token, prob in ranked] for ranked in trace.top]
    values["full_prob"] = [round(prob, 3) for prob in trace.full_prob]
    return values


def _checked(values: dict[str, Any]) -> Trace:
    trace = Trace(
        prompt_ids=tuple(map(int, values["prompt_ids"])),
        ids=tuple(map(int, values["ids"])),
        top=tuple(tuple((int(token), float(prob)) for token, prob in ranked) for ranked in values["top"]),
        full_prob=tuple(map(float, values["full_prob"])),
        recipe=dict(values["recipe"]),
        model=str(values["model"]),
        set=str(values["set"]),
    )
    if not trace.prompt_ids or not trace.ids:
        raise ValueError("it has no tokens")
    if not len(trace.ids) == len(trace.top) == len(trace.full_prob):
        raise ValueError("its lists differ in length")
    if not all(trace.top):
        raise ValueError("a token has no proposal")
    return trace
