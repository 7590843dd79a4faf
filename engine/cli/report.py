"""The figures of a reply: one line for people, one JSON object for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.cli.session import Reply
from engine.records import ModelInfo, StopReason


def summary_line(reply: Reply, sampled: bool = False) -> str:
    """Such as `12.3 tok/s · 86 % accepted · 3.1 tokens per cycle · 1.4× plain`; what was not measured is left out."""
    figures = reply.statistics
    parts = [f"{figures.tokens_per_second:.1f} tok/s" if figures.tokens_per_second is not None else "no tokens"]
    if figures.acceptance is not None:
        parts.append(f"{figures.acceptance:.0%} accepted".replace("%", " %"))
        parts.append(f"{figures.tokens_per_cycle:.1f} tokens per cycle")
        if figures.speed_up is not None:
            parts.append(f"{figures.speed_up:.1f}× plain")
    elif figures.cycles:
        parts.append("plain decoding")
    if reply.finished and reply.finished.reason is not StopReason.END_TOKEN:
        parts.append(f"ended by: {reply.finished.reason.value}")
    if sampled and reply.finished:
        parts.append(f"seed {reply.finished.seed}")
    return " · ".join(parts)


def as_json(reply: Reply, model: ModelInfo, load_seconds: float) -> dict[str, Any]:
    """Everything about a reply, ready for `json.dumps`; what was not measured is None."""
    figures, finished = reply.statistics, reply.finished
    assert finished is not None  # a reply that was made has ended
    return {
        "model": model.name,
        "text": reply.text,
        "token_ids": reply.token_ids,
        "cycles": [asdict(cycle.record) for cycle in reply.cycles],
        "tokens_per_second": figures.tokens_per_second,
        "acceptance": figures.acceptance,
        "tokens_per_cycle": figures.tokens_per_cycle,
        "draft_cost": figures.draft_cost,
        "verify_cost": figures.verify_cost,
        "speed_up": figures.speed_up,
        "stop_reason": finished.reason.value,
        "message": finished.message,
        "seed": finished.seed,
        "prompt_tokens": finished.prompt_tokens,
        "reused_tokens": finished.reused_tokens,
        "new_tokens": finished.new_tokens,
        "load_seconds": load_seconds,
        "prefill_seconds": finished.prefill_seconds,
        "decode_seconds": finished.decode_seconds,
    }
