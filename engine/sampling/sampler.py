"""Drafter-invariant exact sampling.

The token at absolute position t (the number of tokens before it, prompt included) is argmax_i p_i / E_i(seed, t),
the lowest id on ties: p is the full model's processed distribution, E the noise of `noise.py`. The draft chooses its
proposal by the same rule with the same noise from its own distribution q, and a proposal is accepted when it *is* the
full model's choice. This is the Gumbel-max coupling used as "drafter-invariant speculative decoding" (Daliri, Musco,
Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024). So

- the reply has exactly the full model's distribution: each token is one exponential race over p;
- it equals plain sampling with the same seed token for token, whatever the draft, its length or its timing;
- it is accepted with probability sum_i 1 / sum_j max(p_j/p_i, q_j/q_i) >= (1 - TV) / (1 + TV), against 1 - TV of
  rejection sampling, which would give up the two properties above.

Greedy is the case of temperature 0: the noise drops out and the best token is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import NumericFault
from engine.sampling.distribution import Distribution, Floats, Ids, peak, penalise, truncate
from engine.sampling.noise import Noise, fresh_seed
from engine.settings import Sampling

PeakFinder = Callable[[Floats, int | None], tuple[int, np.float32, float]]


@dataclass(frozen=True, slots=True, eq=False)
class _GreedyRow:
    """A plain softmax kept as a view of its logits, so that a greedy row costs one argmax and one sum."""

    logits: Floats
    top: np.float32
    total: float

    def probability(self, token: int) -> float:
        if not 0 <= token < len(self.logits):
            return 0.0
        return math.exp(float(self.logits[token]) - float(self.top)) / self.total


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What was chosen for each row: `ids`, and `probs` in the distribution each was drawn from (greedy: softmax).

    Greedy rows refer to the logits they came from: ask `probability_of` before that array is written again.
    """

    ids: tuple[int, ...]
    probs: tuple[float, ...]
    _rows: tuple[Distribution | _GreedyRow, ...]

    def probability_of(self, row: int, token: int) -> float:
        """Probability of any token in a row's distribution; 0 for one that could not have been chosen."""
        return self._rows[row].probability(token)


