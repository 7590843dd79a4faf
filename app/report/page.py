"""A reply as one page that needs nothing else: text, counts, timeline, acceptance, settings, model and machine."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import datetime

from PySide6.QtCore import QCoreApplication, QLocale

from app.report.drawings import place_words, places_svg, timeline_svg
from app.report.escaped import escaped
from app.report.style import style
from app.report.tables import figures, machine_rows, model_rows, setting_rows
from app.report.text import reply_html, state_words
from engine.positions import acceptance_by_place
from engine.recording import Recording
from engine.records import StopReason, TokenState

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(recording: Recording, made: datetime) -> str:
    """The page as text. made: when the report was asked for, with its time zone."""
    title = QCoreApplication.translate("Report", "Specular report")
    info = recording.model
    return (
        f'<!DOCTYPE html>\n<html lang="{QLocale().bcp47Name()}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escaped(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escaped(title)}</h1>\n<div class="sub">{escaped(f"{info.name} · {info.device}")}</div>\n'
        + "".join(_sections(recording))
        + f"<footer>{escaped(_written(made))}</footer>\n</main>\n</body>\n</html>\n"
    )


def _written(made: datetime) -> str:
    text = QCoreApplication.translate("Report", "Written {time} on {system}")
    return text.replace("{time}", made.isoformat(" ", "minutes")).replace("{system}", platform.platform(terse=True))


def _sections(recording: Recording) -> Iterable[str]:
    translate = QCoreApplication.translate
    yield _section(translate("Report", "Prompt"), f'<div class="said prompt">{escaped(recording.prompt)}</div>')
    yield _section(
        translate("Report", "Reply"), f'<div class="said">{reply_html(recording)}</div>{_failure(recording)}'
    )
    yield f'<p class="counts">{_counts(recording)}</p>\n'
    yield _section(translate("Report", "Figures"), _table(figures(recording)))
    records = [event.record for event in recording.cycles]
    if records:
        yield _section(translate("Report", "Cycle timeline"), timeline_svg(records) + _legend(recording))
    shares = acceptance_by_place(records)
    if shares:
        rows = "".join(f"<li>{escaped(place_words(share))}</li>" for share in shares)
        summary = escaped(translate("Report", "In numbers"))
        more = f"<details><summary>{summary}</summary><ul>{rows}</ul></details>"
        yield _section(translate("Report", "Acceptance by draft position, per cent"), places_svg(shares) + more)
    yield _section(translate("Report", "Settings"), _table(setting_rows(recording)))
    yield _section(translate("Report", "Model"), _table(model_rows(recording.model)))
    yield _section(translate("Report", "Machine"), _table(machine_rows(recording.model)))


def _failure(recording: Recording) -> str:
    finished = recording.finished
    if finished.reason is not StopReason.FAILED:
        return ""
    sentence = finished.message or QCoreApplication.translate("Report", "The reply could not be finished.")
    return f'<p class="failed">{escaped(sentence)}</p>'


def _counts(recording: Recording) -> str:
    """The counts, each word in the form of its state: the legend of the text above."""
    sums = recording.statistics
    counts = {
        TokenState.ACCEPTED: sums.kept,
        TokenState.REJECTED: sums.tested - sums.accepted,
        TokenState.CORRECTION: sums.corrections,
        TokenState.BONUS: sums.bonuses,
        TokenState.PLAIN: sums.plain,
    }
    shown = {state: count for state, count in counts.items() if sums.drafted or state is TokenState.PLAIN}
    words = state_words()
    return " ".join(
        f'<span class="{state.value}">{escaped(words[state])}</span> <b>{count}</b>' for state, count in shown.items()
    )


def _legend(recording: Recording) -> str:
    translate = QCoreApplication.translate
    names = {
        "draft": translate("CountsRow", "draft"),
        "verify": translate("CountsRow", "verify"),
    }
    if recording.statistics.wait_seconds > 0:
        names["wait"] = translate("CountsRow", "transfer wait")
    parts = (f'<span><i style="background: var(--{role})"></i>{escaped(name)}</span>' for role, name in names.items())
    return f'<div class="sub legend">{"".join(parts)}</div>'


def _section(title: str, body: str) -> str:
    return f"<h2>{escaped(title)}</h2>\n{body}\n"


def _table(rows: Iterable[tuple[str, str | None, str]]) -> str:
    """Rows of a name, a value, and why there is none."""
    na = escaped(QCoreApplication.translate("Report", "n/a"))
    cells = (
        f"<tr><th>{escaped(name)}</th><td>"
        + (escaped(value) if value is not None else f'<abbr class="na" title="{escaped(reason)}">{na}</abbr>')
        + "</td></tr>"
        for name, value, reason in rows
    )
    return f"<table>{''.join(cells)}</table>"
