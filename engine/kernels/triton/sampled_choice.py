"""Sampled choice of tokens on the card: the buffers that threshold.py and race.py work in, and their launches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton

from engine.kernels.triton import race, threshold
from engine.kernels.triton.hardware import supports_dependent_launch
from engine.settings import Sampling

ROWS = 16
BLOCK = 1024  # tokens of the vocabulary in a program

Tensor = torch.Tensor


class SampledChoice:
    """Ends steps as judge_kernel and propose_kernel do, choosing under any settings instead of the best token.

    Launches read seed, settings and seen ids from the card, so one capture serves every reply. They allocate nothing
    and do not synchronise. Choice and probability of a row depend on its logits and position alone.
    """

    def __init__(
        self, state: Tensor, floats: Tensor, logits: Tensor, allowed: int | None = None, block: int = BLOCK
    ) -> None:
        """state, floats: see judge.py. logits: float32 [16, vocabulary]. allowed: ids from here on are never chosen.

        Raises ValueError for a vocabulary of more than 2^19 tokens.
        """
        vocabulary, device = logits.shape[1], logits.device
        if vocabulary > threshold.MAX_VOCABULARY:
            raise ValueError(f"a vocabulary of {vocabulary} tokens is too large to sum its weights")
        self._state, self._floats, self._logits = state, floats, logits
        self._vocabulary, self._block = vocabulary, block
        self._allowed = vocabulary if allowed is None else min(allowed, vocabulary)
        self._parts = triton.cdiv(self._allowed, block)
        self._dependent = supports_dependent_launch(device)

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._seed = zeros(1)
        self._settings = zeros(threshold.SETTINGS_SIZE, dtype=torch.float64)
        self._seen = zeros(vocabulary, dtype=torch.uint8)
        self._scores = zeros(ROWS, self._allowed, dtype=torch.float32)
        self._maxima = zeros(ROWS, self._parts, dtype=torch.float32)
        self._digits = zeros(ROWS, threshold.LEVELS, threshold.DIGITS)
        self._found = zeros(ROWS, threshold.LEVELS, 2)
        self._last_digits = zeros(ROWS, self._parts, threshold.DIGITS)
        self._partials = zeros(ROWS, race.PARTIALS, self._parts, dtype=torch.float32)
        self._partial_ids = zeros(ROWS, self._parts, dtype=torch.int32)
        self.configure(Sampling(), 0)

    def configure(self, settings: Sampling, seed: int, history: Sequence[int] = ()) -> None:
        """Take up a reply: ordered on the current stream before later launches.

        history: all ids of prompt and reply so far, the block's first token included; read only where there is a
        repetition penalty. Ids that judged passes emit join it on the card, so call this again before a pass that
            replaces one already judged.
        """
        values = torch.zeros(threshold.SETTINGS_SIZE, dtype=torch.float64)
        greedy = settings.greedy
        values[threshold.TEMPERATURE] = 1.0 if greedy else settings.temperature
        values[threshold.TOP_K] = 0 if greedy else settings.top_k
        values[threshold.TOP_P] = 1.0 if greedy else settings.top_p
        values[threshold.MIN_P] = 0.0 if greedy else settings.min_p
        values[threshold.PENALTY] = settings.repetition_penalty
        values[threshold.DRAWS] = 0.0 if greedy else 1.0
        self._settings.copy_(values)
        word = seed & (2**64 - 1)
        self._seed.fill_(word - 2**64 if word >= 2**63 else word)
        if settings.repetition_penalty != 1.0:
            marks = torch.zeros(self._vocabulary, dtype=torch.uint8)
            known = torch.as_tensor(list(history), dtype=torch.int64)
            marks[known[(known >= 0) & (known < self._vocabulary)]] = 1
            self._seen.copy_(marks)

    def launch_judge(self, rows: int) -> None:
        """After the logits of a full pass over `rows` tokens: choose, accept, and make the state ready."""
        self._race(rows, at_cursor=False)
        race.judge_raced_kernel[(1,)](
            self._state,
            self._floats,
            self._seen,
            self._partials,
            self._partial_ids,
            rows,
            self._vocabulary,
            **self._parts_and_launch(),
            num_warps=8,
        )

    def launch_propose(self, rows: int, report: Tensor) -> None:
        """After the logits of a draft step of `rows` rows: extend the block and report (see judge.py)."""
        self._race(rows, at_cursor=True)
        race.propose_raced_kernel[(1,)](
            self._state,
            self._floats,
            self._partials,
            self._partial_ids,
            report,
            ROWS_=rows,
            ROWS_PADDED=triton.next_power_of_2(rows),
            **self._parts_and_launch(),
            num_warps=4,
        )

    def _race(self, rows: int, *, at_cursor: bool) -> None:
        grid = (self._parts, rows)
        common = self._parts_and_launch()
        threshold.prepare_kernel[grid](
            self._state,
            self._logits,
            self._seen,
            self._settings,
            self._scores,
            self._maxima,
            self._digits,
            self._vocabulary,
            self._allowed,
            BLOCK=self._block,
            AT_CURSOR=at_cursor,
            num_warps=4,
            **{name: value for name, value in common.items() if name != "PARTS_PADDED"},
        )
        for level in range(threshold.LEVELS):
            threshold.narrow_kernel[grid](
                self._scores,
                self._maxima,
                self._settings,
                self._digits,
                self._found,
                self._last_digits,
                self._allowed,
                level,
                BY_MASS=level >= threshold.COUNT_LEVELS,
                FIRST=level in (0, threshold.COUNT_LEVELS),
                LAST=level == threshold.LEVELS - 1,
                BLOCK=self._block,
                num_warps=8,
                **common,
            )
        race.race_kernel[grid](
            self._state,
            self._scores,
            self._maxima,
            self._settings,
            self._seed,
            self._digits,
            self._found,
            self._last_digits,
            self._partials,
            self._partial_ids,
            self._allowed,
            BLOCK=self._block,
            AT_CURSOR=at_cursor,
            num_warps=4,
            **common,
        )

    def _parts_and_launch(self) -> dict[str, int | bool]:
        """What every launch of these kernels names."""
        common: dict[str, int | bool] = {"PARTS": self._parts, "PARTS_PADDED": triton.next_power_of_2(self._parts)}
        return common | {"DEPENDENT": self._dependent} | ({"launch_pdl": True} if self._dependent else {})
