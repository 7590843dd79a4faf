"""The colours of each look, by the role they play. One meaning per hue; contrast is tested."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtGui import QColor


@dataclass(frozen=True, slots=True)
class Theme:
    """One look. Colours are "#RRGGBB"; `washes` False draws accepted tokens by an underline (high contrast)."""

    name: str
    dark: bool
    washes: bool
    side: str
    canvas: str
    surface: str
    raised: str
    hover: str
    input: str
    line: str
    line2: str
    text: str
    text2: str
    text3: str
    accent: str
    accent_bg: str
    on_accent: str
    ok: str
    warn: str
    error: str
    warn_bg: str
    error_bg: str
    accepted_wash: str
    accepted_dot: str
    rejected: str
    correction: str
    bonus: str
    gpu: str
    draft: str
    verify: str
    wait: str
    cpu: str
    kv_used: str
    kv_mapped: str
    workspace: str
    cache: str
    other: str
    free: str
    grid: str

    def color(self, role: str) -> QColor:
        """The colour of a role by its field name ("text2")."""
        return QColor(getattr(self, role))


DARK = Theme(
    name="dark",
    dark=True,
    washes=True,
    side="#121418",
    canvas="#17191E",
    surface="#1D2026",
    raised="#272B33",
    hover="#22262D",
    input="#1B1E24",
    line="#2A2E37",
    line2="#3C424E",
    text="#E4E7EC",
    text2="#A6ADBA",
    text3="#8E96A4",
    accent="#A5A1FF",
    accent_bg="#5A55D6",
    on_accent="#FFFFFF",
    ok="#5CC8A1",
    warn="#E9B44C",
    error="#F08A7B",
    warn_bg="#332A18",
    error_bg="#3A2023",
    accepted_wash="#1C3A33",
    accepted_dot="#5CC8A1",
    rejected="#929AA8",
    correction="#F0B84E",
    bonus="#6DB5F5",
    gpu="#7F7AF0",
    draft="#C9C7FF",
    verify="#7F7AF0",
    wait="#35AECB",
    cpu="#7C8696",
    kv_used="#E08FB4",
    kv_mapped="#8E5A73",
    workspace="#5E6776",
    cache="#454C59",
    other="#343A45",
    free="#1F232A",
    grid="#272B33",
)

LIGHT = Theme(
    name="light",
    dark=False,
    washes=True,
    side="#F4F5F7",
    canvas="#FFFFFF",
    surface="#F8F9FA",
    raised="#EBEDF1",
    hover="#EBEDF1",
    input="#FFFFFF",
    line="#E2E5EA",
    line2="#C6CBD4",
    text="#1C2027",
    text2="#525A68",
    text3="#5F6775",
    accent="#4F49C8",
    accent_bg="#5550D2",
    on_accent="#FFFFFF",
    ok="#0B7A58",
    warn="#8A5A00",
    error="#B3362A",
    warn_bg="#FBF3E0",
    error_bg="#FBEAE8",
    accepted_wash="#DCF2E9",
    accepted_dot="#12805F",
    rejected="#646B79",
    correction="#9C6300",
    bonus="#1B6DBA",
    gpu="#5B55D6",
    draft="#AAA6F2",
    verify="#5B55D6",
    wait="#1593AE",
    cpu="#646D7C",
    kv_used="#C4588A",
    kv_mapped="#E3AFC7",
    workspace="#9AA3B1",
    cache="#BCC3CD",
    other="#D3D8DF",
    free="#EEF0F3",
    grid="#E9EBEF",
)


def _high_contrast(base: Theme, name: str, canvas: str, raised: str, text: str, accent: str) -> Theme:
    """`base` on a pure canvas: hairlines become text, secondary text too, no washes; what is chosen stays raised."""
    flat: dict[str, Any] = dict.fromkeys(("side", "canvas", "surface", "input"), canvas)
    flat |= dict.fromkeys(("raised", "hover"), raised)
    strong: dict[str, Any] = dict.fromkeys(("line", "line2", "text", "text2", "text3", "rejected"), text)
    return replace(base, name=name, washes=False, accent=accent, **flat, **strong)


HIGH_CONTRAST_DARK = _high_contrast(DARK, "high-contrast-dark", "#000000", "#333333", "#FFFFFF", "#B9B6FF")
HIGH_CONTRAST_LIGHT = _high_contrast(LIGHT, "high-contrast-light", "#FFFFFF", "#DDDDDD", "#000000", "#3F39B0")
THEMES = {theme.name: theme for theme in (DARK, LIGHT, HIGH_CONTRAST_DARK, HIGH_CONTRAST_LIGHT)}
