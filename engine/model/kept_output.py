"""Which tokens a draft with a reduced vocabulary can propose: the frequent ones, and those met of late.

Vocabularies of merged pairs number their tokens in the order in which the pairs were found, the most frequent first,
so low ids stand in for a frequency table. Tokens of the sample text, control tokens and every token that a full pass
has read join them; those met take turns in the last places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from engine.kernels.compiled.memory import Memory
from engine.model.draft_weights import DraftWeights
from engine.model.programme import Buffer
from engine.model.runner import MAX_DRAFT_ROWS
from engine.recipe import Recipe

MET_SHARE = 0.25  # of the places, for tokens met in prompts and replies
NOWHERE = -1


class KeptTokens:
    """ids: int32 [kept], the token at each place, rewritten in place by `meet`.

    always: tokens that keep their place (control tokens, a sample text), as far as there is room for them.
    """

    def __init__(self, vocabulary: int, kept: int, always: Iterable[int]) -> None:
        self._first_met = kept - int(kept * MET_SHARE)
        wanted = np.array(list(dict.fromkeys(always))[: self._first_met], np.int64)
        free = np.ones(vocabulary, bool)
        free[wanted] = False
        self.ids = np.concatenate([wanted, np.flatnonzero(free)[: kept - len(wanted)]]).astype(np.int32)
        self._place = np.full(vocabulary, NOWHERE, np.int32)
        self._place[self.ids] = np.arange(kept)
        self._next = self._first_met

    def meet(self, tokens: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Give each token that has no place one, in turns; yields (place, the token before, the new token)."""
        for token in tokens:
            if self._place[token] != NOWHERE:
                continue
            place, old = self._next, int(self.ids[self._next])
            self._next = self._first_met if place + 1 == len(self.ids) else place + 1
            self._place[old], self._place[token], self.ids[place] = NOWHERE, place, token
            yield place, old, token


class KeptOutput:
    """The output matrix's rows of the kept tokens, and the draft's logits over all tokens.

    rows: the matrix. logits: float32 [draft rows, vocabulary], minus infinity where a token is not kept.
    """

    def __init__(self, weights: DraftWeights, recipe: Recipe, kept: int, always: Iterable[int]) -> None:
        vocabulary = weights.config.vocabulary
        self._weights, self._recipe = weights, recipe
        self._tokens = KeptTokens(vocabulary, kept, always)
        self.rows = weights.kept(recipe, self._tokens.ids)
        self.logits = np.full((MAX_DRAFT_ROWS, vocabulary), -np.inf, np.float32)
        self._kept_logits = np.zeros((MAX_DRAFT_ROWS, kept), np.float32)

    def beside(self, memory: Memory) -> Memory:
        """The memory of a draft that uses these rows."""
        buffers = {Buffer.KEPT_LOGITS: self._kept_logits, Buffer.DRAFT_LOGITS: self.logits}
        return replace(memory, buffers={**memory.buffers, **buffers}, kept=self._tokens.ids)

    def meet(self, tokens: Iterable[int]) -> None:
        """Keep these tokens from now on, in place of those met longest ago."""
        for place, old, token in self._tokens.meet(tokens):
            self._weights.replace(self._recipe, self.rows, place, token)
            self.logits[:, old] = -np.inf
