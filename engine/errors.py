"""Errors a user can read: one sentence naming the thing and the cause. What else escapes is a fault of ours."""

from __future__ import annotations


class SpecularError(Exception):
    """Base of all errors whose text is meant for the user."""


class ModelFileError(SpecularError):
    """A model cannot be read: missing, cut short, of an unknown kind, or unsafe. Nothing was loaded."""


class LoadCancelled(SpecularError):
    """The user cancelled a load. Nothing was loaded; the model loaded before is untouched."""


class PromptTooLong(SpecularError):
    """The prompt does not fit the context; the text names both numbers. No work was done."""


class BadSetting(SpecularError):
    """A setting has a value outside its range; the text names the setting, the value and the range."""


class ReloadNeeded(BadSetting):
    """A setting can change for this model only by loading it again; all is as before."""


class TemplateError(SpecularError):
    """A chat template failed, was unsafe or took too long; the text names the cause."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on the host or on a card. torch is not imported to ask: its error is known by name."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


class EngineBusy(SpecularError):
    """A reply or a load is running and the command needs an idle engine."""


class PassStopped(Exception):
    """A full pass was given up half-way because a stop was asked for; the rows it wrote are not to be trusted."""


class NoModel(SpecularError):
    """The command needs a loaded model."""


class NumericFault(SpecularError):
    """The model computed something no token can be chosen from.

    cause: "NaN", "infinity" or "no possible token". position: of the token that was to be chosen, if known.
    place: the part of the model in which it arose, once that was looked for.
    """

    def __init__(self, cause: str, position: int | None = None, place: str | None = None) -> None:
        self.cause, self.position, self.place = cause, position, place
        inside = "" if place is None else f" in {place}"
        where = "" if position is None else f"{',' if inside else ''} for the token at position {position}"
        super().__init__(f"The model computed {cause}{inside}{where}: its weights may be damaged or out of range.")


class KvMemoryFull(SpecularError):
    """There is no memory for more rows of the KV cache. What was there is still there; other chats gave way before.

    tokens, wanted: that it was to grow by, and their bytes. free: bytes of the device. held_tokens, held: what the
    conversation takes. where: the device. cause: what the system said.
    """

    def __init__(
        self, tokens: int, wanted: int, free: int, held_tokens: int, held: int, where: str, cause: str
    ) -> None:
        self.tokens, self.wanted, self.free = tokens, wanted, free
        super().__init__(
            f"The KV cache needs {_megabytes(wanted)} more for {tokens:,} tokens, but {where} has {_megabytes(free)} "
            f"free; this chat takes {_megabytes(held)} for {held_tokens:,} tokens ({cause})."
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


class RecordingError(SpecularError):
    """A replay file cannot be read or written; the text names the file and the cause."""
