"""The records that everything outside the engine reads: one per cycle, and the events of a load and a reply.

Plain data, no torch and no Qt: a view, a test, an exported file and the terminal all read the same objects.
Times are seconds, sizes are bytes, probabilities are of the distribution the token was drawn from
(after temperature, top-k, top-p, min-p and penalty; for greedy replies the plain softmax).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.recipe import Ingredients, Recipe


class TokenState(str, Enum):
    """What became of one token. The first four are in the reply; `REJECTED` and `IGNORED` never are."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"
    PLAIN = "plain"
    REJECTED = "rejected"
    IGNORED = "ignored"


class StopReason(str, Enum):
    """Why a reply ended."""

    END_TOKEN = "end token"
    STOP_STRING = "stop string"
    LENGTH = "length limit"
    CONTEXT_FULL = "context full"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sibling:
    """The draft's second choice for a place (from 0) of the chain, which the full pass tried beside it.

    prob: the draft's probability of it. taken: it was the full model's choice where the chain was wrong, so that it
    counts as drafted, tested and accepted in the chain's stead. full_prob: the full model's probability of a taken
    one, else None.
    """

    place: int
    id: int
    prob: float
    taken: bool
    full_prob: float | None = None


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One draft-and-verify cycle (or one plain step, which has nothing drafted).

    drafted_ids, drafted_probs: the chain the draft proposed and the probability it gave each proposal (of one that was
        looked up and not checked by the draft: how often such look-ups were right).
    full_probs: the full model's probability of each *tested* proposal of the chain.
    accepted: how many leading proposals of the chain agree with the full model, plus one for a taken sibling.
    next_id, next_state, next_prob: the full model's own token after them (a correction, a bonus, or a plain
        step's token) and its probability; None when the reply ended inside the accepted run.
    emitted_ids: what this cycle adds to the reply: accepted proposals, cut at an end or the limit, then next_id.
    ignored: tokens found right but standing after an end or the limit; never part of the reply.
    wait_seconds: that the full pass stood waiting for parts of the model to be brought in; not in verify_seconds.
    streamed_bytes: of those parts.
    plain_seconds: a plain step at this length as last measured here; None until measured.
    kv_length: committed rows of the KV cache after the cycle.
    siblings: second choices that were tried; at most one is taken.
    looked_up: proposals of the chain that were found in the prompt or the reply so far.
    strategy: what the controller did and why, a short phrase ("plain: measuring", "chain + look-ups").
    """

    index: int
    drafted_ids: tuple[int, ...]
    drafted_probs: tuple[float, ...]
    full_probs: tuple[float, ...]
    accepted: int
    next_id: int | None
    next_state: TokenState | None
    next_prob: float | None
    emitted_ids: tuple[int, ...]
    ignored: int
    draft_seconds: float
    verify_seconds: float
    wait_seconds: float
    plain_seconds: float | None
    recipe: Recipe
    streamed_bytes: int
    kv_length: int
    siblings: tuple[Sibling, ...] = ()
    looked_up: int = 0
    strategy: str = "chain"

    @property
    def taken(self) -> Sibling | None:
        """The sibling that came into the reply (or stands after its end) in place of a wrong proposal."""
        return next((sibling for sibling in self.siblings if sibling.taken), None)

    @property
    def agreed(self) -> int:
        """Leading proposals of the chain that agree with the full model: `accepted` without a sibling."""
        return self.accepted - (self.taken is not None)

    @property
    def drafted(self) -> int:
        """Proposals: those of the chain, and a sibling that was taken."""
        return len(self.drafted_ids) + (self.taken is not None)

    @property
    def tested(self) -> int:
        """Proposals the full model judged: up to and including the first wrong one, and a sibling that was taken."""
        return len(self.full_probs) + (self.taken is not None)

    @property
    def rejected_ids(self) -> tuple[int, ...]:
        """The struck-through ghosts: the first wrong proposal and those after it that were never tested."""
        return self.drafted_ids[self.agreed :] if len(self.emitted_ids) > self.agreed else ()

    @property
    def emitted_states(self) -> tuple[TokenState, ...]:
        """State of each of `emitted_ids`."""
        ends_with_next = self.next_id is not None
        run = len(self.emitted_ids) - int(ends_with_next)
        states = (TokenState.ACCEPTED,) * run
        return states + ((self.next_state,) if ends_with_next and self.next_state else ())

    @property
    def seconds(self) -> float:
        """Wall time of the whole cycle."""
        return self.draft_seconds + self.verify_seconds + self.wait_seconds


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """A load has come this far. `what` is a short phrase for people ("Reading tensors", "Preparing the draft")."""

    what: str
    done: int
    total: int
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is loaded, for display.

    notes: sentences a user should see once (a fallback template, say). recipe: how the draft is made where a request
    does not say; calibrated: whether measuring on this device found it. ingredients: what a recipe may ask for here.
    card: UUID of the card that holds the model, None where the CPU runs it.
    """

    name: str
    path: str
    family: str
    layers: int
    hidden_size: int
    vocabulary: int
    context: int
    weights_dtype: str
    weights_bytes: int
    draft_bytes: int
    device: str
    kernels: str
    template: str
    notes: tuple[str, ...] = ()
    recipe: Recipe = field(default_factory=Recipe)
    calibrated: bool = False
    ingredients: Ingredients = field(default_factory=Ingredients)
    card: str | None = None


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """The prompt is being read: `done` of `total` tokens, of which `reused` were still in the KV cache."""

    done: int
    total: int
    reused: int


@dataclass(frozen=True, slots=True)
class Opening:
    """The reply begins with tokens that were given, `GenerateRequest.reply_prefix_ids`: no cycle made them.

    pieces: the text each of `ids` completes, as in a CycleEvent. It comes before every other event of the reply.
    """

    ids: tuple[int, ...]
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CycleEvent:
    """A cycle and its text.

    pieces: the text each of `record.emitted_ids` completes (may be empty: half a character, or text held back
        because it may become a stop string). Joined over a reply, after those of an `Opening` and with
        `Finished.tail` behind them, they are the reply.
    ghosts: the text of `record.rejected_ids`, decoded apart so that it can never leak into the reply.
    """

    record: CycleRecord
    pieces: tuple[str, ...]
    ghosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is over. `tail` is text that was still held back; `seed` is the one used (shown when random)."""

    reason: StopReason
    tail: str
    prompt_tokens: int
    reused_tokens: int
    new_tokens: int
    prefill_seconds: float
    decode_seconds: float
    seed: int
    message: str | None = None


Event = Opening | PrefillProgress | CycleEvent | Finished
