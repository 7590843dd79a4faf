"""What a proof reports: per prompt, what was compared, and where the first difference is. Plain data, no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token of a reply in which speculation did not give what plain decoding gave.

    turn, position: which reply of the conversation and which token of that reply, both from 0.
    plain_token, speculative_token: the ids; equal where only the logits differ, None where a reply had ended.
    gap: the plain run's best logit less its second; None where the plain reply had ended.
    gamma: tokens drafted a cycle, None for the controller's own choice.
    row, rows: the token's row in its verify pass, from 0, and the rows of that pass; None where it was not reached.
    message: why the speculative reply failed, if it did.
    """

    prompt: str
    turn: int
    position: int
    plain_token: int | None
    speculative_token: int | None
    gap: float | None
    gamma: int | None
    row: int | None
    rows: int | None
    message: str | None = None

    @property
    def sentence(self) -> str:
        """The difference for people; tokens and turns are counted from 1."""
        where = f"at token {self.position + 1:,} of reply {self.turn + 1} to “{self.prompt}”"
        gap = "" if self.gap is None else f"; the plain run's two best logits are {self.gap:.6g} apart"
        if self.message is not None:
            return f"The speculative run failed {where}: {self.message}"
        if self.plain_token == self.speculative_token:
            return f"The logits differ {where}, where both choose token {self.plain_token}{gap}."
        plain = "has ended" if self.plain_token is None else f"chooses {self.plain_token}"
        other = "has ended" if self.speculative_token is None else f"chooses {self.speculative_token}"
        return f"The tokens differ {where}: plain decoding {plain}, speculation {other}{gap}."


@dataclass(frozen=True, slots=True)
class PromptProof:
    """One conversation, made with plain decoding and with speculation.

    tokens: tokens whose ids and logits were found equal. turns: replies compared. reused_tokens: prompt tokens that
    the speculative run took from the KV cache of its earlier replies. gammas: drafted a cycle, reply by reply.
    plain_seconds, speculative_seconds: time of decoding, prompts not counted.
    """

    prompt: str
    tokens: int
    turns: int
    reused_tokens: int
    gammas: tuple[int | None, ...]
    drafted: int
    accepted: int
    plain_seconds: float
    speculative_seconds: float
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class ProofProgress:
    """A proof has come this far: `done` of `total` tokens made, each compared token once in each way.

    result is set in the last report of each conversation.
    """

    prompt: str
    done: int
    total: int
    result: PromptProof | None = None


@dataclass(frozen=True, slots=True)
class ProofReport:
    """The outcome. wanted: tokens asked for; fewer were compared when a difference or a stop came first."""

    model: str
    device: str
    kernels: str
    wanted: int
    temperature: float
    seed: int | None
    seconds: float
    stopped: bool
    results: tuple[PromptProof, ...]

    @property
    def tokens(self) -> int:
        """Tokens found equal, ids and logits."""
        return sum(result.tokens for result in self.results)

    @property
    def prompts(self) -> int:
        """Different prompts they belong to."""
        return len({result.prompt for result in self.results if result.tokens})

    @property
    def difference(self) -> Difference | None:
        """The first difference found."""
        return next((result.difference for result in self.results if result.difference is not None), None)

    @property
    def sentence(self) -> str:
        """The outcome for people."""
        compared = f"{self.tokens:,} tokens, ids and logits, over {self.prompts} prompts"
        if self.difference is not None:
            return self.difference.sentence
        return f"Stopped; identical so far: {compared}." if self.stopped else f"Identical: {compared}."
