"""What the host reads of the numbers that kernels leave on the card."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.kernels.triton import judge
from engine.model.card_reports import DraftReport, Judgement, read_judgement, read_report


def put(numbers: torch.Tensor, first: int, values: Sequence[float]) -> None:
    """Ids as they are, probabilities as their bits."""
    kind = torch.int32 if all(isinstance(value, int) for value in values) else torch.float32
    numbers[first : first + len(values)] = torch.tensor(values, dtype=kind).view(torch.int32)


def test_a_draft_steps_report() -> None:
    report = torch.zeros(judge.STATE_SIZE, dtype=torch.int32)
    put(report, judge.AGREED, (2,))
    put(report, judge.OWN, (11, 12, 13, 99))
    put(report, judge.OWN_PROBS, (0.5, 0.25, 0.125, 0.9))
    put(report, judge.SECONDS, (21, -1, 23, 98))
    put(report, judge.SECOND_PROBS, (0.0625, 0.5, 0.75, 0.8))
    assert read_report(report) == DraftReport((11, 12, 13), (0.5, 0.25, 0.125), (21, -1, 23), (0.0625, 0.5, 0.75))


def test_a_full_passs_judgement() -> None:
    state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32)
    put(state, judge.CHOSEN, (7, 8, 9, 10))
    put(state, judge.FLOATS + judge.CHOSEN_PROBS, (0.5, 0.25, 0.75, 1.0))
    put(state, judge.FLOATS + judge.FULL_PROBS, (0.125, 0.375))
    put(state, judge.ACCEPTED, (1,))
    put(state, judge.TAKEN, (3,))
    found = read_judgement(state, 2, 4, siblings=True)
    assert found == Judgement((7, 8, 9, 10), (0.5, 0.25, 0.75, 1.0), (0.125,), accepted=1, taken=3)
    assert read_judgement(state, 3, 3, siblings=False) == Judgement(
        (7, 8, 9), (0.5, 0.25, 0.75), (0.125, 0.375), accepted=1, taken=0
    )
