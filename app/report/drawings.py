"""The page's two drawings as inline SVG: the timeline of the cycles, and acceptance by draft position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QCoreApplication

from app.report.escaped import escaped
from engine.positions import PlaceShare
from engine.records import CycleRecord, TokenState

WIDTH = 720.0
ROW = 30.0
GAP = 3.0
LEAST = 6.0  # width of the shortest cycle
MEAN = 20.0
CHART = (360.0, 170.0)


def timeline_svg(records: Sequence[CycleRecord]) -> str:
    """One bar a cycle, as wide as it took; above it what became of each draft. Rows follow one another."""
    seconds = sum(record.seconds for record in records)
    scale = MEAN * len(records) / seconds if seconds > 0 else 0.0
    x, y, parts = 0.0, 0.0, []
    for record in records:
        width = min(max(record.seconds * scale, LEAST), WIDTH)
        if x + width > WIDTH:
            x, y = 0.0, y + ROW
        parts.append(_bar(record, x, y, width))
        x += width + GAP
    label = QCoreApplication.translate("Report", "Cycle timeline")
    return (
        f'<svg role="img" aria-label="{escaped(label)}" viewBox="0 0 {WIDTH:g} {y + ROW:g}" width="100%">'
        + "".join(parts)
        + "</svg>"
    )


def _bar(record: CycleRecord, x: float, y: float, width: float) -> str:
    times = (("draft", record.draft_seconds), ("verify", record.verify_seconds), ("wait", record.wait_seconds))
    parts, left = [], x
    for name, seconds in times:
        if seconds > 0 and record.seconds > 0:
            part = width * seconds / record.seconds
            parts.append(f'<rect class="{name}" x="{left:.1f}" y="{y + 12:.1f}" width="{part:.1f}" height="8"/>')
            left += part
    dots = "".join(_dots(record, x, y + 4, width))
    return f"<g><title>{escaped(bar_words(record))}</title>{dots}{''.join(parts)}</g>"


def _dots(record: CycleRecord, x: float, y: float, width: float) -> Iterator[str]:
    marks = ["accepted"] * record.agreed
    if len(record.full_probs) > record.agreed:
        marks.append("wrong")
    marks += ["untested"] * (len(record.drafted_ids) - len(marks))
    if record.next_state is TokenState.BONUS:
        marks.append("bonus")
    step = min(5.0, width / max(len(marks), 1))
    for number, mark in enumerate(marks):
        at = x + step * (number + 0.5)
        if mark == "wrong":
            yield f'<path class="wrong" d="m{at - 1.8:.1f} {y - 1.8:.1f} 3.6 3.6m0-3.6-3.6 3.6"/>'
        elif mark == "bonus":
            yield f'<rect class="bonusdot" x="{at - 1.6:.1f}" y="{y - 1.6:.1f}" width="3.2" height="3.2"/>'
        else:
            yield f'<circle class="{mark}dot" cx="{at:.1f}" cy="{y:.1f}" r="{min(1.6, step / 2.4):.1f}"/>'


def bar_words(record: CycleRecord) -> str:
    """A cycle in words."""
    text = QCoreApplication.translate(
        "Report",
        "Cycle {cycle}: {accepted} of {drafted} drafts accepted, {emitted} tokens, draft {draft} ms, "
        "verify {verify} ms, transfer wait {wait} ms",
    )
    return text.format(
        cycle=record.index + 1,
        accepted=record.accepted,
        drafted=record.drafted,
        emitted=len(record.emitted_ids),
        draft=f"{record.draft_seconds * 1000:.1f}",
        verify=f"{record.verify_seconds * 1000:.1f}",
        wait=f"{record.wait_seconds * 1000:.1f}",
    )


def places_svg(shares: Sequence[PlaceShare]) -> str:
    """The share of cycles whose first i drafts were all accepted, with its 95 % band."""
    width, height = CHART
    left, bottom, top = 34.0, height - 22, 8.0

    def x(place: int) -> float:
        return left + (width - left - 8) * (place - 0.5) / len(shares)

    def y(share: float) -> float:
        return bottom - (bottom - top) * share

    grid = "".join(
        f'<line class="grid" x1="{left:g}" x2="{width:g}" y1="{y(s):.1f}" y2="{y(s):.1f}"/>'
        f'<text x="{left - 6:g}" y="{y(s) + 3:.1f}" text-anchor="end">{s * 100:.0f}</text>'
        for s in (0.0, 0.5, 1.0)
    )
    upper = " ".join(f"{x(s.place):.1f},{y(s.high):.1f}" for s in shares)
    lower = " ".join(f"{x(s.place):.1f},{y(s.low):.1f}" for s in reversed(shares))
    line = " ".join(f"{x(s.place):.1f},{y(s.share):.1f}" for s in shares)
    points = "".join(
        f'<g><title>{escaped(place_words(s))}</title><circle class="accepteddot" cx="{x(s.place):.1f}" '
        f'cy="{y(s.share):.1f}" r="3"/></g><text x="{x(s.place):.1f}" y="{height - 6:g}" text-anchor="middle">'
        f"{s.place}</text>"
        for s in shares
    )
    label = QCoreApplication.translate("Report", "Acceptance by draft position, per cent")
    return (
        f'<svg role="img" aria-label="{escaped(label)}" viewBox="0 0 {width:g} {height:g}" width="{width:g}">'
        f'{grid}<polygon class="band" points="{upper} {lower}"/><polyline class="curve" points="{line}"/>{points}</svg>'
    )


def place_words(share: PlaceShare) -> str:
    """One point of the chart in words."""
    text = QCoreApplication.translate(
        "Report", "position {place}: {share} % of {cycles} cycles, 95 % interval {low} to {high} %"
    )
    return text.format(
        place=share.place,
        share=f"{share.share * 100:.0f}",
        cycles=share.cycles,
        low=f"{share.low * 100:.0f}",
        high=f"{share.high * 100:.0f}",
    )
