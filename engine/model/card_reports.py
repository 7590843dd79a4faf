"""What steps on the card tell the host: read from the numbers that the kernels leave (engine.kernels.triton.judge)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kernels.triton import judge


@dataclass(frozen=True, slots=True)
class DraftReport:
    """What one draft step added: the proposals it agreed with and its own token; runners-up of each (-1: unknown)."""

    ids: tuple[int, ...]
    probs: tuple[float, ...]
    seconds: tuple[int, ...]
    second_probs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a full pass left in the state. chosen: the full model's token after each row, chain and siblings alike.

    chain_probs: its probability of each proposal of the chain. taken: row of the sibling that was taken, 0 without.
    """

    chosen: tuple[int, ...]
    chosen_probs: tuple[float, ...]
    chain_probs: tuple[float, ...]
    accepted: int
    taken: int


def read_report(report: torch.Tensor) -> DraftReport:
    """Of a draft step's int32 report, once the step has ended."""
    whole, floats = report.tolist(), report.view(torch.float32).tolist()
    count = whole[judge.AGREED] + 1
    return DraftReport(
        tuple(whole[judge.OWN : judge.OWN + count]),
        tuple(floats[judge.OWN_PROBS : judge.OWN_PROBS + count]),
        tuple(whole[judge.SECONDS : judge.SECONDS + count]),
        tuple(floats[judge.SECOND_PROBS : judge.SECOND_PROBS + count]),
    )


def read_judgement(state: torch.Tensor, chain: int, rows: int, *, siblings: bool) -> Judgement:
    """Of the int32 state after a full pass over `rows` rows, of which the first `chain` are a chain."""
    whole = state.tolist()
    floats = state[judge.FLOATS :].view(torch.float32).tolist()
    return Judgement(
        chosen=tuple(whole[judge.CHOSEN : judge.CHOSEN + rows]),
        chosen_probs=tuple(floats[judge.CHOSEN_PROBS : judge.CHOSEN_PROBS + rows]),
        chain_probs=tuple(floats[judge.FULL_PROBS : judge.FULL_PROBS + chain - 1]),
        accepted=whole[judge.ACCEPTED],
        taken=whole[judge.TAKEN] if siblings else 0,
    )
