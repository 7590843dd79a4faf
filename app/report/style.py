"""The page's style sheet: the window's own colours, light or dark as the reader's system is."""

from __future__ import annotations

from app.colours import DARK, LIGHT, Theme

ROLES = (
    "canvas surface line text text2 text3 accent error accepted_wash accepted_dot rejected correction bonus draft "
    "verify wait grid"
).split()

_RULES = """
body { margin: 0; background: var(--canvas); color: var(--text); font: 15px/1.6 Inter, system-ui, sans-serif; }
main { max-width: 720px; margin: 0 auto; padding: 32px 16px 48px; }
h1 { font-size: 18px; margin: 0; } h2 { font-size: 13px; margin: 32px 0 8px; color: var(--text2); }
.sub, footer { color: var(--text2); font-size: 13px; } footer { margin-top: 32px; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.prompt { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 8px 14px; }
.accepted { background: var(--accepted_wash); border-radius: 4px; padding: 1px 2px; margin: 0 -2px;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.correction, .bonus { position: relative; z-index: 1; }
.rejected { color: var(--rejected); text-decoration: line-through; user-select: none; margin: 0 .05em 0 .3em; }
.correction { text-decoration: underline solid 2px var(--correction); text-underline-offset: 4px; }
.bonus { text-decoration: underline dotted 2px var(--bonus); text-underline-offset: 4px; }
.counts span, .counts del { margin-right: 4px; } .counts b { margin-right: 20px; font-weight: 500; }
.legend i { display: inline-block; width: 8px; height: 8px; border-radius: 2px; margin: 0 5px 0 0; }
.legend span { margin-right: 16px; }
.failed { color: var(--error); }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; font-weight: 400; padding: 4px 0; border-top: 1px solid var(--line); vertical-align: top; }
th { color: var(--text2); width: 45%; padding-right: 16px; } td { overflow-wrap: anywhere; }
details { font-size: 13px; } .na { color: var(--text3); } abbr { text-decoration: underline dotted; }
svg text { fill: var(--text3); font-size: 10px; } svg { display: block; }
.draft { fill: var(--draft); } .verify { fill: var(--verify); } .wait { fill: var(--wait); }
.accepteddot { fill: var(--accepted_dot); } .untesteddot { fill: var(--text3); opacity: .5; }
.bonusdot { fill: var(--bonus); } .wrong { stroke: var(--correction); fill: none; stroke-width: 1.3; }
.grid { stroke: var(--grid); } .band { fill: var(--accepted_dot); opacity: .2; }
.curve { fill: none; stroke: var(--accepted_dot); stroke-width: 1.5; }
@media print { body { background: none; } }
"""


def style() -> str:
    """The whole sheet."""
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {_variables(DARK)} }} }}"
    return f":root {{ color-scheme: light; {_variables(LIGHT)} }}\n{dark}{_RULES}"


def _variables(theme: Theme) -> str:
    return " ".join(f"--{role}: {getattr(theme, role)};" for role in ROLES)