class Sampler:
    """Chooses the tokens of one reply. Not thread-safe.

    seed: overrides `settings.seed`; with neither, a fresh one is drawn. `self.seed` is the one in use.
    vocabulary: width of the logits. allowed_vocabulary: ids from here on (padding rows of the output matrix) are
        never chosen; None allows all.
    peak: a faster `distribution.peak`, of the same contract, for greedy rows.
    """

    def __init__(
        self,
        settings: Sampling,
        vocabulary: int,
        seed: int | None = None,
        *,
        allowed_vocabulary: int | None = None,
        peak: PeakFinder = peak,
    ) -> None:
        chosen_seed = seed if seed is not None else settings.seed
        self.settings = settings
        self.seed = fresh_seed() if chosen_seed is None else chosen_seed
        self._allowed = min(vocabulary, vocabulary if allowed_vocabulary is None else allowed_vocabulary)
        self._peak = peak
        self._noise = None if settings.greedy else Noise(self.seed, self._allowed)
        self._seen = _SeenTokens(self._allowed) if settings.repetition_penalty != 1.0 else None

    def choose(
        self, logits: Floats, first_position: int, history: Sequence[int], drafted: Sequence[int] = ()
    ) -> Choice:
        """One token for each row of float32 logits [rows, vocabulary].

        Row r stands at position first_position + r, after history + drafted[:r]. `history` holds every committed
        id, prompt included; it is read only when there is a repetition penalty.
        Raises NumericFault for NaN or infinite logits, ValueError when rows lack a drafted token before them.
        """
        if len(logits) > len(drafted) + 1:
            raise ValueError(f"{len(logits)} rows need {len(logits) - 1} drafted tokens, not {len(drafted)}")
        chosen = []
        if self._seen is not None:
            self._seen.follow(history)
        for r, row in enumerate(logits):
            chosen.append(self._choose_row(row, first_position + r, drafted[:r]))
        ids, probs, rows = zip(*chosen, strict=True) if chosen else ((), (), ())
        return Choice(ids, probs, rows)

    def judge(self, logits: Floats, first_position: int, history: Sequence[int], drafted: Sequence[int]) -> Choice:
        """As `choose`, for as many rows as matter: up to the first whose token is not the drafted one after it.

        Ends before a row that is NaN or infinite in place of raising; so there may be no row at all.
        """
        chosen: list[tuple[int, float, Distribution | _GreedyRow]] = []
        if self._seen is not None:
            self._seen.follow(history)
        for r, row in enumerate(logits):
            try:
                chosen.append(self._choose_row(row, first_position + r, drafted[:r]))
            except NumericFault:
                break
            if r < len(drafted) and chosen[-1][0] != drafted[r]:
                break
        ids, probs, rows = zip(*chosen, strict=True) if chosen else ((), (), ())
        return Choice(ids, probs, rows)

    def propose(
        self, logits: Floats, position: int, history: Sequence[int], drafted: Sequence[int] = ()
    ) -> tuple[int, float]:
        """A draft's next token and its probability, from the draft's logits [vocabulary] after history + drafted.

        The same rule and noise as `choose`, so the better the draft's distribution the likelier they agree.
        Raises NumericFault for NaN or infinite logits.
        """
        if self._seen is not None:
            self._seen.follow(history)
        token, probability, _ = self._choose_row(logits, position, drafted)
        return token, probability

    def ranked(
        self, logits: Floats, position: int, history: Sequence[int], drafted: Sequence[int], count: int
    ) -> tuple[tuple[int, float], ...]:
        """The `count` best tokens and their probabilities, best first, of a row that `propose` would take the first of.

        Greedy: by logit; else in the order the race ends in, so that the second is what would be drawn without the
        first. Fewer where fewer can be drawn. Raises NumericFault for NaN or infinite logits.
        """
        if self._seen is not None:
            self._seen.follow(history)
        first, _, row = self._choose_row(logits, position, drafted)
        if isinstance(row, _GreedyRow):
            scores, ids = row.logits, None
        else:
            assert self._noise is not None  # rows are drawn from a distribution only with noise
            scores, ids = row.weights / self._noise.exponentials(position, row.ids), row.ids
        most = min(count, len(scores))
        best = np.argpartition(-scores, most - 1)[:most]
        order = best[np.lexsort((best, -scores[best]))]
        tokens = order if ids is None else ids[order]
        others = [int(token) for token in tokens if token != first]
        probs = ((token, row.probability(token)) for token in (first, *others[: count - 1]))
        return tuple((token, prob) for token, prob in probs if prob > 0)

    def _choose_row(
        self, row: Floats, position: int, drafted: Sequence[int]
    ) -> tuple[int, float, Distribution | _GreedyRow]:
        row = np.asarray(row[: self._allowed], np.float32)
        if self._seen is not None:
            row = penalise(row, self._seen.ids_with(drafted), self.settings.repetition_penalty)
        if self._noise is None:
            token, top, total = self._peak(row, position)
            return token, 1.0 / total, _GreedyRow(row, top, total)
        law = truncate(row, self.settings, position)
        index = int((law.weights / self._noise.exponentials(position, law.ids)).argmax())
        token = index if law.ids is None else int(law.ids[index])
        return token, float(law.weights[index]) / law.total, law


class _SeenTokens:
    """Which ids occur in a history that mostly grows at its end."""

    def __init__(self, vocabulary: int) -> None:
        self._flags = np.zeros(vocabulary, bool)
        self._history: list[int] = []

    def follow(self, history: Sequence[int]) -> None:
        """Makes `history` the current one: cheap when it continues the last, a rebuild when it does not."""
        known = len(self._history)
        now = list(history)
        if now[:known] != self._history:
            self._flags[:] = False
            known = 0
        self._flags[self._inside(now[known:])] = True
        self._history = now

    def ids_with(self, drafted: Sequence[int]) -> Ids:
        """Ascending ids that occur in the history or in `drafted`."""
        extra = self._inside(drafted)
        new = extra[~self._flags[extra]]
        self._flags[new] = True
        ids = np.flatnonzero(self._flags)
        self._flags[new] = False
        return ids

    def _inside(self, ids: Sequence[int]) -> Ids:
        array = np.asarray(ids, np.intp)
        return array[(array >= 0) & (array < len(self._flags))]
