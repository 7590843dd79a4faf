"""How text is cut before byte-level BPE: the rules that `tokenizer.ggml.pre` names, as the models themselves do it.

A rule is a list of patterns, each applied to the pieces that the one before left; what lies between two matches is a
piece of its own. Merges never cross a piece, so that a wrong rule quietly gives other tokens than the model knows.
Source of the patterns: the tokenizer.json files of the models that each rule is named after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer


@dataclass(frozen=True, slots=True)
class Cutter:
    """One rule. patterns: in order. composes: whether text is brought into the composed form (NFC) first.

    whole_first: whether a piece that is a token itself is taken whole, whatever merges lead to. begins: whether such
    models begin with their begin token where the file does not say.
    """

    patterns: tuple[str, ...]
    composes: bool = False
    whole_first: bool = False
    begins: bool = False


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
QWEN2 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
QWEN35 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s|"
GPT4O = _CASED % (ENDINGS + "?", ENDINGS + "?") + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
TEKKEN = _CASED % ("", "") + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
IDEOGRAPHS = "[一-龥ࠀ-一가-\ud7ff]+"
DEEPSEEK_LLM = (
    r"[\r\n]",
    r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    IDEOGRAPHS,
    r"\p{N}+",
)
DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", IDEOGRAPHS, r"\p{N}")
DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES,
)
FALCON = (r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]")

_GROUPS = (
    ("default gpt-2 phi-2 mpt olmo jais trillion granite-docling gigachat roberta-bpe", Cutter((GPT2,))),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b", Cutter((r"\p{N}", GPT2))),
    ("llama-bpe llama3 llama-v3 falcon3 pixtral lfm2", Cutter((LLAMA3,), whole_first=True, begins=True)),
    ("dbrx smaug-bpe chatglm-bpe glm4", Cutter((LLAMA3,))),
    ("qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez", Cutter((QWEN2,), composes=True)),
    ("qwen35", Cutter((QWEN35,), composes=True)),
    ("gpt-4o llama4", Cutter((GPT4O,))),
    ("tekken", Cutter((TEKKEN,), whole_first=True, begins=True)),
    ("deepseek-llm", Cutter(DEEPSEEK_LLM)),
    ("deepseek-coder", Cutter(DEEPSEEK_CODER)),
    ("deepseek-v3 hunyuan-dense", Cutter(DEEPSEEK_V3)),
    ("falcon", Cutter(FALCON)),
)
CUTTERS = {name: cutter for names, cutter in _GROUPS for name in names.split()}
UNKNOWN_RULE = CUTTERS["gpt-2"]


def pre_tokenizer(cutter: Cutter) -> PreTokenizer:
    """The rule as a step of a tokenizer, which also writes bytes as the characters that stand for them."""
    from tokenizers import Regex, pre_tokenizers

    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in cutter.patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
