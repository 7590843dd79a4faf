"""Tokenizers out of GGUF files: the same ids as the tokenizer they were made from, or as SentencePiece's own rule."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import pytest
from tokenizers import Tokenizer, pre_tokenizers

from builders import CHATML, byte_alphabet, byte_tokenizer, tiny_llama, write_gguf
from engine.errors import ModelFileError
from engine.files.folder import open_folder
from engine.files.gguf_convert import convert
from engine.files.gguf_cutters import CUTTERS, pre_tokenizer
from engine.files.gguf_reader import GgufFile
from engine.files.gguf_tokenizer import write_tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
TEXTS = [
    "hello world the cat sat on the mat",
    " leading and trailing ",
    "two  spaces\n\nnew\tlines\r\n",
    "Hi😀ok! 👨‍👩‍👧 日本語 한국어 עברית",
    "def f(x):\n    return x**2  # 12345 3.14",
    "don't I'LL we've DON'T",
    "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n",
    "a<s>b</s>c <|im_end",
    "½ ² ٣ ४ １２３ e\u0301 é",
    "\x00\x01\u200b\ufeff",
    "",
    " ",
]


def made(folder: Path, **metadata: Any) -> tuple[Tokenizer, dict[str, Any], tuple[str, ...]]:
    """Write a tokenizer from `tokenizer.*` metadata (dots as double underscores); returns it, its config and notes."""
    keys = {f"tokenizer.{key.replace('__', '.')}": value for key, value in metadata.items()}
    folder.mkdir(parents=True, exist_ok=True)
    notes = write_tokenizer(GgufFile(Path("m.gguf"), keys, {}), folder)
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    return Tokenizer.from_file(str(folder / "tokenizer.json")), config, notes


class TestByteLevel:
    @pytest.fixture
    def pair(self, tmp_path: Path) -> tuple[Path, Path]:
        """A folder with a byte-level tokenizer, and the folder its GGUF converts to."""
        original = byte_tokenizer(tiny_llama(tmp_path / "model"))
        return original, convert(write_gguf(tmp_path / "m.gguf", original), lambda _: None, lambda: False)

    @pytest.mark.parametrize("text", TEXTS)
    def test_same_ids_and_text_as_the_original(self, pair: tuple[Path, Path], text: str) -> None:
        original, ours = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in pair)
        ids = ours.encode(text).ids
        assert ids == original.encode(text).ids
        assert ours.decode(ids, skip_special_tokens=False) == text

    def test_control_tokens_are_special(self, pair: tuple[Path, Path]) -> None:
        ours = Tokenizer.from_file(str(pair[1] / "tokenizer.json"))
        assert ours.encode("<|im_start|>the<|im_end|>").ids == [288, 261, 289]
        special = {index for index, token in ours.get_added_tokens_decoder().items() if token.special}
        assert special == {0, 1, 2, 288, 289}

    def test_config_carries_template_and_end(self, pair: tuple[Path, Path]) -> None:
        config = json.loads((pair[1] / "tokenizer_config.json").read_text(encoding="utf-8"))
        assert (config["bos_token"], config["eos_token"], config["add_bos_token"]) == ("<s>", "</s>", False)
        assert config["chat_template"] == CHATML

    def test_a_template_is_carried_and_never_run(self, tmp_path: Path) -> None:
        """C11, the file half: converting a crafted GGUF copies its template as text and does nothing with it."""
        marker = tmp_path / "ran"
        evil = "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ cycler.__init__.__globals__.os.system('touch %s') }}"
        folder = byte_tokenizer(tiny_llama(tmp_path / "model"))
        path = write_gguf(tmp_path / "evil.gguf", folder, template=evil % marker)
        target = convert(path, lambda _: None, lambda: False)
        open_folder(target)
        assert not marker.exists()
        config = json.loads((target / "tokenizer_config.json").read_text(encoding="utf-8"))
        assert config["chat_template"] == evil % marker


BYTES = byte_alphabet()
MERGES = ["Ġ 1", "1 2", "12 3", "123 4", "' L", "'L L"]


def cut_by(folder: Path, pre: str, text: str) -> list[str]:
    tokens = BYTES + ["Ġ1", "12", "123", "1234", "'L", "'LL"]
    tokenizer, _, notes = made(folder, ggml__model="gpt2", ggml__pre=pre, ggml__tokens=tokens, ggml__merges=MERGES)
    assert notes == ()
    return tokenizer.encode(text).tokens


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("default", ["Ġ1", "2", "3", "4", "5", "'", "L", "L"]),
        ("smollm", ["Ġ", "1", "2", "3", "4", "5", "'", "L", "L"]),
        ("llama-bpe", ["Ġ", "123", "4", "5", "'LL"]),
        ("qwen2", ["Ġ", "1", "2", "3", "4", "5", "'LL"]),
        ("gpt-4o", ["Ġ", "123", "4", "5", "'LL"]),
        ("tekken", ["Ġ", "1", "2", "3", "4", "5", "'LL"]),
        ("deepseek-llm", ["Ġ", "1234", "5", "'", "L", "L"]),
        ("deepseek-coder", ["Ġ", "1", "2", "3", "4", "5", "'", "L", "L"]),
        ("deepseek-v3", ["Ġ", "123", "4", "5", "'LL"]),
        ("falcon", ["Ġ", "123", "4", "5", "'", "L", "L"]),
    ],
)
def test_each_rule_cuts_digits_spaces_and_endings_its_way(tmp_path: Path, pre: str, expected: list[str]) -> None:
    """Merges only happen inside a piece, so the tokens show where each rule cuts " 12345'LL"."""
    assert cut_by(tmp_path, pre, " 12345'LL") == expected


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("gpt-2", [" don", "'t", " HelloWorld", ",", " 日本語x", "\n\n ", " a", "//", "b"]),
        ("llama-bpe", [" don", "'t", " HelloWorld", ",", " 日本語x", "\n\n", " ", " a", "//", "b"]),
        ("gpt-4o", [" don't", " Hello", "World", ",", " 日本語x", "\n\n", " ", " a", "//", "b"]),
        ("tekken", [" don", "'t", " Hello", "World", ",", " 日本語x", "\n\n", " ", " a", "//", "b"]),
        ("deepseek-llm", [" don", "'", "t", " HelloWorld", ",", " ", "日本語", "x", "\n", "\n", " ", " a", "//", "b"]),
        ("deepseek-v3", [" don", "'t", " HelloWorld", ",", " ", "日本語", "x", "\n\n", " ", " a", "//", "b"]),
        ("qwen35", [" don", "'t", " HelloWorld", ",", " 日本語x", "\n\n", " ", " a", "//", "b"]),
    ],
)
def test_each_rule_cuts_words_lines_and_ideographs_its_way(pre: str, expected: list[str]) -> None:
    text = " don't HelloWorld, 日本語x\n\n  a//b"
    pieces = [text[begin:end] for _, (begin, end) in pre_tokenizer(CUTTERS[pre]).pre_tokenize_str(text)]
    assert pieces == expected


def test_gpt2s_rule_is_the_one_the_library_has_built_in() -> None:
    built_in = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for text in TEXTS:
        assert pre_tokenizer(CUTTERS["gpt-2"]).pre_tokenize_str(text) == built_in.pre_tokenize_str(text)


def test_llama3_takes_a_whole_token_where_no_merge_leads_to_it(tmp_path: Path) -> None:
    tokens = [*BYTES, "cat"]
    values = {"ggml__model": "gpt2", "ggml__tokens": tokens, "ggml__merges": []}
    assert made(tmp_path, **values, ggml__pre="llama-bpe")[0].encode("cat").tokens == ["cat"]
    assert made(tmp_path, **values, ggml__pre="gpt-2")[0].encode("cat").tokens == ["c", "a", "t"]


def test_qwen_composes_characters_first(tmp_path: Path) -> None:
    values = {"ggml__model": "gpt2", "ggml__tokens": BYTES, "ggml__merges": []}
    tokenizer = made(tmp_path, **values, ggml__pre="qwen2")[0]
    assert tokenizer.encode("e\u0301").ids == tokenizer.encode("é").ids


def test_a_rule_that_is_no_name_is_guessed_too(tmp_path: Path) -> None:
    values = {"ggml__model": "gpt2", "ggml__tokens": BYTES, "ggml__merges": [], "ggml__pre": [1, 2]}
    assert made(tmp_path, **values)[2][0].startswith("m.gguf cuts text by an unknown rule ([1, 2]);")


def test_an_unknown_rule_is_guessed_with_a_note(tmp_path: Path) -> None:
    values = {"ggml__model": "gpt2", "ggml__tokens": BYTES, "ggml__merges": []}
    _, _, notes = made(tmp_path, **values, ggml__pre="novel-bpe")
    assert notes == (
        "m.gguf cuts text by an unknown rule (novel-bpe); the rule of GPT-2 is used, "
        "so some text may become other tokens.",
    )


def test_notes_reach_the_opened_folder(tmp_path: Path) -> None:
    target = convert(write_gguf(tmp_path / "ids.gguf", tiny_llama(tmp_path / "m")), lambda _: None, lambda: False)
    assert open_folder(target).notes == ("ids.gguf has no tokenizer, so it takes token ids only.",)
    assert not (target / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"ggml__model": "gpt2"}, False),
        ({"ggml__model": "gpt2", "ggml__pre": "llama-bpe"}, True),
        ({"ggml__model": "gpt2", "ggml__pre": "llama-bpe", "ggml__add_bos_token": False}, False),
        ({"ggml__model": "gpt2", "ggml__add_bos_token": True}, True),
    ],
)
def test_begin_token_as_the_file_says_or_its_kind_implies(
    tmp_path: Path, metadata: dict[str, Any], expected: bool
) -> None:
    tokens, types = ["<s>", *BYTES], [CONTROL] + [NORMAL] * 256
    lists = {"ggml__tokens": tokens, "ggml__token_type": types, "ggml__merges": [], "ggml__bos_token_id": 0}
    tokenizer, config, _ = made(tmp_path, **lists, **metadata)
    assert config["add_bos_token"] is expected
    assert (tokenizer.encode("a").ids[0] == 0) is expected
    assert tokenizer.encode("a", add_special_tokens=False).ids == [tokens.index("a")]


PIECES = {
    "▁": -1.0, "h": -30.0, "e": -31.0, "l": -32.0, "o": -33.0, "w": -34.0, "r": -35.0, "d": -36.0, "t": -37.0,
    "he": -2.0, "ll": -3.0, "▁t": -4.0, "hell": -5.0, "▁the": -6.0, "lo": -8.5, "hello": -7.0, "or": -8.0, "▁w": -9.0,
    "ld": -10.0, "▁wor": -11.0, "▁world": -12.0, "▁hello": -13.0, "▁▁": -14.0, "el": -15.0, "日": -40.0,
}  # fmt: skip
SPECIAL = ["<unk>", "<s>", "</s>"]


def sentencepiece(extra: dict[str, int] | None = None, **metadata: Any) -> dict[str, Any]:
    """Metadata of a SentencePiece tokenizer of 3 specials, 256 bytes, `PIECES` and `extra` tokens of given types."""
    extra = extra or {}
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES, *extra]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(PIECES) + list(extra.values())
    scores = [0.0] * 259 + list(PIECES.values()) + [0.0] * len(extra)
    ids = {"ggml__bos_token_id": 1, "ggml__eos_token_id": 2, "ggml__unknown_token_id": 0}
    lists = {"ggml__tokens": tokens, "ggml__token_type": types, "ggml__scores": scores}
    return {"ggml__model": "llama", **lists, **ids, **metadata}


def best_pairs_first(text: str) -> list[str]:
    """SentencePiece BPE by its definition: join the neighbours that make the best-scored piece, leftmost first."""
    parts = list(("▁" + text).replace(" ", "▁"))
    while True:
        scored = [(PIECES.get(a + b), -i) for i, (a, b) in enumerate(pairwise(parts))]
        known = [(score, i) for score, i in scored if score is not None]
        if not known:
            break
        at = -max(known)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    bytes_of = [[part] if part in PIECES else [f"<0x{b:02X}>" for b in part.encode()] for part in parts]
    return [piece for pieces in bytes_of for piece in pieces]


class TestSentencePiece:
    @pytest.mark.parametrize(
        "text",
        ["hello world", "the  hello", "helloworld", " hello", "hellllo", "held otherworld told", "日 Hi😀", "w\no"],
    )
    def test_tokens_by_the_definition(self, tmp_path: Path, text: str) -> None:
        tokenizer, _, _ = made(tmp_path, **sentencepiece())
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert encoded.tokens == best_pairs_first(text)
        assert tokenizer.decode(encoded.ids) == text

    def test_it_begins_with_the_begin_token_unless_told_otherwise(self, tmp_path: Path) -> None:
        tokenizer, config, _ = made(tmp_path, **sentencepiece())
        assert config["add_bos_token"] is True
        assert tokenizer.encode("hello").tokens == ["<s>", "▁hello"]
        tokenizer, config, _ = made(tmp_path, **sentencepiece(ggml__add_bos_token=False))
        assert tokenizer.encode("hello").tokens == ["▁hello"]

    def test_without_a_space_in_front(self, tmp_path: Path) -> None:
        tokenizer, _, _ = made(tmp_path, **sentencepiece(ggml__add_space_prefix=False))
        encoded = tokenizer.encode("hello world", add_special_tokens=False)
        assert encoded.tokens == ["hello", "▁world"]
        assert tokenizer.decode(encoded.ids) == "hello world"

    def test_control_and_user_tokens_are_whole_and_only_control_is_hidden(self, tmp_path: Path) -> None:
        tokenizer, _, _ = made(tmp_path, **sentencepiece({"<end>": CONTROL, "[tool]": USER_DEFINED}))
        encoded = tokenizer.encode("hello[tool]<end>", add_special_tokens=False)
        assert encoded.tokens == ["▁hello", "[tool]", "<end>"]
        assert tokenizer.decode(encoded.ids) == "hello[tool]"


class TestDamaged:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"ggml__model": "bert"}, "m.gguf has a tokenizer of kind bert; supported are gpt2, llama."),
            ({"ggml__tokens": None}, "m.gguf is damaged: its tokenizer has no list of tokens."),
            ({"ggml__tokens": [1, 2]}, "m.gguf is damaged: its tokenizer has no list of tokens."),
            ({"ggml__merges": "x"}, "m.gguf is damaged: its tokenizer has no list of merges."),
            ({"ggml__merges": ["a b c"]}, "m.gguf is damaged: its merge a b c makes no token."),
            ({"ggml__merges": ["a b"]}, "m.gguf is damaged: its merge a b makes no token."),
        ],
    )
    def test_byte_level(self, tmp_path: Path, change: dict[str, Any], words: str) -> None:
        with pytest.raises(ModelFileError) as caught:
            made(tmp_path, **{"ggml__model": "gpt2", "ggml__tokens": BYTES, "ggml__merges": [], **change})
        assert str(caught.value) == words

    def test_scores_and_tokens_of_different_length(self, tmp_path: Path) -> None:
        values = sentencepiece()
        values["ggml__scores"] = values["ggml__scores"][:-1]
        count = len(values["ggml__tokens"])
        with pytest.raises(ModelFileError, match=rf"it has {count} tokens but {count - 1} scores\.$"):
            made(tmp_path, **values)

    def test_repeated_tokens_keep_all_ids_in_place(self, tmp_path: Path) -> None:
        tokens = [*BYTES, "a", "zz", "ab"]
        tokenizer, _, _ = made(tmp_path, ggml__model="gpt2", ggml__tokens=tokens, ggml__merges=["a b"])
        assert tokenizer.encode("ab").ids == [258]
        assert tokenizer.get_vocab_size() == 259


def test_type_numbers_are_the_public_ones() -> None:
    public = gguf.TokenType
    assert [public.NORMAL, public.UNKNOWN, public.CONTROL, public.USER_DEFINED, public.UNUSED, public.BYTE] == [
        NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE,
    ]  # fmt: skip
