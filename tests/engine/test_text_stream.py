"""Streaming: the pieces are the reply, no half characters, no lost or added space (cases C01, C03)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import tokenizers

from builders import byte_tokenizer
from engine.text.reply import ReplyText
from engine.text.stream import StreamingDecoder
from engine.text.tokenizer import Tokenizer
from text_builders import every_kind, spm_tokenizer

KINDS = ("byte-level", "spm-strip", "spm-special-bytes", "spm-metaspace")
TEXTS = (
    "Hi😀ok!",
    "일가",
    "hello world the cat",
    "  two  spaces\n\n\tand a tab ",
    "👨‍👩‍👧‍👦 family, 🇫🇷 flag, 👍🏽 tone",
    "漢字かな交じり文。日本語 and 한국어 조합 각",
    "e\u0301 combining a\u0308\u0323 ﷺ नमस्ते",
    "a real \ufffd mark and a ▁ mark",
    "\U0010ffff\u0000\u0080\u07ff\u0800\uffff",
)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    return every_kind(tmp_path_factory.mktemp("tokenizers"))


def stream(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    decoder = StreamingDecoder(tokenizer)
    return [*(decoder.push(i) for i in ids), decoder.flush()]


def random_text(source: random.Random) -> str:
    ranges = ((0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x4E00, 0x4EFF), (0xAC00, 0xACFF), (0x1F600, 0x1F64F))
    pieces = [chr(source.randint(*source.choice(ranges))) for _ in range(source.randint(1, 30))]
    joints = [source.choice(("", "", " ", "  ", "\u200d", "\n")) for _ in pieces]
    return "".join(piece + joint for piece, joint in zip(pieces, joints, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_back_whole_and_without_replacement_marks(
    kinds: dict[str, Tokenizer], kind: str, text: str
) -> None:
    tokenizer = kinds[kind]
    ids = tokenizer.encode(text, allow_control=False)
    pieces = stream(tokenizer, ids)
    joined = "".join(pieces)
    # In SentencePiece vocabularies that mark is how a space is spelled, and leading spaces are the word start's.
    expected = text if tokenizer.byte_level else text.replace("▁", " ")
    assert joined == tokenizer.decode(ids)
    assert joined.lstrip(" ") == expected.lstrip(" ")
    assert joined.count("\ufffd") == text.count("\ufffd")
    assert pieces[-1] == ""


@pytest.mark.parametrize("kind", KINDS)
def test_random_unicode_streams_as_it_decodes(kinds: dict[str, Tokenizer], kind: str) -> None:
    tokenizer, source = kinds[kind], random.Random(1)
    for _ in range(200):
        text = random_text(source)
        ids = tokenizer.encode(text, allow_control=False)
        pieces = stream(tokenizer, ids)
        assert "".join(pieces) == tokenizer.decode(ids)
        assert "".join(pieces).strip(" ") == text.strip(" ")
        assert "\ufffd" not in "".join(pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_random_ids_stream_as_they_decode(kinds: dict[str, Tokenizer], kind: str) -> None:
    """Any ids: broken bytes, special tokens, ids the tokenizer does not know."""
    tokenizer, source = kinds[kind], random.Random(2)
    for _ in range(400):
        ids = [source.randrange(tokenizer.vocabulary + 30) for _ in range(source.randint(0, 40))]
        assert "".join(stream(tokenizer, ids)) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_random_bytes_stream_as_they_decode(kinds: dict[str, Tokenizer], kind: str) -> None:
    tokenizer, source = kinds[kind], random.Random(3)
    ids_of_bytes = [i for i in range(tokenizer.vocabulary) if tokenizer.is_text(i) and _is_one_byte(tokenizer, i)]
    assert len(ids_of_bytes) == 256
    for _ in range(400):
        ids = [source.choice(ids_of_bytes) for _ in range(source.randint(1, 12))]
        assert "".join(stream(tokenizer, ids)) == tokenizer.decode(ids)


def _is_one_byte(tokenizer: Tokenizer, token_id: int) -> bool:
    if tokenizer.byte_level:
        return len(tokenizer.token_bytes(token_id)) == 1
    return tokenizer.token_text(token_id).startswith("<0x")


def test_decode_equals_the_library_for_byte_level_ids(tmp_path: Path) -> None:
    folder = byte_tokenizer(tmp_path)
    tokenizer = Tokenizer.from_folder(folder)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    source = random.Random(4)
    for _ in range(300):
        ids = [source.randrange(tokenizer.vocabulary) for _ in range(source.randint(0, 30))]
        assert tokenizer.decode(ids) == library.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("decoder", ["strip", "metaspace"])
def test_decode_equals_the_library_for_sentencepiece_texts(tmp_path: Path, decoder: str) -> None:
    folder = spm_tokenizer(tmp_path, decoder=decoder)
    tokenizer = Tokenizer.from_folder(folder)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    source = random.Random(5)
    for _ in range(200):
        ids = tokenizer.encode(random_text(source), allow_control=False)
        assert tokenizer.decode(ids) == library.decode(ids, skip_special_tokens=True)


def test_a_whole_character_survives_a_broken_one_beside_it(tmp_path: Path) -> None:
    """The library marks the whole run of byte tokens; what was already shown must not change."""
    tokenizer = Tokenizer.from_folder(spm_tokenizer(tmp_path))
    ids = [tokenizer.token_id(f"<0x{byte:02X}>") or 0 for byte in "😀".encode() + b"\xf0\x9f" + "é".encode()]
    assert tokenizer.decode(ids) == "😀\ufffd\ufffdé"
    assert stream(tokenizer, ids) == ["", "", "", "😀", "", "", "\ufffd\ufffd", "é", ""]


@pytest.mark.parametrize("kind", ["byte-level", "spm-strip"])
def test_a_broken_byte_is_shown_at_once_and_a_half_character_at_the_end(kinds: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = kinds[kind]
    by_byte = {
        bytes([byte]): next(
            i
            for i in range(3, tokenizer.vocabulary)
            if tokenizer.is_text(i) and tokenizer.piece(i) in (f"<0x{byte:02X}>", chr(byte))
        )
        for byte in (0xFF, 0xF0, 0x9F, 0x61)
    }
    decoder = StreamingDecoder(tokenizer)
    assert decoder.push(by_byte[b"\xff"]) == "\ufffd"
    assert [decoder.push(by_byte[b"\xf0"]), decoder.push(by_byte[b"\x9f"])] == ["", ""]
    assert set(decoder.flush()) == {"\ufffd"}
    assert decoder.flush() == ""
    assert decoder.push(by_byte[b"a"]) == "a"


def test_words_keep_their_spaces_and_a_reply_may_begin_inside_a_word(tmp_path: Path) -> None:
    """C03: SentencePiece word starts, one by one."""
    tokenizer = Tokenizer.from_folder(spm_tokenizer(tmp_path))
    ids = tokenizer.encode("hello world the cat", allow_control=False)
    assert stream(tokenizer, ids) == ["hello", " world", " the", " cat", ""]
    inner = [tokenizer.token_id(token) or 0 for token in ("ok", "▁world", "▁", "▁", "the")]
    assert stream(tokenizer, inner) == ["ok", " world", " ", " ", "the", ""]
    assert tokenizer.decode(inner) == "ok world  the"


def test_emoji_and_hangul_by_blocks(kinds: dict[str, Tokenizer]) -> None:
    """C01: a speculative step hands over several tokens at once; the pieces are those of one at a time."""
    for tokenizer in kinds.values():
        for text in ("Hi😀ok!", "일가"):
            ids = tokenizer.encode(text, allow_control=False)
            single = stream(tokenizer, ids)
            for block in (2, 3, 5):
                reply = ReplyText(tokenizer)
                pieces = []
                for start in range(0, len(ids), block):
                    pieces += [reply.push(i)[0] for i in ids[start : start + block]]
                    reply.ghosts(tuple(ids))  # a rejected tail in between changes nothing
                assert [*pieces, reply.flush()] == single
            assert "".join(single) == text


def test_ghosts_follow_the_reply_and_never_enter_it(kinds: dict[str, Tokenizer]) -> None:
    for kind, tokenizer in kinds.items():
        decoder, source = StreamingDecoder(tokenizer), random.Random(6)
        ids = tokenizer.encode("hello 😀 the 일가 cat", allow_control=False)
        shown = []
        for i in ids:
            rejected = tuple(source.randrange(tokenizer.vocabulary) for _ in range(4))
            ghosts = decoder.ghosts(rejected)
            assert len(ghosts) == 4
            assert decoder.ghost_text(rejected) == "".join(ghosts)
            shown.append(decoder.push(i))
        assert "".join([*shown, decoder.flush()]) == "hello 😀 the 일가 cat", kind


def test_a_ghost_keeps_its_space_and_finishes_the_reply_s_half_character(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(spm_tokenizer(tmp_path))
    hello, world = (tokenizer.token_id(token) or 0 for token in ("▁hello", "▁world"))
    decoder = StreamingDecoder(tokenizer)
    assert decoder.ghosts((world,)) == ("world",)
    assert decoder.push(hello) == "hello"
    assert decoder.ghosts((world,)) == (" world",)
    first, *rest = (tokenizer.token_id(f"<0x{byte:02X}>") or 0 for byte in "é".encode())
    assert decoder.push(first) == ""
    assert decoder.ghosts((*rest, world)) == ("é", " world")
    assert decoder.ghosts((first,)) == ("\ufffd",)
    assert decoder.push(rest[0]) == "é"


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_costs_the_same_late_in_a_long_reply(
    kinds: dict[str, Tokenizer], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts what the library is asked to join, not time: the window must not grow, also over endless half bytes."""
    tokenizer, source = kinds[kind], random.Random(7)
    widest = 0
    join = tokenizer.join

    def counting(tokens: list[str]) -> str:
        nonlocal widest
        widest = max(widest, len(tokens))
        return join(tokens)

    monkeypatch.setattr(tokenizer, "join", counting)
    decoder = StreamingDecoder(tokenizer)
    for _ in range(5000):
        decoder.push(source.randrange(tokenizer.vocabulary + 5))
    for _ in range(2000):
        decoder.push(tokenizer.vocabulary - 1)
    assert widest <= 24
    assert (widest == 0) == tokenizer.byte_level
