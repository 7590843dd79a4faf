"""The leaders of a draft step: exact logits for the first few tokens, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from engine.kernels.triton import judge
from engine.kernels.triton.draft_leaders import LEADERS, draft_leaders_kernel, draft_leading_choice_kernel
from triton_rig import DEPENDENT, DEVICE, EPSILON, LAUNCH, Tensor, nan, normal, quiet, random, triton

VOCABULARY, WIDTH, PART = 101, 48, 8
NO_ID = 2147483647


@dataclass(frozen=True)
class Case:
    """The end of a step: stream [rows, WIDTH], exact output rows, coarse logits, and their partial peaks."""

    stream: Tensor
    gain: Tensor
    bias: Tensor | None
    output: Tensor
    logits: Tensor

    @property
    def rows(self) -> int:
        return len(self.stream)

    @property
    def exact(self) -> Tensor:
        """float32 [rows, VOCABULARY]."""
        x = self.stream - self.stream.mean(1, keepdim=True) if self.bias is not None else self.stream
        x = x / (x.square().mean(1, keepdim=True) + EPSILON).sqrt() * self.gain
        return (x if self.bias is None else x + self.bias) @ self.output.float().T

    def peaks(self) -> tuple[Tensor, Tensor]:
        """As draft_matmul.py leaves them, of parts of PART tokens."""
        height, parts = triton.next_power_of_2(self.rows), -(-VOCABULARY // PART)
        peaks = nan(parts, 3, height)
        ids = torch.full((parts, 2, height), -1, dtype=torch.int32, device=DEVICE)
        for part, piece in enumerate(self.logits.split(PART, 1)):
            top, place = piece.topk(2, 1)
            peaks[part, 0, : self.rows], peaks[part, 1, : self.rows] = top.unbind(1)
            peaks[part, 2, : self.rows] = (piece - top[:, :1]).exp().sum(1)
            ids[part, :, : self.rows] = (place + part * PART).T.int()
        return peaks, ids


def make(rows: int, dtype: torch.dtype = torch.float16, *, layer_norm: bool = False, seed: int = 0) -> Case:
    """Coarse logits are the exact ones and some noise."""
    generator = random(seed)
    stream, gain = normal(generator, rows, WIDTH), normal(generator, WIDTH)
    bias = normal(generator, WIDTH) if layer_norm else None
    output = normal(generator, VOCABULARY, WIDTH, dtype=dtype, scale=0.4)
    case = Case(stream, gain, bias, output, nan(1))
    return Case(stream, gain, bias, output, case.exact + normal(generator, rows, VOCABULARY, scale=0.5))


def find(case: Case, *, writes: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """leaders, leader_ids, and the logits afterwards."""
    peaks, peak_ids = case.peaks()
    height, logits = peaks.shape[2], case.logits.clone()
    leaders = nan(2, LEADERS, height)
    ids = torch.full((LEADERS, height), -1, dtype=torch.int32, device=DEVICE)
    with quiet():
        draft_leaders_kernel[(case.rows, LEADERS)](
            peaks,
            peak_ids,
            case.stream,
            case.gain,
            case.bias,
            case.output,
            leaders,
            ids,
            logits if writes else None,
            EPSILON,
            VOCABULARY,
            LEADERS=LEADERS,
            WIDTH=WIDTH,
            WIDTH_PADDED=triton.next_power_of_2(WIDTH),
            ROWS_PADDED=height,
            PARTS=len(peaks),
            PARTS_PADDED=triton.next_power_of_2(len(peaks)),
            DEPENDENT=DEPENDENT,
            num_warps=4,
            **LAUNCH,
        )
    return leaders, ids, logits


def choose(case: Case) -> tuple[Tensor, Tensor]:
    """state and report after a step's end, over no proposals but NO_ID ones."""
    leaders, ids, _ = find(case)
    peaks, _ = case.peaks()
    state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32, device=DEVICE)
    report = torch.zeros(judge.REPORT_SIZE, dtype=torch.int32, device=DEVICE)
    with quiet():
        draft_leading_choice_kernel[(1,)](
            state,
            state[judge.FLOATS :].view(torch.float32),
            peaks,
            leaders,
            ids,
            report,
            LEADERS=LEADERS,
            LEADERS_PADDED=triton.next_power_of_2(LEADERS),
            ROWS=case.rows,
            ROWS_PADDED=peaks.shape[2],
            PARTS=len(peaks),
            PARTS_PADDED=triton.next_power_of_2(len(peaks)),
            DEPENDENT=DEPENDENT,
            num_warps=4,
            **LAUNCH,
        )
    return state, report


