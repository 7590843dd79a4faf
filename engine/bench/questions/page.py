"""The report as one page that needs nothing else, and its plot as a picture."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.bench.questions.report import conditions, draft_table, remarks, speed_table
from engine.errors import SpecularError

PAGE, PICTURE = "report.html", "report.png"
BAR, GAP, LEFT, WIDTH = 18, 6, 210, 900  # pixels
COLOURS = ("#5B55D6", "#0B7A58", "#9C6300", "#C4588A", "#1593AE", "#646D7C")
STYLE = """
:root { color-scheme: light dark; --text: #1C2027; --soft: #525A68; --line: #E2E5EA; --canvas: #FFFFFF }
@media (prefers-color-scheme: dark) { :root { --text: #E4E7EC; --soft: #A6ADBA; --line: #2A2E37; --canvas: #17191E } }
body { font: 15px/1.6 system-ui, sans-serif; color: var(--text); background: var(--canvas); max-width: 960px;
  margin: 40px auto; padding: 0 20px }
h1 { font-size: 24px } h2 { font-size: 18px; margin-top: 32px } p { color: var(--soft) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line) }
svg text { fill: var(--text); font: 12px system-ui, sans-serif }
svg .axis { stroke: var(--line) } svg .interval { stroke: var(--text) }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A speed-up over plain decoding, with its interval."""

    label: str
    value: float
    low: float
    high: float
    colour: str


def bars(sets: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """A bar for each set and way that has a speed-up."""
    names = list(dict.fromkeys(way["way"] for entry in sets for way in entry["ways"] if way["speed_up"] is not None))
    found = []
    for entry in sets:
        for way in entry["ways"]:
            if way["speed_up"] is not None:
                low, high = way["interval"] or (way["speed_up"], way["speed_up"])
                colour = COLOURS[names.index(way["way"]) % len(COLOURS)]
                found.append(Bar(f"{entry['name']}, {way['way']}", way["speed_up"], low, high, colour))
    return found


def page(report: Mapping[str, Any]) -> str:
    """HTML without scripts, fonts or anything from elsewhere."""
    title = html.escape(f"{report['run']['model']}, {report['run']['device']}")
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{STYLE}</style>",
        f"<h1>{title}</h1><p>{html.escape(conditions(report))}</p>",
        "<h2>Speed over plain decoding</h2>",
        _plot(bars(report["sets"])),
        "<h2>Speeds</h2>",
        _table(speed_table(report["sets"])),
        "<h2>Drafting</h2>",
        _table(draft_table(report["sets"])),
        "<h2>Remarks</h2>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in remarks(report)),
    ]
    return "\n".join(parts) + "</html>\n"


def write_page(folder: Path, report: Mapping[str, Any]) -> None:
    """The page and the picture. Raises SpecularError where they cannot be written."""
    try:
        (folder / PAGE).write_text(page(report), "utf-8")
        draw(bars(report["sets"]), f"{report['run']['model']}, {report['run']['device']}", folder / PICTURE)
    except OSError as error:
        raise SpecularError(f"The report cannot be written: {error.strerror or error} ({folder}).") from error


def draw(found: Sequence[Bar], title: str, path: Path) -> None:
    """The bars as a PNG, two pixels a point. Raises OSError."""
    from PIL import Image, ImageDraw, ImageFont

    scale, top = 2, 40
    height = top + len(found) * (BAR + GAP) + 30
    image = Image.new("RGB", (WIDTH * scale, height * scale), "#FFFFFF")
    brush = ImageDraw.Draw(image)
    font, large = (ImageFont.load_default(size * scale) for size in (12, 15))
    brush.text((10 * scale, 10 * scale), _plain(f"{title}: speed over plain decoding"), "#1C2027", large)
    for number, bar in enumerate(found):
        y = top + number * (BAR + GAP)
        left, right, low, high = (_x(value, found) * scale for value in (0.0, bar.value, bar.low, bar.high))
        brush.text((10 * scale, (y + 2) * scale), _plain(bar.label), "#1C2027", font)
        brush.rectangle((left, y * scale, right, (y + BAR) * scale), bar.colour)
        middle = (y + BAR / 2) * scale
        brush.line((low, middle, high, middle), "#1C2027", scale)
        brush.text((max(right, high) + 6 * scale, (y + 2) * scale), f"{bar.value:.2f}", "#1C2027", font)
    one = _x(1.0, found) * scale
    brush.line((one, (top - 4) * scale, one, (height - 22) * scale), "#B3362A", scale)
    image.save(path, "PNG", optimize=True)


def _plot(found: Sequence[Bar]) -> str:
    height = len(found) * (BAR + GAP) + 10
    one = _x(1.0, found)
    parts = [f"<svg viewBox='0 0 {WIDTH} {height}' width='100%' role='img' aria-label='Speed over plain decoding'>"]
    for number, bar in enumerate(found):
        y = number * (BAR + GAP)
        left, right, low, high = (_x(value, found) for value in (0.0, bar.value, bar.low, bar.high))
        middle = y + BAR / 2
        parts += [
            f"<text x='0' y='{y + 13}'>{html.escape(bar.label)}</text>",
            f"<rect x='{left:.1f}' y='{y}' width='{right - left:.1f}' height='{BAR}' fill='{bar.colour}'/>",
            f"<line class='interval' x1='{low:.1f}' x2='{high:.1f}' y1='{middle}' y2='{middle}'/>",
            f"<text x='{max(right, high) + 6:.1f}' y='{y + 13}'>{bar.value:.2f}</text>",
        ]
    parts.append(f"<line x1='{one:.1f}' x2='{one:.1f}' y1='0' y2='{height}' stroke='#B3362A'/></svg>")
    return "".join(parts)


def _x(value: float, found: Sequence[Bar]) -> float:
    """Where a speed-up is on the axis, in pixels."""
    most = max([1.2, *(bar.high for bar in found)])
    return LEFT + (WIDTH - LEFT - 60) * value / most


def _table(rows: Sequence[str]) -> str:
    """The rows of a Markdown table as HTML."""
    head, _, *body = (list(_cells(row)) for row in rows)
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _cells(row: str) -> Iterator[str]:
    for cell in row.strip("|").split("|"):
        yield html.escape(cell.strip().replace("**", ""))


def _plain(text: str) -> str:
    """What the picture's built-in letters have."""
    return text.encode("latin-1", "replace").decode("latin-1")
