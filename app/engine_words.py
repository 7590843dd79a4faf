"""What the engine says to people, in the user's language where it is a sentence that the window knows.

The engine speaks English and knows no translations. Its own sentence is the key: it is found by its fixed words, what
stands in the {names} is taken over. A sentence that is not here, a rare error say, stays English.
"""

from __future__ import annotations

import re
from functools import cache

from PySide6.QtCore import QCoreApplication

from app.declaration import QT_TRANSLATE_NOOP
from app.words import fill

SENTENCES = (
    # Steps of a load and of a move
    QT_TRANSLATE_NOOP("Engine", "Starting the engine"),
    QT_TRANSLATE_NOOP("Engine", "Reading tensors"),
    QT_TRANSLATE_NOOP("Engine", "Converting tensors"),
    QT_TRANSLATE_NOOP("Engine", "Preparing the draft"),
    QT_TRANSLATE_NOOP("Engine", "Preparing the draft's neurons"),
    QT_TRANSLATE_NOOP("Engine", "Capturing graphs"),
    QT_TRANSLATE_NOOP("Engine", "Capturing the draft"),
    QT_TRANSLATE_NOOP("Engine", "Bringing in layer {layer}'s MLP"),
    QT_TRANSLATE_NOOP("Engine", "Bringing in layer {layer}'s attention"),
    QT_TRANSLATE_NOOP("Engine", "Bringing in the output matrix"),
    QT_TRANSLATE_NOOP("Engine", "Moving parts of the model"),
    QT_TRANSLATE_NOOP("Engine", "CPU, {count} cores"),
    # A recipe, part by part
    QT_TRANSLATE_NOOP("Engine", "the model's own weights"),
    QT_TRANSLATE_NOOP("Engine", "{bits}-bit weights"),
    QT_TRANSLATE_NOOP("Engine", "{share} of input channels dropped"),
    QT_TRANSLATE_NOOP("Engine", "{share} of MLP neurons"),
    QT_TRANSLATE_NOOP("Engine", "{share} of attention heads"),
    QT_TRANSLATE_NOOP("Engine", "{count} output tokens"),
    QT_TRANSLATE_NOOP("Engine", "the last {count} positions attended to"),
    # The settings file
    QT_TRANSLATE_NOOP("Engine", "Setting {what} The default is used."),
    QT_TRANSLATE_NOOP("Engine", "Settings will not be kept: {file} cannot be written ({cause})."),
    QT_TRANSLATE_NOOP("Engine", "{file} cannot be read ({cause}), so defaults are used."),
    QT_TRANSLATE_NOOP("Engine", "{file} is not valid, so defaults are used; it was kept as {name}."),
    QT_TRANSLATE_NOOP("Engine", "{file} is not valid and cannot be moved ({cause}), so defaults are used."),
    QT_TRANSLATE_NOOP("Engine", "It cannot be kept as it was ({cause})."),
    QT_TRANSLATE_NOOP("Engine", "As it was, it is kept as {name}."),
    QT_TRANSLATE_NOOP("Engine", "{file} was written by a newer version of Specular (format {version}). {kept}"),
    QT_TRANSLATE_NOOP(
        "Engine", "Safe mode: all settings are the defaults, are not kept, and no model is loaded by itself."
    ),
    # Errors and refusals
    QT_TRANSLATE_NOOP("Engine", "No model is loaded."),
    QT_TRANSLATE_NOOP("Engine", "The engine was restarted."),
    QT_TRANSLATE_NOOP("Engine", "There is not enough memory to go on."),
    QT_TRANSLATE_NOOP("Engine", "There is not enough memory to load {model}."),
    QT_TRANSLATE_NOOP("Engine", "There is not enough memory to move parts of the model."),
    QT_TRANSLATE_NOOP("Engine", "There is not enough memory for a draft by this recipe."),
    QT_TRANSLATE_NOOP("Engine", "Here the budget can only change by loading the model again."),
    QT_TRANSLATE_NOOP("Engine", '{path} does not exist: give "starter", a model folder or a .gguf file.'),
    QT_TRANSLATE_NOOP("Engine", "{path} is neither a model folder nor a .gguf file."),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The prompt has {count} tokens, but the context holds {capacity}, and the reply needs room too.",
    ),
    QT_TRANSLATE_NOOP(
        "Engine",
        "The model needs {wanted} GB of RAM {how} (of it {draft} GB for the draft and {kv} GB for {context} tokens of "
        "context), but {bound}.",
    ),
    QT_TRANSLATE_NOOP("Engine", "at the least"),
    QT_TRANSLATE_NOOP("Engine", "with all of its weights in memory"),
    QT_TRANSLATE_NOOP("Engine", "the budget is {size} GB"),
    QT_TRANSLATE_NOOP("Engine", "this computer has {size} GB of RAM free"),
    QT_TRANSLATE_NOOP("Engine", "The budget is {budget}, but this model with this context needs at least {least}."),
    # Models and the hub
    QT_TRANSLATE_NOOP("Engine", "The hub cannot be reached ({cause}); {still}."),
    QT_TRANSLATE_NOOP("Engine", "The hub refused ({status}); {still}."),
    QT_TRANSLATE_NOOP("Engine", "HF_HUB_OFFLINE forbids asking the hub; {still}."),
    QT_TRANSLATE_NOOP("Engine", "models on this computer work as ever"),
    QT_TRANSLATE_NOOP("Engine", "{name} is given only to those who accept its terms: do so at {page} and log in."),
    QT_TRANSLATE_NOOP("Engine", "4-bit source: a draft on the same grid would match it exactly."),
    QT_TRANSLATE_NOOP("Engine", "Downloading {file}"),
    # Why a figure is missing
    QT_TRANSLATE_NOOP("Engine", "This card does not tell it."),
    QT_TRANSLATE_NOOP("Engine", "The driver tells it to administrators only."),
    QT_TRANSLATE_NOOP("Engine", "The driver does not know the card that the model is on."),
    QT_TRANSLATE_NOOP("Engine", "The NVIDIA driver is not loaded."),
    QT_TRANSLATE_NOOP("Engine", "NVIDIA's management library is not installed."),
    QT_TRANSLATE_NOOP("Engine", "The installed NVIDIA driver is too old to tell it."),
    QT_TRANSLATE_NOOP("Engine", "The driver has lost the card."),
    QT_TRANSLATE_NOOP(
        "Engine", "The driver does not tell what this program takes, as in a container or under Windows."
    ),
    QT_TRANSLATE_NOOP("Engine", "The bus is asked only while its figures are shown."),
    QT_TRANSLATE_NOOP("Engine", "Measured between two readings; this is the first."),
    QT_TRANSLATE_NOOP("Engine", "Something before this load took more memory, which hides its peak."),
    QT_TRANSLATE_NOOP("Engine", "This system does not tell the peak of a program's memory."),
)
NAME = re.compile(r"\{(\w+)\}")


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each sentence as a pattern; those with more fixed words first, so that none takes what another means."""
    found = []
    for sentence in SENTENCES:
        parts = NAME.split(sentence)
        fixed, names = parts[::2], parts[1::2]
        pattern = re.escape(fixed[0])
        for name, text in zip(names, fixed[1:], strict=True):
            pattern += f"(?P<{name}>.+?)" + re.escape(text)
        found.append((sentence, re.compile(pattern, re.DOTALL)))
    return tuple(sorted(found, key=lambda pair: -len(NAME.sub("", pair[0]))))


def in_user_words(said: str) -> str:
    """What the engine said, translated where it is known, and what stands inside it likewise."""
    for sentence, pattern in _patterns():
        match = pattern.fullmatch(said)
        if match is not None:
            values = [(name, in_user_words(value)) for name, value in match.groupdict().items()]
            return fill(QCoreApplication.translate("Engine", sentence), values)
    return said


def list_in_user_words(said: str) -> str:
    """The same for a list of things with commas between them."""
    separator = QCoreApplication.translate("Engine", ", ")
    return separator.join(in_user_words(part) for part in said.split(", "))
