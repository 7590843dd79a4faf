"""The tokenizer a GGUF file carries, written as tokenizer.json and tokenizer_config.json.

Two kinds exist in LLaMA-type files: byte-level BPE ("gpt2": tokens and merges) and SentencePiece BPE ("llama":
tokens and scores). Both become what the usual tokenizer.json of such models is, so the same text gives the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE

from engine.errors import ModelFileError
from engine.files.gguf_config import token_id
from engine.files.gguf_cutters import CUTTERS, UNKNOWN_RULE, Cutter, pre_tokenizer
from engine.files.gguf_reader import GgufFile
from engine.files.wording import shown

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
SPACE = "▁"


def write_tokenizer(file: GgufFile, folder: Path) -> tuple[str, ...]:
    """Write the tokenizer of `file` into `folder`; returns notes for the user (a cutter that had to be guessed).

    A file without any tokenizer writes nothing: its model takes token ids.
    Raises ModelFileError for a tokenizer of an unknown kind or with damaged lists.
    """
    kind = file.metadata.get("tokenizer.ggml.model")
    if kind is None:
        return (f"{file.path.name} has no tokenizer, so it takes token ids only.",)
    builders: dict[str, Callable[[GgufFile, list[str]], tuple[Tokenizer, tuple[str, ...]]]] = {
        "gpt2": _byte_level,
        "llama": _sentencepiece,
    }
    if kind not in builders:
        raise ModelFileError(
            f"{file.path.name} has a tokenizer of kind {shown(kind)}; supported are {', '.join(builders)}."
        )
    tokens = _distinct_tokens(file)
    tokenizer, notes = builders[kind](file, tokens)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _of_type(file, tokens, True)])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in _of_type(file, tokens, False)])
    if tokenizer.get_vocab_size() != len(tokens):
        raise ModelFileError(f"{file.path.name} is damaged: its tokens do not make a vocabulary.")
    config = _tokenizer_config(file, tokens, kind)
    bos = config.get("bos_token")
    if config["add_bos_token"] and bos is not None:
        tokenizer.post_processor = _with_begin(bos, tokens.index(bos), tokenizer.post_processor)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    text = json.dumps(config, ensure_ascii=False, indent=2)
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return notes


def _list(file: GgufFile, key: str, kind: type) -> list[Any]:
    values = file.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ModelFileError(f"{file.path.name} is damaged: its tokenizer has no list of {key}.")
    return values


def _distinct_tokens(file: GgufFile) -> list[str]:
    """The tokens by id; a repeated one, which text can never give, gets a name of its own so that ids stay in place."""
    seen: dict[str, int] = {}
    for index, token in enumerate(_list(file, "tokens", str)):
        seen[token if token not in seen else f"<repeated token {index}>"] = index
    return list(seen)


def _of_type(file: GgufFile, tokens: list[str], control: bool) -> list[str]:
    types = file.metadata.get("tokenizer.ggml.token_type", [])
    kinds = (UNKNOWN, CONTROL) if control else (USER_DEFINED,)
    return [token for token, kind in zip(tokens, types, strict=False) if kind in kinds and token]


def _byte_level(file: GgufFile, tokens: list[str]) -> tuple[Tokenizer, tuple[str, ...]]:
    merges = [tuple(merge.split(" ")) for merge in _list(file, "merges", str)]
    known = set(tokens)
    for merge in merges:
        if len(merge) != 2 or not known.issuperset(merge) or "".join(merge) not in known:
            raise ModelFileError(f"{file.path.name} is damaged: its merge {shown(' '.join(merge))} makes no token.")
    cutter, notes = _cutter(file)
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(vocabulary, merges, ignore_merges=cutter.whole_first))
    if cutter.composes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(cutter)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, notes


def _cutter(file: GgufFile) -> tuple[Cutter, tuple[str, ...]]:
    """The rule that the file names, or the usual one with a note where it names none that is known."""
    name = file.metadata.get("tokenizer.ggml.pre", "default")
    if isinstance(name, str) and name in CUTTERS:
        return CUTTERS[name], ()
    rule = f"{file.path.name} cuts text by an unknown rule ({shown(name)})"
    return UNKNOWN_RULE, (f"{rule}; the rule of GPT-2 is used, so some text may become other tokens.",)


def _sentencepiece(file: GgufFile, tokens: list[str]) -> tuple[Tokenizer, tuple[str, ...]]:
    scores = _list(file, "scores", float)
    types = _list(file, "token_type", int)
    if not len(tokens) == len(scores) == len(types):
        raise ModelFileError(f"{file.path.name} is damaged: it has {len(tokens)} tokens but {len(scores)} scores.")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    unknown = token_id(file, "unknown", len(tokens))
    model = BPE(
        vocabulary,
        merges_from_scores(tokens, scores, types),
        unk_token=tokens[unknown if unknown is not None else 0],
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    prefix = bool(file.metadata.get("tokenizer.ggml.add_space_prefix", True))
    replace = normalizers.Replace(" ", SPACE)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), replace] if prefix else [replace])
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return tokenizer, ()


def merges_from_scores(tokens: list[str], scores: list[float], types: list[int]) -> list[tuple[str, str]]:
    """The BPE merges that SentencePiece scores stand for, first the best: every way to make a token from two others.

    Only normal tokens take part; bytes, control and user-defined tokens are never made by merging.
    """
    scored = {token: score for token, score, kind in zip(tokens, scores, types, strict=True) if kind == NORMAL}
    found: list[tuple[float, int, int, tuple[str, str]]] = []
    for token, score in scored.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in scored and right in scored:
                found.append((-score, -len(left), -len(right), (left, right)))
    found.sort(key=lambda item: item[:3])
    return [item[3] for item in found]


def _with_begin(bos: str, bos_id: int, after: Any) -> Any:
    single = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, bos_id)]
    )
    return processors.Sequence([after, single]) if after is not None else single


def _tokenizer_config(file: GgufFile, tokens: list[str], kind: str) -> dict[str, Any]:
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        index = token_id(file, key, len(tokens))
        if index is not None:
            config[f"{name}_token"] = tokens[index]
    begins = kind == "llama" or _cutter(file)[0].begins
    config["add_bos_token"] = bool(file.metadata.get("tokenizer.ggml.add_bos_token", begins))
    config["add_eos_token"] = bool(file.metadata.get("tokenizer.ggml.add_eos_token", False))
    template = file.metadata.get("tokenizer.chat_template")
    if isinstance(template, str):
        config["chat_template"] = template
    return config
