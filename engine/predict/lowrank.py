"""Low-rank predictors: which neurons behind a ReLU, or which attention heads, will matter for a token.

Two thin matrices guess, from a stream the layer has not worked on yet, what will be large in it (after Deja Vu, Liu
et al. 2023). The input may be an earlier one than that of the predicted part, so that the guess is made beside other
work: the normed input of the layer's attention serves both its heads and the MLP behind it. Fitted on the model's own
activations: a ridge solution cut to the wanted rank, then some hundred steps on the weighted cross-entropy, where a
neuron counts by what it adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch.nn import functional

from engine.predict.report import LayerReport, layer_report
from engine.predict.thresholds import as_numpy, threshold_for

Tensor = torch.Tensor

RIDGE = 0.01  # of the mean square of the inputs
FLOOR = 0.1  # least weight of an example, of the average importance: silent neurons must be learned too
LEARNING_RATE = 2e-3
BATCH = 1024
EXTRA = 8  # columns beyond the rank in the randomised decomposition


@dataclass(frozen=True, slots=True)
class LowRankPredictor:
    """score = (input @ inward) @ outward + bias; chosen where it is above the threshold.

    inward float32 [K, rank], outward float32 [rank, N], bias float32 [N], N neurons or heads.
    """

    inward: Tensor
    outward: Tensor
    bias: Tensor
    threshold: float

    def scores(self, inputs: Tensor) -> Tensor:
        """float32 [tokens, N] for float32 inputs [tokens, K]."""
        return (inputs @ self.inward) @ self.outward + self.bias

    def choose(self, inputs: Tensor) -> Tensor:
        """bool [tokens, N]."""
        return self.scores(inputs) > self.threshold


def fit_low_rank(
    inputs: Tensor, importance: Tensor, rank: int, share: float, *, steps: int = 300, seed: int = 0
) -> LowRankPredictor:
    """A predictor of the given rank that keeps about `share` of the N columns of importance.

    inputs: float32 [tokens, K]. importance: [tokens, N], at least 0, what each neuron or head adds at that token
    (|activation| times the norm of its row of the down projection; norm of a head's part of the attention's output).
    Both on the device to fit on; a rank above min(K, N) is lowered to it. Raises ValueError for a share outside (0, 1]
    and for tokens that do not match.
    """
    if len(inputs) != len(importance) or not len(inputs):
        raise ValueError(f"{len(inputs)} inputs cannot be fitted to {len(importance)} activations")
    wanted = _most_important(importance, share)
    generator = torch.Generator(inputs.device).manual_seed(seed)
    start = _cut_ridge(inputs, wanted, min(rank, inputs.shape[1], importance.shape[1]))
    fitted = _descend(start, inputs, wanted, _weights(importance), steps, generator)
    return replace(fitted, threshold=threshold_for(fitted.scores(inputs), share))


def report_low_rank(layer: int, predictor: LowRankPredictor, inputs: Tensor, importance: Tensor) -> LayerReport:
    """Recall on tokens kept back from the fit; arguments as in fit_low_rank."""
    return layer_report(layer, as_numpy(predictor.choose(inputs)), as_numpy(importance.float()))


def _most_important(importance: Tensor, share: float) -> Tensor:
    """1 where a column is among the token's largest `share` and not zero, float32 [tokens, N]."""
    if not 0 < share <= 1:
        raise ValueError(f"a share is above 0 to 1, not {share}")
    count = max(1, round(importance.shape[1] * share))
    least = importance.float().topk(count, dim=1).values[:, -1:]
    return ((importance >= least) & (importance > 0)).float()


def _weights(importance: Tensor) -> Tensor:
    """Each example's weight in the loss: its importance relative to the average, at least FLOOR; ones for silence."""
    average = importance.float().mean()
    if average <= 0:
        return torch.ones_like(importance, dtype=torch.float32)
    return (importance.float() / average).clamp(min=FLOOR)


def _cut_ridge(inputs: Tensor, wanted: Tensor, rank: int) -> LowRankPredictor:
    """The ridge solution projected on the leading directions of what it fits (reduced-rank regression)."""
    mean_in, mean_out = inputs.mean(0), wanted.mean(0)
    centred = inputs - mean_in
    scale = centred.square().mean().clamp(min=1e-12)  # inputs that are all zero fit nothing, and divide nothing
    square = centred.T @ centred / len(inputs) + RIDGE * scale * torch.eye(inputs.shape[1], device=inputs.device)
    solution = torch.linalg.solve(square, centred.T @ (wanted - mean_out) / len(inputs))
    width = min(rank + EXTRA, *solution.shape)
    sketch = torch.randn(
        solution.shape[1], width, device=inputs.device, generator=torch.Generator(inputs.device).manual_seed(0)
    )
    fits = centred @ solution
    for _ in range(2):  # power iterations sharpen the sketch of the leading directions
        sketch = torch.linalg.qr(fits.T @ (fits @ sketch)).Q
    _, _, directions = torch.linalg.svd(fits @ sketch, full_matrices=False)
    basis = (sketch @ directions.T)[:, :rank]
    odds = mean_out.clamp(1e-4, 1 - 1e-4)
    slope = 1 / (odds * (1 - odds))  # from a share to log-odds, which the loss works on
    inward, outward = solution @ basis, basis.T * slope
    return LowRankPredictor(inward, outward, torch.logit(odds) - mean_in @ inward @ outward, 0.0)


def _descend(
    start: LowRankPredictor, inputs: Tensor, wanted: Tensor, weights: Tensor, steps: int, generator: torch.Generator
) -> LowRankPredictor:
    """Adam on the weighted cross-entropy, its rate falling to zero."""
    with torch.enable_grad():
        parts = [part.clone().requires_grad_() for part in (start.inward, start.outward, start.bias)]
        optimiser = torch.optim.Adam(parts, LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, max(1, steps))
        for _ in range(steps):
            rows = torch.randint(len(inputs), (min(BATCH, len(inputs)),), device=inputs.device, generator=generator)
            scores = (inputs[rows] @ parts[0]) @ parts[1] + parts[2]
            loss = functional.binary_cross_entropy_with_logits(scores, wanted[rows], weights[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    inward, outward, bias = (part.detach() for part in parts)
    return LowRankPredictor(inward, outward, bias, 0.0)
