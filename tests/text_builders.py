"""Tokenizer folders for the text tests: a SentencePiece-style one beside the byte-level one of `builders`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from builders import byte_tokenizer, write_json
from engine.text.tokenizer import Tokenizer as SpecularTokenizer

SPACE = "▁"
WORDS = ("the", "hello", "world", "cat", "USER", "ASSISTANT", "Hi", "ok")


def spm_tokenizer(
    folder: Path,
    *,
    decoder: str = "strip",
    special_bytes: bool = False,
    begins: bool = True,
    template: str | None = None,
    added: tuple[str, ...] = (),
) -> Path:
    """A LLaMA-style tokenizer: word-start mark, byte fallback, one leading space stripped on decode.

    decoder: "strip" (Replace, ByteFallback, Fuse, Strip), or "metaspace" (ByteFallback, Metaspace).
    special_bytes: flag the byte tokens special, as some converted files do.
    begins: the post-processor puts `<s>` first. added: further special tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *byte_tokens, SPACE, *"abcdefghijklmnopqrstuvwxyzHUSERAINT:,.é"]
    merges: list[tuple[str, str]] = []
    for word in WORDS:
        parts = [(word[:end], word[end]) for end in range(1, len(word))] + [(SPACE, word)]
        merges += parts
        tokens += [left + right for left, right in parts]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    raw = Tokenizer(BPE(vocabulary, list(dict.fromkeys(merges)), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    raw.normalizer = normalizers.Replace(" ", SPACE)
    raw.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=True)
    if decoder == "strip":
        steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    else:
        steps = [decoders.ByteFallback(), decoders.Metaspace(SPACE, prepend_scheme="first")]
    raw.decoder = decoders.Sequence(steps)
    special = ["<unk>", "<s>", "</s>", *(byte_tokens if special_bytes else ()), *added]
    raw.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    if begins:
        raw.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    raw.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    if template is not None:
        config["chat_template"] = template
    write_json(folder / "tokenizer_config.json", config)
    return folder


def every_kind(folder: Path) -> dict[str, SpecularTokenizer]:
    """One tokenizer of each way of decoding."""
    folders = {
        "byte-level": byte_tokenizer(folder / "bytes"),
        "spm-strip": spm_tokenizer(folder / "strip"),
        "spm-special-bytes": spm_tokenizer(folder / "special", special_bytes=True),
        "spm-metaspace": spm_tokenizer(folder / "metaspace", decoder="metaspace"),
    }
    return {name: SpecularTokenizer.from_folder(path) for name, path in folders.items()}


def add_tokens(
    folder: Path, special: tuple[str, ...], plain: tuple[str, ...] = (), *, begins: str | None = None
) -> Path:
    """Add tokens to the tokenizer in `folder`; `begins` makes its post-processor put that token first."""
    path = str(folder / "tokenizer.json")
    raw = Tokenizer.from_file(path)
    raw.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    raw.add_tokens([AddedToken(token, special=False, normalized=False) for token in plain])
    if begins is not None:
        pair = (begins, raw.token_to_id(begins))
        raw.post_processor = processors.TemplateProcessing(single=f"{begins} $A", special_tokens=[pair])
    raw.save(path)
    return folder
