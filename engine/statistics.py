"""Counters of a reply, folded from its cycle records. The only place where acceptance and speed are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.records import CycleRecord, TokenState


@dataclass(frozen=True, slots=True)
class ReplyStatistics:
    """Sums over the cycles of a reply.

    accepted <= tested <= drafted. Of the accepted proposals, `kept` are in the reply; the others stand after its end
    and are `ignored`. kept + corrections + bonuses + plain == emitted. siblings: second choices that were taken (also
    counted as accepted). looked_up: drafted tokens found in the prompt or the reply rather than computed.
    drafting_plain_seconds, drafting_verify_seconds: of the drafting cycles, a plain step's time and the verify pass's.
    """

    cycles: int = 0
    drafting_cycles: int = 0
    emitted: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    kept: int = 0
    ignored: int = 0
    corrections: int = 0
    bonuses: int = 0
    plain: int = 0
    rejected: int = 0
    siblings: int = 0
    looked_up: int = 0
    seconds: float = 0.0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    wait_seconds: float = 0.0
    plain_equivalent_seconds: float = 0.0
    drafting_plain_seconds: float = 0.0
    drafting_verify_seconds: float = 0.0
    plain_seconds: float | None = None

    def with_cycle(self, record: CycleRecord) -> ReplyStatistics:
        """These figures plus one more cycle."""
        plain = record.plain_seconds if record.plain_seconds is not None else self.plain_seconds
        states = record.emitted_states
        drafts = bool(record.drafted_ids)
        return replace(
            self,
            cycles=self.cycles + 1,
            drafting_cycles=self.drafting_cycles + drafts,
            emitted=self.emitted + len(record.emitted_ids),
            drafted=self.drafted + record.drafted,
            tested=self.tested + record.tested,
            accepted=self.accepted + record.accepted,
            kept=self.kept + states.count(TokenState.ACCEPTED),
            ignored=self.ignored + record.ignored,
            corrections=self.corrections + states.count(TokenState.CORRECTION),
            bonuses=self.bonuses + states.count(TokenState.BONUS),
            plain=self.plain + states.count(TokenState.PLAIN),
            rejected=self.rejected + len(record.rejected_ids),
            siblings=self.siblings + (record.taken is not None),
            looked_up=self.looked_up + record.looked_up,
            seconds=self.seconds + record.seconds,
            draft_seconds=self.draft_seconds + record.draft_seconds,
            verify_seconds=self.verify_seconds + record.verify_seconds,
            wait_seconds=self.wait_seconds + record.wait_seconds,
            plain_equivalent_seconds=self.plain_equivalent_seconds + len(record.emitted_ids) * (plain or 0.0),
            drafting_plain_seconds=self.drafting_plain_seconds + (plain or 0.0) * drafts,
            drafting_verify_seconds=self.drafting_verify_seconds + record.verify_seconds * drafts,
            plain_seconds=plain,
        )

    @property
    def acceptance(self) -> float | None:
        """Accepted over tested; None before anything was tested."""
        return self.accepted / self.tested if self.tested else None

    @property
    def tokens_per_cycle(self) -> float | None:
        """Emitted tokens per cycle; None before the first."""
        return self.emitted / self.cycles if self.cycles else None

    @property
    def tokens_per_second(self) -> float | None:
        """Decode speed without the prefill; None before the first cycle."""
        return self.emitted / self.seconds if self.seconds > 0 else None

    @property
    def draft_cost(self) -> float | None:
        """c: drafting time per drafted token, in plain steps; less than a draft step's where tokens were looked up."""
        if not self.drafted or self.drafting_plain_seconds <= 0:
            return None
        usual = self.drafting_plain_seconds / self.drafting_cycles
        return self.draft_seconds / self.drafted / usual

    @property
    def verify_cost(self) -> float | None:
        """v: time of a verify pass, in plain steps; None before anything was drafted."""
        return self.drafting_verify_seconds / self.drafting_plain_seconds if self.drafting_plain_seconds > 0 else None

    @property
    def speed_up(self) -> float | None:
        """S: time the same tokens take as measured plain steps, over the time they took. None until measured."""
        if self.plain_seconds is None or self.seconds <= 0:
            return None
        return self.plain_equivalent_seconds / self.seconds
