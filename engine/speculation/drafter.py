"""What differs between devices in a cycle: the draft passes and the full pass. The loop around them is the stepper's.

A cycle is begin, then step after step, then verify. The block is what the steps have added so far: the chain. The
full pass takes the last known token, the block, an unchecked tail, and siblings: other choices for places of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Proposal:
    """A token that the draft chose, and its runner-up.

    prob, second_prob: the draft's probabilities of both (of the distribution it draws from; greedy: softmax), 0 where
    the draft computed nonsense. second_id: the greedy runner-up, or the second of the race where tokens are drawn;
    None where unknown.
    """

    id: int
    prob: float
    second_id: int | None = None
    second_prob: float = 0.0


@dataclass(frozen=True, slots=True)
class SiblingPlan:
    """A token that the full pass shall try beside place `place` (from 0) of the block, after block[:place].

    Its row stands at the position of block[place]: it attends to the known tokens, block[:place] and itself.
    """

    place: int
    id: int
    prob: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the full model says of a block and its tail (together the chain) and of the siblings.

    chosen_ids, chosen_probs: its token after the last known one and after each of the chain: one more than the chain
        is long. Behind the first that differs from the chain they need not be computed: -1 and NaN.
    chain_probs: its probability of each of the chain; NaN where not computed.
    sibling_ids, sibling_probs: its token after each sibling, in the order of the plan; -1 and NaN where not computed.
    step_seconds: time of each draft pass of the cycle, in order. verify_seconds: of the full pass.
    A probability that is NaN in a row that counts is a fault of the model in that row; the stepper deals with it.
    """

    chosen_ids: tuple[int, ...]
    chosen_probs: tuple[float, ...]
    chain_probs: tuple[float, ...]
    sibling_ids: tuple[int, ...]
    sibling_probs: tuple[float, ...]
    step_seconds: tuple[float, ...]
    verify_seconds: float


class Drafter(Protocol):
    """Draft and full passes of one reply, on one device.

    The KV cache: draft passes write rows in place behind the known tokens; the full pass writes them all anew. Where
    a sibling is taken, its key and value must stand in the row of block[place] before the next pass reads it.
    Which sibling is taken follows from the verdict alone: with a = the leading tokens of the chain that equal
    chosen_ids, the first sibling of the plan whose place is a and whose id is chosen_ids[a].
    The reply's next `begin` shows what was committed: ids then ends with the accepted chain, the sibling if any, and
    the full model's own token; it may also end earlier (the reply was cut), or not have moved (see begin).
    """

    @property
    def rows(self) -> int:
        """Rows of the widest full pass."""
        ...

    @property
    def most_siblings(self) -> int:
        """Sibling rows a full pass can carry beside its chain, within its rows in all; 0 where there are none."""
        ...

    @property
    def draft_rows(self) -> int:
        """Tokens that one draft pass takes: 1 where it cannot check proposals."""
        ...

    def begin(self, ids: Sequence[int]) -> None:
        """Start a cycle after `ids`, all known tokens. The cache covers ids[:-1]; ids[-1] is the first row.

        The same ids again, after a verdict with a fault: the cycle is repeated without a draft, and nothing of the
        failed pass may remain (tokens it marked as seen for the repetition penalty, say).
        """
        ...

    def step(self, proposals: Sequence[int]) -> Sequence[Proposal]:
        """One draft pass over the last token of the block (at first: the last known one) and the proposals.

        At most draft_rows - 1 proposals. The draft's own choice after each row is compared with the proposal there;
        what the step adds to the block is returned: the proposals that agree, up to the first that does not, then the
        draft's own token after them (which, after a disagreement, stands in the place of the wrong proposal). So it
        returns 1 to len(proposals) + 1 tokens; fewer, perhaps none, where the draft computed NaN: the block then ends
        there. The choice after each row is made with the noise of its own position and, under a repetition penalty,
        with the tokens before it as seen, so that it is what one-token steps would have chosen.
        """
        ...

    def verify(self, tail: Sequence[int], siblings: Sequence[SiblingPlan]) -> Verdict:
        """The full pass over the last known token, the block, `tail` (proposals nobody checked), and the siblings.

        1 + block + tail + siblings are at most 16. Siblings stand in order of place, at places of block and tail.
        """
        ...
