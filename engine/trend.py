"""How acceptance and speed went over the time that decoding took, folded from cycle records; of bounded size."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from engine.records import CycleRecord

BUCKET_SECONDS = 0.25
WINDOW = 8  # buckets that a point sums up: two seconds
SPAN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Of the two seconds before `seconds` (decoding time since the reply began): accepted / tested, tokens a second.

    acceptance is None where nothing was tested in them.
    """

    seconds: float
    acceptance: float | None
    speed: float


@dataclass(slots=True)
class _Bucket:
    number: int
    tested: int = 0
    accepted: int = 0
    emitted: int = 0
    seconds: float = 0.0


class Trend:
    """The last minute of a reply. `add` costs the same however long the reply is."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._recent: deque[_Bucket] = deque(maxlen=WINDOW)
        self._points: deque[TrendPoint] = deque(maxlen=round(SPAN_SECONDS / BUCKET_SECONDS))

    @property
    def seconds(self) -> float:
        """Decoding time so far."""
        return self._seconds

    @property
    def points(self) -> tuple[TrendPoint, ...]:
        """Oldest first, at most one a quarter of a second."""
        return tuple(self._points)

    def add(self, record: CycleRecord) -> None:
        """Take one more cycle. One without any time has no speed and is left out."""
        if record.seconds <= 0:
            return
        self._seconds += record.seconds
        bucket = self._bucket(int(self._seconds / BUCKET_SECONDS))
        bucket.tested += record.tested
        bucket.accepted += record.accepted
        bucket.emitted += len(record.emitted_ids)
        bucket.seconds += record.seconds
        self._points.append(self._point())

    def _bucket(self, number: int) -> _Bucket:
        """The bucket of now; a cycle that falls into the last one replaces that one's point."""
        if self._recent and self._recent[-1].number == number:
            self._points.pop()
        else:
            self._recent.append(_Bucket(number))
        while self._recent[0].number <= number - WINDOW:
            self._recent.popleft()
        return self._recent[-1]

    def _point(self) -> TrendPoint:
        tested = sum(bucket.tested for bucket in self._recent)
        accepted = sum(bucket.accepted for bucket in self._recent)
        emitted = sum(bucket.emitted for bucket in self._recent)
        seconds = sum(bucket.seconds for bucket in self._recent)
        return TrendPoint(self._seconds, accepted / tested if tested else None, emitted / seconds)
