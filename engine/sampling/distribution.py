"""From logits to the distribution a token is drawn from.

Order and meaning follow transformers' generation: repetition penalty (CTRL, Keskar et al. 2019; over prompt and reply
ids, once per id), temperature, top-k (ties with the k-th are kept), top-p (Holtzman et al. 2020), min-p (Nguyen et
al. 2024), then renormalisation. Where top-p cuts through equal probabilities the lower ids are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import NumericFault
from engine.settings import Sampling

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

_SORTED_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Unnormalised weights of the tokens that can be drawn; the best token has weight 1.

    ids: ascending ids the weights belong to, or None when `weights` covers the whole vocabulary.
    weights: float32 [len(ids)] or [vocabulary], finite, >= 0.
    total: their sum.
    """

    ids: Ids | None
    weights: Floats
    total: float

    def probability(self, token: int) -> float:
        """Probability of a token; 0 for one that was cut or lies outside the vocabulary."""
        index = token
        if self.ids is not None:
            index = int(np.searchsorted(self.ids, token))
            if index == len(self.ids) or self.ids[index] != token:
                return 0.0
        return float(self.weights[index]) / self.total if 0 <= index < len(self.weights) else 0.0

    def dense(self, vocabulary: int) -> Floats:
        """All probabilities, float32 [vocabulary]."""
        probabilities = np.zeros(vocabulary, np.float32)
        probabilities[slice(None) if self.ids is None else self.ids] = self.weights / self.total
        return probabilities


def highest(logits: Floats, position: int | None = None) -> tuple[int, np.float32]:
    """Id (the lowest on ties) and value of the best logit of one row [vocabulary].

    Raises NumericFault when a logit is NaN or +infinity, or when none is above -infinity.
    """
    best = int(logits.argmax())  # a NaN, if there is one, is what argmax returns
    value = logits[best]
    require_finite(value, position)
    return best, value


def require_finite(value: np.float32, position: int | None) -> None:
    """Raises NumericFault when the best logit of a row is no number to sample by."""
    if not np.isfinite(value):
        cause = "NaN" if np.isnan(value) else "infinity" if value > 0 else "no possible token"
        raise NumericFault(cause, position)


def peak(logits: Floats, position: int | None = None) -> tuple[int, np.float32, float]:
    """As `highest`, and the sum of exp(logit - best) that a plain softmax divides by."""
    best, top = highest(logits, position)
    return best, top, float(softmax_weights(logits, top, 1.0).sum())


def penalise(logits: Floats, seen: Ids, penalty: float) -> Floats:
    """A copy of a row [vocabulary] in which every id of `seen` (each once) is made less likely by `penalty`."""
    changed = logits.copy()
    values = logits[seen]
    with np.errstate(over="ignore"):  # a finite logit pushed to infinity is reported where the row is used
        changed[seen] = np.where(values < 0, values * np.float32(penalty), values / np.float32(penalty))
    return changed


def softmax_weights(logits: Floats, top: np.float32, temperature: float) -> Floats:
    """exp((logits - top) / temperature), float32. Subtracting first keeps tiny temperatures and huge logits exact."""
    with np.errstate(over="ignore"):  # far below the top: -infinity, weight 0
        weights: Floats = np.subtract(logits, top, dtype=np.float32)
        if temperature != 1.0:
            weights /= np.float32(temperature)
    np.exp(weights, out=weights)
    return weights


def truncate(logits: Floats, settings: Sampling, position: int | None = None) -> Distribution:
    """The distribution of one row [vocabulary] float32 under non-greedy settings, the penalty already applied.

    Raises NumericFault as `highest` does.
    """
    _, top = highest(logits, position)
    ids: Ids | None = None
    if 0 < settings.top_k < len(logits):
        kth = np.partition(logits, len(logits) - settings.top_k)[len(logits) - settings.top_k]
        ids = np.flatnonzero(logits >= kth)
        logits = logits[ids]
    weights = softmax_weights(logits, top, settings.temperature)
    if settings.top_p < 1.0:
        ids, weights = _keep(ids, weights, _nucleus(weights, settings.top_p))
    if settings.min_p > 0.0:
        ids, weights = _keep(ids, weights, weights >= np.float32(settings.min_p))
    return Distribution(ids, weights, float(weights.sum()))


def process(logits: npt.ArrayLike, settings: Sampling, history: Sequence[int] = ()) -> Floats:
    """The probabilities, float32 [vocabulary], that a token after `history` is drawn from, given its logits.

    For greedy settings all probability is on the best token. Raises NumericFault as `highest` does.
    """
    row = np.asarray(logits, np.float32)
    if settings.repetition_penalty != 1.0 and len(history):
        seen = np.unique(np.asarray(history, np.intp))
        row = penalise(row, seen[(seen >= 0) & (seen < len(row))], settings.repetition_penalty)
    if settings.greedy:
        best, _ = highest(row)
        return Distribution(np.array([best]), np.ones(1, np.float32), 1.0).dense(len(row))
    return truncate(row, settings).dense(len(row))


def _keep(ids: Ids | None, weights: Floats, mask: Mask) -> tuple[Ids | None, Floats]:
    """Cuts what the mask leaves out; where it leaves out little, zero weights are cheaper than a gather."""
    if np.count_nonzero(mask) * 4 > len(mask):
        return ids, weights * mask
    kept = np.flatnonzero(mask)
    return (kept if ids is None else ids[kept]), weights[kept]


def _nucleus(weights: Floats, top_p: float) -> Mask:
    """The smallest set of best tokens whose probability reaches top_p, as a mask over `weights`; never empty.

    Finds the smallest kept weight by halving (a quickselect by mass): sorting a flat vocabulary takes 5 times longer.
    """
    goal = top_p * float(weights.sum(dtype=np.float64))
    mass, count, active = 0.0, 0, weights  # `count` tokens of weight sum `mass` are kept for certain
    while len(active) > _SORTED_AT_ONCE:
        half = len(active) // 2
        split = np.partition(active, half)
        upper_mass = float(split[half:].sum(dtype=np.float64))
        if mass + upper_mass >= goal:
            active = split[half:]
        else:
            mass, count, active = mass + upper_mass, count + len(active) - half, split[:half]
    ranked = np.sort(active)[::-1].astype(np.float64)
    before = mass + np.cumsum(ranked) - ranked
    kept = max(1, int(np.count_nonzero(before < goal)))
    cut = np.float32(ranked[kept - 1])
    mask: Mask = weights > cut
    level = np.flatnonzero(weights == cut)
    mask[level[: count + kept - np.count_nonzero(mask)]] = True
    return mask
