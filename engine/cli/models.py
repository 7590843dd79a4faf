"""`specular-cli models`: the models that this computer has, one line on each, and how they come and go."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from engine.cli.models_add import add_from_hub, is_repository
from engine.cli.terminal import cell_width, visible
from engine.errors import BadSetting
from engine.library.describe import ModelCard, describe
from engine.library.listing import add, cards, clear_conversions, deleted_by, entries, find, remove
from engine.library.shelf import Entry, Origin, Shelf
from engine.library.this_machine import this_machine

REFUSED = 2


def models(options: argparse.Namespace) -> int:
    """Run one of the commands; returns the exit status: 2 where a model that was looked at cannot be loaded.

    Raises SpecularError with a sentence for what cannot be done.
    """
    return {
        "list": _list,
        "info": _info,
        "add": _add,
        "remove": _remove,
        "clear-cache": _clear_cache,
    }[options.action](options)


def _list(options: argparse.Namespace) -> int:
    shelf = Shelf()
    found = cards(entries(shelf), this_machine())
    if options.json:
        for card in found:
            print(json.dumps(as_json(card)))
    else:
        print("\n".join(table(found)) if found else "No model is known: specular-cli models add takes one.")
    if shelf.note:
        print(shelf.note, file=sys.stderr)
    return 0


def _info(options: argparse.Namespace) -> int:
    machine, refused = this_machine(), False
    for path in options.paths:
        origin = Origin.STARTER if path == "starter" else Origin.ADDED
        card = describe(Entry(path, origin), machine, deep=True)
        print(json.dumps(as_json(card)) if options.json else line(card))
        refused |= card.problem is not None
    return REFUSED if refused else 0


def _add(options: argparse.Namespace) -> int:
    if is_repository(options.model):
        entry = add_from_hub(options)
        card = describe(entry, this_machine())
    elif options.file or options.revision:
        raise BadSetting(f"--file and --revision are for repositories of the hub; {options.model} is on this computer.")
    else:
        card = add(options.model, this_machine())
    print(json.dumps(as_json(card)) if options.json else line(card))
    if card.problem is not None and options.json:
        print(card.problem, file=sys.stderr)
    return REFUSED if card.problem is not None else 0


def _remove(options: argparse.Namespace) -> int:
    entry = find(options.name, entries(Shelf()))
    if entry.origin is not Origin.HUB_CACHE and not _agreed(f"Remove {entry.name}? This {deleted_by(entry)}.", options):
        return 1
    remove(entry)
    print(json.dumps({"removed": entry.name}) if options.json else f"{entry.name} was removed.")
    return 0


def _clear_cache(options: argparse.Namespace) -> int:
    if not _agreed("Delete all models that were converted from GGUF files? They can be made again.", options):
        return 1
    freed = clear_conversions()
    print(json.dumps({"freed_bytes": freed}) if options.json else f"{freed / 1e6:,.0f} MB were freed.")
    return 0


def _agreed(question: str, options: argparse.Namespace) -> bool:
    """Whether the user says yes; without a terminal to ask at, only --yes does."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise BadSetting(f"{question} Say so with --yes: there is no terminal to ask at.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def line(card: ModelCard) -> str:
    """A model in one line: what it is, how it stands to this computer, what to know of it; or why it is none."""
    name = Path(card.entry.path).name if card.entry.origin is not Origin.STARTER else "starter"
    if card.problem is not None:
        return visible(f"{name}: cannot be loaded. {card.problem}")
    kind = f"{card.family}, {card.weights:,} weights in {card.dtype}, {size(card.nbytes)}, context {card.context:,}"
    sentences = [f"{name}: {kind}, {card.verdict or 'fit not known'}.", card.advice, *card.notes]
    return visible(" ".join(text for text in sentences if text))


def table(found: list[ModelCard]) -> list[str]:
    """All models in columns, with notes and problems below their row."""
    head = ("name", "size", "family", "type", "context", "here", "from")
    rows = [head, *(_row(card) for card in found)]
    widths = [max(cell_width(row[column]) for row in rows) for column in range(len(head))]
    lines = [_padded(head, widths)]
    for card, row in zip(found, rows[1:], strict=True):
        lines.append(_padded(row, widths))
        lines += [f"    {visible(text)}" for text in (card.problem or "", card.advice, *card.notes) if text]
    return lines


def _row(card: ModelCard) -> tuple[str, ...]:
    name, origin = visible(card.entry.name), card.entry.origin.value
    if card.problem is not None:
        return name, size(card.nbytes) if card.nbytes else "n/a", "n/a", "n/a", "n/a", "cannot be loaded", origin
    fit = card.verdict or "n/a"
    return name, size(card.nbytes), card.family, card.dtype, f"{card.context:,}", fit, origin


def _padded(row: tuple[str, ...], widths: list[int]) -> str:
    cells = (text + " " * (width - cell_width(text)) for text, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()


def size(nbytes: int) -> str:
    """Bytes for people."""
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:,.1f} MB"


def as_json(card: ModelCard) -> dict[str, Any]:
    """A card as plain data; what is not known is null."""
    known = card.problem is None
    return {
        "name": card.entry.name,
        "path": card.entry.path,
        "origin": card.entry.origin.value,
        "repo": card.entry.repo,
        "bytes": card.nbytes or None,
        "family": card.family or None,
        "weights": card.weights if known else None,
        "dtype": card.dtype or None,
        "context": card.context if known else None,
        "verdict": card.verdict,
        "advice": card.advice,
        "notes": list(card.notes),
        "problem": card.problem,
    }
