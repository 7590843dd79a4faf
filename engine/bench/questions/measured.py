"""What was measured of one turn of a conversation, one way. Plain data that goes to a file and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply. Counts are tokens, times seconds of the wall clock.

    reused: of the prompt, in the KV cache already. digest: of the reply's ids, equal for equal replies. reason: why it
    ended. drafting figures are 0 where nothing was drafted; plain_seconds: of a plain step as measured meanwhile, in
    sum over the drafting cycles. own_seconds: what the benchmark itself took while the reply was made.
    """

    set: str
    question: str
    category: str
    turn: int
    way: str
    prompt: int
    reused: int
    tokens: int
    prefill_seconds: float
    decode_seconds: float
    digest: str
    reason: str
    cycles: int = 0
    drafting_cycles: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    plain_seconds: float = 0.0
    own_seconds: float = 0.0
    energy: float | None = None
    text: str = ""

    @property
    def key(self) -> str:
        """Names the question among all sets."""
        return f"{self.set}/{self.question}"

    def as_json(self) -> dict[str, Any]:
        """Ready for json.dumps."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Turn:
        """As written by `as_json`; unknown fields of later versions are left out. Raises TypeError for missing ones."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in entry.items() if name in known})


def digest_of(ids: tuple[int, ...]) -> str:
    """Of a reply's token ids."""
    return blake2b(",".join(map(str, ids)).encode(), digest_size=12).hexdigest()
