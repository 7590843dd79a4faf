"""Rounding to few bits in torch, on any device: for cards, and the oracle of the compiled rounding.

See rounding_rule.py for what is minimised and where the method is from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from engine.lowbit.codes import LowBitCodes
from engine.lowbit.rounding_rule import ENDS, FLOOR, LARGEST, REFITS, RIDGE, SAME_CODES, shrinkage

CHUNK_VALUES = 2**25  # weights rounded at a time: about a GiB of scratch


@dataclass(frozen=True, slots=True)
class _Fit:
    """Scale and low of groups, float32 [N, G, 1] with values that float16 holds, and their weighted error."""

    scale: torch.Tensor
    low: torch.Tensor
    error: torch.Tensor

    def or_better(self, other: _Fit) -> _Fit:
        """Group by group, the one with the smaller error; this one where they are equal."""
        pick = other.error < self.error
        return _Fit(
            torch.where(pick, other.scale, self.scale),
            torch.where(pick, other.low, self.low),
            torch.where(pick, other.error, self.error),
        )


@torch.inference_mode()
def round_matrix(
    weight: torch.Tensor,
    bits: int,
    group: int,
    mean_square: torch.Tensor | None = None,
    feedback: torch.Tensor | None = None,
) -> LowBitCodes:
    """Round to `bits` (1 to 8) in groups of `group` columns, which must divide K.

    weight: [N, K], any float type, finite. mean_square: float32 [K], E[x^2] of the matrix's input; None or zeros for
    all alike. feedback: float32 [K, K] from `feedback_of`, which makes rounding better and slower. All on one device.
    Without feedback the error weighted by mean_square is never above that of rounding to nearest.
    """
    rows, columns = weight.shape
    most = float(2**bits - 1)
    importance = _importance(mean_square, columns, weight.device).view(1, columns // group, group)
    codes = torch.empty(rows, columns, dtype=torch.uint8, device=weight.device)
    scale = torch.empty(rows, columns // group, dtype=torch.float16, device=weight.device)
    low = torch.empty_like(scale)
    for part in _chunks(rows, columns):
        values = weight[part].float()
        if feedback is None:
            grouped = values.view(-1, columns // group, group)
            fit = _fit(grouped, importance, most)
            codes[part] = _codes(grouped, fit.scale, fit.low, most).view(-1, columns).to(torch.uint8)
            scale[part], low[part] = fit.scale[..., 0].half(), fit.low[..., 0].half()
        else:
            _round_in_order(values, importance, most, feedback, (codes[part], scale[part], low[part]))
    factors = torch.ones(columns, device=weight.device)
    return LowBitCodes(codes, scale, low, factors, bits, group)


@torch.inference_mode()
def feedback_of(inputs: torch.Tensor) -> torch.Tensor:
    """What `round_matrix` needs to let columns make up for earlier ones: float32 [K, K], strictly upper triangular.

    inputs: [tokens, K], the matrix's inputs on some text. Leave out the first position of a text: models keep huge
    values there, which say nothing about other tokens. With F the result, M' = (F + I) D (F + I)^T, D diagonal.
    """
    tokens, columns = inputs.shape
    values = inputs.float()
    moments = values.T @ values / max(tokens, 1)
    spread = moments.diagonal().clone()
    part = shrinkage(tokens, columns)
    moments *= 1 - part
    moments.diagonal().add_(part * spread + RIDGE * spread.mean() + 1e-30)
    # Cholesky gives lower times upper; upper times lower is that of the matrix with both axes reversed.
    factor = torch.linalg.cholesky(moments.flip(0, 1)).flip(0, 1)
    return (factor / factor.diagonal()).triu(1).contiguous()


def _chunks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, CHUNK_VALUES // columns)
    return (slice(first, first + step) for first in range(0, rows, step))


def _importance(mean_square: torch.Tensor | None, columns: int, device: torch.device) -> torch.Tensor:
    """Weights of the columns' errors, about one on average; ones where nothing is known."""
    if mean_square is None:
        return torch.ones(columns, device=device)
    mean = mean_square.float().mean()
    relative = torch.where(mean > 0, mean_square.float() / mean.clamp(min=1e-30), torch.ones_like(mean_square))
    return relative + FLOOR


