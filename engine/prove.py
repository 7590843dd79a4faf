"""Proves that speculation changes nothing: both ways of decoding over the same prompts, compared bit for bit.

Every conversation is made twice. Plain decoding reads each prompt from nothing. Speculation keeps its KV cache from
one reply to the next, as a chat does, and drafts another number of tokens in each reply, so that blocks of all widths
are accepted and rejected. For every emitted token the id and a digest of the full model's logits must be equal.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

import numpy as np

from engine.errors import BadSetting, NoModel, SpecularError
from engine.model.observed import PassObserver
from engine.proof import Difference, PromptProof, ProofProgress, ProofReport
from engine.prove_prompts import FOLLOW_UPS, PROMPTS, ProofPrompt
from engine.records import CycleEvent, Event, Finished, ModelInfo, StopReason
from engine.settings import GenerateRequest, Message, Sampling, Speculation

GAMMAS = (1, 2, 3, 4, 5, 6, 7, 8, None)  # None: as the controller chooses
TURN_TOKENS = 256  # longest reply, so that many prompts are reread and many prefixes reused
TURNS = 8  # most replies of a conversation: each rereads all before it, and some models end theirs at once
LATER_SHARE = 64  # least tokens of a conversation after the first round, so that prompts do not outweigh replies
DIGEST_BYTES = 16


class ProvableEngine(Protocol):
    """What a proof needs of engine.engine.Engine."""

    @property
    def info(self) -> ModelInfo | None: ...
    @property
    def takes_text(self) -> bool: ...
    def count_tokens(self, messages: Sequence[Message]) -> int: ...
    def generate(self, request: GenerateRequest) -> Iterator[Event]: ...
    def stop(self) -> None: ...
    def forget(self) -> None: ...
    def observed(self, observer: PassObserver) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class _Row:
    """A token's logits: their digest, the distance of the two best, and which row of how many the pass had."""

    digest: bytes
    gap: float | None
    row: int
    rows: int


class _Recorder:
    """Keeps one _Row for each position, the last pass's where several wrote it: a rejected row is made again."""

    def __init__(self) -> None:
        self.rows: dict[int, _Row] = {}
        self.gaps = False

    def __call__(self, first_position: int, logits: np.ndarray) -> None:
        count = len(logits)
        for i, row in enumerate(logits):
            digest = blake2b(np.ascontiguousarray(row).data, digest_size=DIGEST_BYTES).digest()
            self.rows[first_position + i] = _Row(digest, _top_gap(row) if self.gaps else None, i, count)


def _top_gap(row: np.ndarray) -> float:
    second, best = np.partition(row, -2)[-2:]
    return float(best) - float(second)


@dataclass(slots=True)
class _Reply:
    """A reply taken to its end, with the row that each token was chosen from."""

    ids: list[int] = field(default_factory=list)
    text: str = ""
    rows: list[_Row] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    finished: Finished | None = None

    @property
    def failure(self) -> str | None:
        done = self.finished
        return done.message or "no reason given" if done and done.reason is StopReason.FAILED else None


class _Stopped(Exception):
    """The caller wants no more."""


