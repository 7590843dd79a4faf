"""Finds every text for the user in the sources of the window, as lupdate would, and texts that no one can translate."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = re.compile(r"\{(\w+)\}")
MARKED = ("QT_TRANSLATE_NOOP", "translate")
SHOWING = {
    "setText",
    "setToolTip",
    "setAccessibleName",
    "setAccessibleDescription",
    "setPlaceholderText",
    "setWindowTitle",
    "addAction",
    "ToneLabel",
    "TextButton",
    "IconButton",
    "QPushButton",
    "QLabel",
}


@dataclass(frozen=True, slots=True)
class Text:
    """context: the class, or the name given with it. place: file and line."""

    context: str
    source: str
    place: str

    @property
    def placeholders(self) -> frozenset[str]:
        """Names in braces."""
        return frozenset(PLACEHOLDER.findall(self.source))


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every file of the window."""
    for path in sorted((ROOT / "app").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def texts() -> tuple[list[Text], list[str]]:
    """All marked texts, and the places where something is marked that is no literal."""
    found: list[Text] = []
    odd: list[str] = []
    for name, tree in sources():
        _walk(tree, name, "", found, odd)
    return found, odd


def _walk(node: ast.AST, name: str, owner: str, found: list[Text], odd: list[str]) -> None:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.ClassDef) else owner
        if isinstance(child, ast.Call):
            _look(child, name, owner, found, odd)
        _walk(child, name, inside, found, odd)


def _look(call: ast.Call, name: str, owner: str, found: list[Text], odd: list[str]) -> None:
    called = called_name(call)
    place = f"{name}:{call.lineno}"
    if called == "tr" and isinstance(call.func, ast.Attribute):
        context, text = owner, literal(call.args[0]) if call.args else None
    elif called in MARKED and len(call.args) >= 2:
        if literal(call.args[0]) is None:
            odd.append(place)
            return
        context, text = literal(call.args[0]) or "", literal(call.args[1])
        if text is None and called == "translate":
            return  # of a text that was marked where it was written
    else:
        return
    if text is None:
        odd.append(place)
    else:
        found.append(Text(context, text, place))


def unmarked() -> list[str]:
    """Places where words are shown that were not marked."""
    bad = []
    for name, tree in sources():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or called_name(node) not in SHOWING:
                continue
            for argument in node.args[: 1 if called_name(node) != "IconButton" else 2]:
                text = literal(argument)
                own = called_name(node) == "IconButton" and argument is node.args[0]
                if text and re.search(r"[A-Za-z]{3,}", text) and not own:
                    bad.append(f"{name}:{node.lineno}: {text!r}")
    return bad


def called_name(call: ast.Call) -> str:
    """The function's or method's own name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def literal(node: ast.expr) -> str | None:
    """A text written as such."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def translations(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Of a .ts file: (context, source) to the translation and its state, "" where it is finished."""
    result = {}
    for context in ET.parse(path).getroot().iter("context"):
        name = context.findtext("name") or ""
        for message in context.iter("message"):
            element = message.find("translation")
            text = (element.text or "") if element is not None else ""
            state = element.get("type", "") if element is not None else "unfinished"
            result[name, message.findtext("source") or ""] = (text, state)
    return result