def _storable(values: torch.Tensor) -> torch.Tensor:
    """Rounded to what float16 holds, still float32."""
    return values.clamp(-LARGEST, LARGEST).half().float()


def _codes(values: torch.Tensor, scale: torch.Tensor, low: torch.Tensor, most: float) -> torch.Tensor:
    inverse = torch.where(scale > 0, 1.0 / scale, torch.zeros_like(scale))
    return ((values - low) * inverse).clamp(0, most).add_(0.5).floor_()


def _measured(
    values: torch.Tensor, importance: torch.Tensor, most: float, scale: torch.Tensor, low: torch.Tensor
) -> _Fit:
    """What rounding with these, as stored, comes to."""
    scale, low = _storable(scale), _storable(low)
    away = (_codes(values, scale, low, most) * scale).add_(low).sub_(values)
    return _Fit(scale, low, (away.square_() * importance).sum(-1, keepdim=True))


def _refitted(
    values: torch.Tensor, importance: torch.Tensor, most: float, scale: torch.Tensor, low: torch.Tensor
) -> _Fit:
    """Scale and low that are best for the codes that these give, measured with the codes they give themselves."""
    codes = _codes(values, scale, low, most)
    total = importance.sum(-1, keepdim=True)
    mean = (importance * codes).sum(-1, keepdim=True) / total
    squares = (importance * codes.square()).sum(-1, keepdim=True)
    wrong = (values - (codes * scale + low)).mul_(importance)
    errors = wrong.sum(-1, keepdim=True)
    spread = squares - total * mean.square()
    slope = ((wrong * codes).sum(-1, keepdim=True) - errors * mean) / spread.clamp(min=1e-30)
    slope = torch.where(spread > SAME_CODES * squares, slope, torch.zeros_like(slope))
    return _measured(values, importance, most, (scale + slope).clamp(min=0), low + errors / total - slope * mean)


def _fit(values: torch.Tensor, importance: torch.Tensor, most: float) -> _Fit:
    """The best scale and low found for each group. values [N, G, g], importance [1, G, g]."""
    least, greatest = values.amin(-1, keepdim=True), values.amax(-1, keepdim=True)
    middle, half = least + (greatest - least) * 0.5, (greatest - least) * 0.5
    nearest = _storable(least)
    best = _measured(values, importance, most, (greatest - nearest) / most, nearest)
    for below in ENDS:
        for above in ENDS:
            scale, low = _storable(half * ((below + above) / most)), _storable(middle - half * below)
            best = best.or_better(_refitted(values, importance, most, scale, low))
    for _ in range(REFITS):
        best = best.or_better(_refitted(values, importance, most, best.scale, best.low))
    return best


def _round_in_order(
    values: torch.Tensor,
    importance: torch.Tensor,
    most: float,
    feedback: torch.Tensor,
    out: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    """Round group after group, column after column; each column first takes up its share of the errors before it.

    values: float32 [N, K]. out: codes [N, K], scale [N, G], low [N, G], written.
    """
    codes, scales, lows = out
    group = importance.shape[2]
    wanted = values.clone()  # the values plus what earlier columns passed on
    for place in range(importance.shape[1]):
        first, last = place * group, (place + 1) * group
        fit = _fit(wanted[:, None, first:last], importance[:, place : place + 1], most)
        scale, low = fit.scale[:, 0], fit.low[:, 0]
        block = wanted[:, first:last]
        errors = torch.empty_like(block)
        for i in range(group):
            code = _codes(block[:, i : i + 1], scale, low, most)
            column = first + i
            codes[:, column] = code[:, 0].to(torch.uint8)
            errors[:, i : i + 1] = values[:, column : column + 1] - (code * scale + low)
            block[:, i + 1 :].addcmul_(errors[:, i : i + 1], feedback[column : column + 1, column + 1 : last])
        wanted[:, last:].addmm_(errors, feedback[first:last, last:])
        scales[:, place], lows[:, place] = scale[:, 0].half(), low[:, 0].half()
