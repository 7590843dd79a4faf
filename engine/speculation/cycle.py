"""One reply, cycle by cycle: draft, verify in one full pass, keep what agrees, say what happened.

The loop holds `ids`, all tokens of the conversation so far. The KV cache always covers all of them but the last:
each cycle feeds that last token, followed by the draft's proposals, through one full pass. What the draft wrote into
the cache is overwritten by that pass before anything reads it, and rejected rows are forgotten by not counting them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.errors import PassStopped
from engine.model.runner import MAX_DRAFT_ROWS, Runner
from engine.offload.transfers import Transfers
from engine.records import CycleEvent, CycleRecord, Opening, PrefillProgress, StopReason
from engine.sampling.accept import Cut, cut
from engine.settings import Speculation
from engine.speculation.block import JudgedBlock
from engine.speculation.controller import GammaController
from engine.speculation.prompt_kind import analyse
from engine.speculation.stepper import Stepper
from engine.text.reply import ReplyText

NEURON_REFRESH = 8  # cycles between two choices of MLP neurons: choosing costs about a tenth of a draft step


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a reply. max_new_tokens None: no limit but the context's end."""

    end_ids: frozenset[int]
    max_new_tokens: int | None


class ReplyLoop:
    """Makes one reply. `ids` grows in place as tokens are committed; the KV cache covers `ids[:-1]` at every yield.

    stopped: asked between passes; when it turns true the reply ends with what was committed.
    between: called before each cycle, when the model may change where its parts lie.
    """

    def __init__(
        self,
        runner: Runner,
        stepper: Stepper,
        controller: GammaController,
        speculation: Speculation,
        limits: Limits,
        text: ReplyText,
        stopped: Callable[[], bool],
        *,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._runner, self._stepper, self._controller = runner, stepper, controller
        self._speculation, self._limits, self._text, self._stopped = speculation, limits, text, stopped
        self._between = between
        self.ids: list[int] = []
        self.reason: StopReason | None = None
        self.new_tokens = 0
        self._cycles = 0

    def open(self, ids: Sequence[int]) -> Opening:
        """Take `ids`, the last tokens of the prompt, as the reply's first. One that ends a reply ends this one."""
        pieces: list[str] = []
        for token in ids:
            piece, stops = ("", False) if token in self._limits.end_ids else self._text.push(token)
            pieces.append(piece)
            if stops or token in self._limits.end_ids:
                self.reason = StopReason.STOP_STRING if stops else StopReason.END_TOKEN
                break
        return Opening(tuple(ids[: len(pieces)]), tuple(pieces))

    def prefill(self, prompt: Sequence[int], reused: int) -> Iterator[PrefillProgress]:
        """Fill the cache for all of the prompt but its last token, in chunks; rows below `reused` are there already."""
        self.ids = list(prompt)
        last = len(prompt) - 1
        self._runner.kv.ensure(len(prompt))  # all of it at once: where memory is short, that is said before any work
        done = min(reused, last)
        yield PrefillProgress(done + (done == last), len(prompt), reused)
        while done < last:
            if self._stopped():
                self.reason = StopReason.STOPPED
                del self.ids[done + 1 :]
                return
            chunk = self.ids[done : min(done + self._runner.chunk, last)]
            try:
                self._runner.full(chunk, done, 0)
            except PassStopped:
                continue  # to what a stop does above
            done += len(chunk)
            yield PrefillProgress(done + (done == last), len(prompt), reused)

    def cycles(self) -> Iterator[CycleEvent]:
        """Cycle after cycle until `reason` is set. With max_new_tokens 0 there is none."""
        if self._speculation.enabled:
            self._controller.start_reply(analyse(self.ids))
        if self.reason is None and self._limits.max_new_tokens == 0:
            self.reason = StopReason.LENGTH
        elif self.reason is None and len(self.ids) >= self._runner.capacity:
            self.reason = StopReason.CONTEXT_FULL
        while self.reason is None:
            event = None if self._stopped() else self._next()
            if event is None:
                self.reason = StopReason.STOPPED
                return
            yield event

    def tail(self) -> str:
        """Text still held back when the reply has ended."""
        return self._text.flush()

    def _next(self) -> CycleEvent | None:
        """One cycle; None when stopped in the middle of it, with nothing committed."""
        self._between()
        try:
            return self._cycle()
        except PassStopped:
            return None

    def _cycle(self) -> CycleEvent | None:
        """One cycle; None when stopped in the middle of the draft, with nothing committed."""
        before = self._runner.transfers
        most = self._most() if self._speculation.enabled else 0
        gamma = min(self._controller.next_gamma(), most) if most else 0
        if gamma and self._runner.recipe.neuron_share < 1 and self._cycles % NEURON_REFRESH == 0:
            self._runner.refresh_neurons()
        self._runner.kv.ensure(len(self.ids) + self._stepper.rows + MAX_DRAFT_ROWS, cycle=True)
        block = self._stepper.step(self.ids, gamma, most)
        if block is None:
            return None
        if most:
            strategy = self._controller.strategy(block)
        else:
            strategy = "plain: the last token" if self._speculation.enabled else "plain: speculation is off"
        self._controller.record(block)
        kept, pieces, ghosts = self._commit(block)
        record = self._record(block, kept, strategy, self._runner.transfers.since(before))
        self._cycles += 1
        return CycleEvent(record, pieces, ghosts)

    def _most(self) -> int:
        """Tokens that may be proposed now, within the cache and the length limit."""
        room = self._runner.capacity - len(self.ids)
        remaining = self._remaining()
        return max(0, min(self._stepper.rows - 1, room if remaining is None else min(room, remaining - 1)))

    def _commit(self, block: JudgedBlock) -> tuple[Cut, tuple[str, ...], tuple[str, ...]]:
        """Take the block into the reply; its pieces of text and the ghosts of what was rejected."""
        pieces: list[str] = []
        agreed = block.acceptance.agreed
        rejected = block.chain_ids[agreed:]
        ghosts: tuple[str, ...] | None = None

        def completes_stop_string(token: int) -> bool:
            nonlocal ghosts
            if rejected and len(pieces) == agreed:
                ghosts = self._text.ghosts(rejected)  # they stand where something else now goes
            piece, stops = self._text.push(token)
            pieces.append(piece)
            return stops

        kept = cut(
            block.chain_ids,
            block.acceptance,
            end_ids=self._limits.end_ids,
            remaining=self._remaining(),
            room=self._runner.capacity - len(self.ids),
            stops=completes_stop_string,
        )
        self.ids.extend(kept.emitted_ids)
        self.new_tokens += len(kept.emitted_ids)
        self.reason = kept.reason
        pieces += [""] * (len(kept.emitted_ids) - len(pieces))  # an end token has no text
        if ghosts is None:  # what stands in their place is an end token, or the reply ended before it
            ghosts = self._text.ghosts(rejected) if len(kept.emitted_ids) > agreed else ()
        return kept, tuple(pieces), ghosts

    def _record(self, block: JudgedBlock, kept: Cut, strategy: str, moved: Transfers) -> CycleRecord:
        return CycleRecord(
            index=self._cycles,
            drafted_ids=block.chain_ids,
            drafted_probs=tuple(proposal.prob for proposal in block.chain),
            full_probs=block.tested_probs,
            accepted=block.acceptance.accepted,
            next_id=kept.next_id,
            next_state=kept.next_state,
            next_prob=block.next_prob if kept.next_id is not None else None,
            emitted_ids=kept.emitted_ids,
            ignored=kept.ignored,
            draft_seconds=block.draft_seconds,
            verify_seconds=max(0.0, block.verify_seconds - moved.wait_seconds),
            wait_seconds=moved.wait_seconds,
            plain_seconds=self._controller.plain_seconds,
            recipe=self._runner.recipe,
            streamed_bytes=moved.bytes,
            kv_length=len(self.ids) - 1,
            siblings=block.sibling_records(),
            looked_up=block.looked_up,
            strategy=strategy,
        )

    def _remaining(self) -> int | None:
        most = self._limits.max_new_tokens
        return None if most is None else most - self.new_tokens