def two_a_part(logits: Tensor) -> list[int]:
    """The leaders of one row, where a part gives two at most."""
    kept = [int(i) + part * PART for part, piece in enumerate(logits.split(PART)) for i in piece.topk(2).indices]
    return sorted(kept, key=lambda i: -float(logits[i]))[:LEADERS]


@pytest.mark.parametrize("rows", [1, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layer_norm", [False, True], ids=["rms", "layer"])
def test_leaders_get_the_logits_of_the_exact_rows(rows: int, dtype: torch.dtype, layer_norm: bool) -> None:
    case = make(rows, dtype, layer_norm=layer_norm)
    leaders, ids, _ = find(case)
    for row in range(rows):
        wanted = two_a_part(case.logits[row])
        assert ids[:, row].tolist() == wanted
        assert torch.allclose(leaders[0, :, row], case.exact[row, wanted], rtol=1e-4, atol=1e-4)
        assert torch.equal(leaders[1, :, row], case.logits[row, wanted])


def test_logits_are_exact_at_the_leaders_for_those_who_sample() -> None:
    case = make(2)
    _, ids, logits = find(case, writes=True)
    for row in range(2):
        wanted = ids[:, row].long()
        expected = case.logits[row].clone()
        expected[wanted] = case.exact[row, wanted]
        assert torch.allclose(logits[row], expected, rtol=1e-4, atol=1e-4)


def test_the_choice_and_its_probability_are_those_of_logits_exact_at_the_leaders() -> None:
    case, changed = make(4, seed=3), 0
    state, report = choose(case)
    floats = report.view(torch.float32)
    for row in range(4):
        logits = case.logits[row].clone()
        wanted = two_a_part(logits)
        logits[wanted] = case.exact[row, wanted]
        order = sorted(wanted, key=lambda i: -float(logits[i]))
        probs = torch.softmax(logits, 0)
        assert int(report[judge.OWN + row]) == order[0] and int(report[judge.SECONDS + row]) == order[1]
        assert float(floats[judge.OWN_PROBS + row]) == pytest.approx(float(probs[order[0]]), rel=1e-3)
        assert float(floats[judge.SECOND_PROBS + row]) == pytest.approx(float(probs[order[1]]), rel=1e-3)
        changed += order[0] != int(case.logits[row].argmax())
    assert changed, "the case must have a row that the coarse logits get wrong"
    assert int(state[judge.TOKENS + 1]) == int(report[judge.OWN]) and int(state[judge.CURSOR]) == 1


def test_a_row_that_is_nan_names_a_token_that_exists() -> None:
    case = make(1)
    broken = Case(case.stream * float("nan"), case.gain, None, case.output, case.logits * float("nan"))
    state, report = choose(broken)
    assert int(report[judge.OWN]) == 0 and int(report[judge.SECONDS]) == 0
    assert int(state[judge.TOKENS + 1]) == 0
    assert torch.isnan(report.view(torch.float32)[judge.OWN_PROBS])


def test_tokens_that_may_not_be_chosen_do_not_lead() -> None:
    case = make(1)
    only = torch.full_like(case.logits, float("-inf"))
    only[0, 17] = case.logits[0, 17]
    _, ids, _ = find(Case(case.stream, case.gain, None, case.output, only))
    assert ids[0, 0] == 17 and (ids[1:, 0] == NO_ID).all()