def prove(
    engine: ProvableEngine,
    tokens: int,
    *,
    prompts: Sequence[ProofPrompt] = PROMPTS,
    sampling: Sampling | None = None,
    gamma: int | None = None,
    progress: Callable[[ProofProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ProofReport:
    """Compare `tokens` emitted tokens of the loaded model, spread evenly over `prompts`; nothing is raised on a
    difference, it is in the report. A conversation ends at its difference; the other prompts of the round go on.

    sampling: the same for both ways; a random seed becomes 0. gamma: the same in every reply, None goes through
    GAMMAS. cancelled: asked between cycles; what was compared until then is reported.
    Raises NoModel, BadSetting for numbers out of range, PromptTooLong when a first prompt does not fit the context,
    and SpecularError when plain decoding itself fails.
    """
    if tokens < 1:
        raise BadSetting(f"A proof must compare at least 1 token, not {tokens}.")
    if not prompts:
        raise BadSetting("A proof needs at least one prompt.")
    if engine.info is None:
        raise NoModel("No model is loaded.")
    if gamma is not None:
        Speculation(gamma=gamma)
    sampling = sampling or Sampling()
    if sampling.seed is None:
        sampling = replace(sampling, seed=0)
    proof = _Proof(engine, engine.info, tokens, prompts, sampling, gamma, progress, cancelled)
    began = time.perf_counter()
    with engine.observed(proof.recorder):
        stopped = proof.run()
    engine.forget()
    return ProofReport(
        model=engine.info.name,
        device=engine.info.device,
        kernels=engine.info.kernels,
        wanted=tokens,
        temperature=sampling.temperature,
        seed=None if sampling.greedy else sampling.seed,
        seconds=time.perf_counter() - began,
        stopped=stopped,
        results=tuple(proof.results),
    )


@dataclass(slots=True)
class _Proof:
    engine: ProvableEngine
    info: ModelInfo
    wanted: int
    prompts: Sequence[ProofPrompt]
    sampling: Sampling
    gamma: int | None
    progress: Callable[[ProofProgress], None]
    cancelled: Callable[[], bool]
    recorder: _Recorder = field(default_factory=_Recorder)
    results: list[PromptProof] = field(default_factory=list)
    compared: int = 0
    made: int = 0

    def run(self) -> bool:
        """Round after round over the prompts until enough is compared; returns whether it was cancelled."""
        round_number = 0
        try:
            while self.compared < self.wanted and not any(result.difference for result in self.results):
                for index in range(len(self.prompts)):
                    left = self.wanted - self.compared
                    share = -(-left // (len(self.prompts) - index))  # what some prompts fell short of, the next make
                    if left > 0:
                        least = LATER_SHARE if round_number else 1
                        self._prove_conversation(index, round_number, min(left, max(share, least)))
                round_number += 1
        except _Stopped:
            return True
        return False

    def _prove_conversation(self, index: int, round_number: int, most: int) -> None:
        """Make a conversation of `most` reply tokens both ways; one that fills the context or TURNS ends sooner."""
        name = self.prompts[index].name
        plain: list[tuple[GenerateRequest, _Reply]] = []
        left = most
        request = self._first_request(index, round_number)
        while left > 0 and len(plain) < TURNS and (not plain or self._fits(request)):
            request = replace(request, max_new_tokens=min(TURN_TOKENS, -(-most // 2), left))
            self.engine.forget()
            self.recorder.gaps = True
            reply = self._reply(name, request)
            if reply.failure is not None:
                raise SpecularError(f"Plain decoding failed at the prompt “{name}”: {reply.failure}")
            plain.append((request, reply))
            left -= len(reply.ids)
            request = self._next_request(request, reply, len(plain))
        self.recorder.gaps = False
        self.engine.forget()
        self._speculate(name, index + round_number, plain)

    def _speculate(self, name: str, offset: int, plain: list[tuple[GenerateRequest, _Reply]]) -> None:
        """Make the conversation again with speculation, each reply on the cache of the last, and compare."""
        result = PromptProof(name, 0, 0, 0, (), 0, 0, 0.0, 0.0)
        try:
            for turn, (request, expected) in enumerate(plain):
                gamma = self.gamma or GAMMAS[(offset + 4 * turn) % len(GAMMAS)]
                reply = self._reply(name, replace(request, speculation=Speculation(gamma=gamma)))
                equal = _equal_tokens(expected, reply)
                result = _with_turn(result, gamma, equal, expected, reply)
                if equal < max(len(expected.ids), len(reply.ids)) or reply.failure is not None:
                    difference = _difference(name, turn, equal, gamma, expected, reply)
                    result = replace(result, difference=difference)
                    break
        finally:
            self.compared += result.tokens
            self.results.append(result)
        self.made = 2 * self.compared  # a difference makes less of what was made
        self.progress(ProofProgress(name, self.made, 2 * self.wanted, result))

    def _reply(self, name: str, request: GenerateRequest) -> _Reply:
        """A reply taken to its end. Raises _Stopped when the caller wants no more."""
        reply = _Reply()
        self.recorder.rows.clear()
        for event in self.engine.generate(request):
            if isinstance(event, CycleEvent):
                reply.ids += event.record.emitted_ids
                reply.text += "".join(event.pieces)
                reply.drafted += event.record.drafted
                reply.accepted += event.record.accepted
                self.made += len(event.record.emitted_ids)
                self.progress(ProofProgress(name, self.made, 2 * self.wanted))
            elif isinstance(event, Finished):
                reply.finished, reply.text = event, reply.text + event.tail
                first = event.prompt_tokens - 1
                reply.rows = [self.recorder.rows[first + i] for i in range(len(reply.ids))]
            if self.cancelled():
                self.engine.stop()
        if self.cancelled():
            raise _Stopped
        return reply

    def _first_request(self, index: int, round_number: int) -> GenerateRequest:
        prompt = self.prompts[index]
        plain = Speculation(enabled=False)
        if self.engine.takes_text:
            # A second round asks for another answer; the same question would be answered by the same tokens.
            text = f"{prompt.text} (Version {round_number + 1}.)" if round_number else prompt.text
            return GenerateRequest(messages=(Message("user", text),), sampling=self.sampling, speculation=plain)
        ids = self._random_ids(f"{index} {round_number}", prompt.text)
        return GenerateRequest(prompt_ids=ids, sampling=self.sampling, speculation=plain)

    def _next_request(self, request: GenerateRequest, reply: _Reply, turn: int) -> GenerateRequest:
        """The request that continues the conversation after `turn` replies."""
        follow_up = FOLLOW_UPS[turn % len(FOLLOW_UPS)]
        if request.prompt_ids is None:
            added = (Message("assistant", reply.text), Message("user", follow_up))
            return replace(request, messages=request.messages + added)
        ids = self._random_ids(f"{turn} {len(request.prompt_ids)}", follow_up)
        return replace(request, prompt_ids=(*request.prompt_ids, *reply.ids, *ids))

    def _fits(self, request: GenerateRequest) -> bool:
        ids = request.prompt_ids
        return (self.engine.count_tokens(request.messages) if ids is None else len(ids)) < self.info.context

    def _random_ids(self, seed: str, text: str) -> tuple[int, ...]:
        """For a model without a tokenizer: as many ids as the text has characters, within a quarter of the context."""
        source = random.Random(seed)
        count = max(1, min(len(text), self.info.context // 4))
        return tuple(source.randrange(self.info.vocabulary) for _ in range(count))


def _equal_tokens(plain: _Reply, other: _Reply) -> int:
    """Leading tokens whose ids and logits are equal."""
    equal = 0
    for a, b, row_a, row_b in zip(plain.ids, other.ids, plain.rows, other.rows, strict=False):
        if a != b or row_a.digest != row_b.digest:
            break
        equal += 1
    return equal


def _with_turn(result: PromptProof, gamma: int | None, equal: int, plain: _Reply, other: _Reply) -> PromptProof:
    assert plain.finished is not None and other.finished is not None  # both were taken to their ends
    return replace(
        result,
        tokens=result.tokens + equal,
        turns=result.turns + 1,
        reused_tokens=result.reused_tokens + other.finished.reused_tokens,
        gammas=(*result.gammas, gamma),
        drafted=result.drafted + other.drafted,
        accepted=result.accepted + other.accepted,
        plain_seconds=result.plain_seconds + plain.finished.decode_seconds,
        speculative_seconds=result.speculative_seconds + other.finished.decode_seconds,
    )


def _difference(name: str, turn: int, at: int, gamma: int | None, plain: _Reply, other: _Reply) -> Difference:
    """The difference at token `at`, the first that is not equal."""
    row = other.rows[at] if at < len(other.rows) else None
    return Difference(
        prompt=name,
        turn=turn,
        position=at,
        plain_token=plain.ids[at] if at < len(plain.ids) else None,
        speculative_token=other.ids[at] if at < len(other.ids) else None,
        gap=plain.rows[at].gap if at < len(plain.rows) else None,
        gamma=gamma,
        row=row.row if row else None,
        rows=row.rows if row else None,
        message=other.failure if at >= len(other.ids) else None,
    )
