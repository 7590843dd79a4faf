"""What a caller asks of the engine: messages, sampling, speculation. Checked when made, frozen after."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from engine.errors import BadSetting
from engine.recipe import Recipe

GB = 1e9  # bytes
LEAST_BUDGET_GB, MOST_BUDGET_GB = 0.001, 100_000.0
MAX_GAMMA = 15  # verify is at most 16 rows wide


def _check(name: str, value: float, low: float, high: float) -> None:
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise BadSetting(f"{name} is {value}, but must be a number from {low:g} to {high:g}.")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a model is loaded. context None: the model's own, up to 8192 tokens.

    virtual_memory: whether the KV cache may lie in it; the tokens are the same either way.
    budget_gb: GB (10^9 bytes) of the card's memory, or of RAM without one, that the model may take; None for what is
    free. offload: whether parts of it may be brought in for every full pass where it does not fit.
    Raises BadSetting for a budget that is not above 0.
    """

    context: int | None = None
    virtual_memory: bool = True
    budget_gb: float | None = None
    offload: bool = True

    def __post_init__(self) -> None:
        if self.budget_gb is not None:
            _check("The memory budget in GB", self.budget_gb, LEAST_BUDGET_GB, MOST_BUDGET_GB)

    @property
    def budget_bytes(self) -> int | None:
        """The budget in bytes."""
        return None if self.budget_gb is None else int(self.budget_gb * GB)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. role: "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen from the full model's distribution.

    temperature 0 (or top_k 1, or top_p 0) is greedy. top_k 0 keeps all; a top_k above the vocabulary keeps all.
    seed None draws a fresh one, which `Finished.seed` reports.
    Raises BadSetting for NaN, infinities and values out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0, 10)
        _check("top_k", self.top_k, 0, 2**31)
        _check("top_p", self.top_p, 0, 1)
        _check("min_p", self.min_p, 0, 1)
        _check("repetition_penalty", self.repetition_penalty, 0.1, 10)
        if self.seed is not None:
            _check("seed", self.seed, 0, 2**63 - 1)

    @property
    def greedy(self) -> bool:
        """True where the best token is taken, whatever the other values."""
        return self.temperature < 1e-5 or self.top_k == 1 or self.top_p == 0.0


@dataclass(frozen=True, slots=True)
class Speculation:
    """Whether and how far to draft. gamma None follows the measured gain; recipe None takes the model's default.

    cascade: also propose what followed the same words before, in the prompt or the reply, where that pays.
    siblings: let the full pass try second choices beside unsure proposals, where rows of it are nearly free.
    """

    enabled: bool = True
    gamma: int | None = None
    recipe: Recipe | None = None
    cascade: bool = True
    siblings: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            _check("gamma", self.gamma, 1, MAX_GAMMA)


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One reply to make: either chat `messages` (through the model's template), a raw `prompt`, or `prompt_ids`.

    conversation: whose earlier replies' rows in the KV cache this one may build on; any number the caller gives a chat.
    reply_prefix_ids: tokens that the reply begins with, as if the model had chosen them. They count as part of the
    prompt in figures and limits, and as part of the reply in its text.
    max_new_tokens None means up to the context's end; 0 gives an empty reply. stop_strings end the reply and are
    not part of it. Raises BadSetting when no prompt is given or a number is out of range.
    """

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    sampling: Sampling = field(default_factory=Sampling)
    speculation: Speculation = field(default_factory=Speculation)
    max_new_tokens: int | None = None
    stop_strings: tuple[str, ...] = ()
    conversation: int = 0
    reply_prefix_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.messages and self.prompt is None and self.prompt_ids is None:
            raise BadSetting("There is no prompt: give messages, a prompt or token ids.")
        if self.max_new_tokens is not None:
            _check("max_new_tokens", self.max_new_tokens, 0, 2**31)
