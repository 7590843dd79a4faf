"""Every text of the window has a Chinese translation with the same placeholders, and the window speaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shown_words import shown_words
from translatable import PLACEHOLDER, ROOT, texts, translations, unmarked
from window_bench import BenchMaker

from app import language
from app.engine_words import SENTENCES, in_user_words, list_in_user_words
from app.settings import CHINESE, ENGLISH, SYSTEM
from app.states import HostState
from engine.errors import BadSetting
from engine.offload.demands import Demands
from engine.offload.host_needs import HostNeeds
from engine.offload.host_plan import plan_host
from engine.offload.parts import ATTENTION, MLP, OUTPUT, Part

TS = language.FOLDER / "specular_zh_CN.ts"
HINT = "run python assets/translations/update.py and fill in what it has added to the .ts file, then run it again"
NAMES = {"Specular", "Alt ← → ↑ ↓"}  # shown as they are in every language
EMPTY = Demands(0, 0, 2 * 10**9, 0, 7 * 10**9, 0, 0)
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]|[\u4e00-\u9fff]\.(?!\w)")
GLOSSARY = {
    "draft": "草稿|起草",
    "acceptance": "接受率",
    "token": "词元",
    "GPU memory": "显存",
    "speculation": "推测",
    "layer": "层",
    "cycle": "周期",
    "bonus": "额外",
}


@pytest.fixture
def chinese(qapp: QApplication) -> Iterator[None]:
    assert language.install(qapp, CHINESE) == CHINESE
    yield
    language.install(qapp, ENGLISH)


def test_every_text_is_translated() -> None:
    found, odd = texts()
    assert odd == [], "only a literal text can be found by lupdate"
    known = translations(TS)
    missing = [
        f"{text.place}: {text.context}: {text.source!r}"
        for text in found
        if not known.get((text.context, text.source), ("", ""))[0].strip()
    ]
    assert not missing, f"not translated ({HINT}):\n" + "\n".join(missing)
    assert [key for key, (_, state) in known.items() if state] == [], HINT
    assert sorted(set(known) - {(text.context, text.source) for text in found}) == [], f"no longer used: {HINT}"


def test_every_word_that_is_shown_is_marked_for_translation() -> None:
    assert [place for place in unmarked() if not any(repr(name) in place for name in NAMES)] == []


def test_placeholders_and_edges_are_those_of_the_source() -> None:
    for (_, source), (text, _) in translations(TS).items():
        assert sorted(PLACEHOLDER.findall(source)) == sorted(PLACEHOLDER.findall(text)), source
        assert source.count("\n") == text.count("\n"), source
        assert source.endswith("…") == text.endswith("…"), source
        assert text == text.strip() and "  " not in text, source


def test_chinese_has_its_own_punctuation_and_one_word_for_one_thing() -> None:
    for (context, source), (text, _) in translations(TS).items():
        assert not HALF_WIDTH.search(text), f"{context}: {text}"
        for english, expected in GLOSSARY.items():
            if re.search(rf"\b{english}s?\b", PLACEHOLDER.sub("", source), re.IGNORECASE):
                assert re.search(expected, text) or (english == "draft" and "猜测" in text), f"{source} -> {text}"
    different = {"plain"}  # a token's state in a list, and the decoding that a speed is compared with
    same: dict[str, set[str]] = {}
    for (_, source), (text, _) in translations(TS).items():
        same.setdefault(source, set()).add(text)
    assert {source: found for source, found in same.items() if len(found) > 1 and source not in different} == {}


def test_the_compiled_file_is_made_of_this_source(qapp: QApplication) -> None:
    translator = QTranslator()
    assert translator.load(str(TS.with_suffix(".qm")))
    for (context, source), (text, _) in translations(TS).items():
        assert translator.translate(context, source) == text, HINT


def test_the_language_follows_the_system_or_the_setting() -> None:
    assert language.meant(CHINESE, ["en-US"]) == CHINESE and language.meant(ENGLISH, ["zh-CN"]) == ENGLISH
    assert language.meant(SYSTEM, ["zh-Hans-CN", "en-US"]) == CHINESE
    assert language.meant(SYSTEM, ["zh_CN"]) == CHINESE
    assert language.meant(SYSTEM, ["de-DE", "zh-CN"]) == CHINESE, "the first of the user's that there is"
    assert language.meant(SYSTEM, ["en-GB", "zh-CN"]) == ENGLISH
    assert language.meant(SYSTEM, ["zh-Hant-TW", "en-US"]) == ENGLISH
    assert language.meant(SYSTEM, []) == ENGLISH


def test_installing_english_takes_the_translations_back(qapp: QApplication) -> None:
    language.install(qapp, CHINESE)
    assert QCoreApplication.translate("StatusLine", "Ready") == "就绪"
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "取消", "Qt's own buttons"
    language.install(qapp, ENGLISH)
    assert QCoreApplication.translate("StatusLine", "Ready") == "Ready"
    assert qapp.findChildren(QTranslator) == []


def test_what_the_engine_says_is_known_by_its_own_words(chinese: None) -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "engine").rglob("*.py"))
    for beside in ("worker.py", "host.py", "settings_store.py"):  # what speaks like the engine
        sources += (ROOT / "app" / beside).read_text(encoding="utf-8")
    said = re.sub(r'"\s*\n\s*f?"', "", sources).replace('\\"', '"')  # texts over several lines are one
    parts = (Part(0, 12, ATTENTION, (), 1), Part(1, 12, MLP, (), 1), Part(2, None, OUTPUT, (), 1))
    moved = [in_user_words(f"Bringing in {part.name}") for part in parts]
    assert moved == ["正在读入第 12 层的注意力", "正在读入第 12 层的 MLP", "正在读入输出矩阵"]
    for sentence in (text for text in SENTENCES if not text.startswith("Bringing in")):
        for fixed in PLACEHOLDER.split(sentence)[::2]:
            assert fixed.strip() in said, f"the engine does not say {fixed!r} any more"


def test_what_the_engine_says_is_shown_in_chinese_where_it_is_known(chinese: None) -> None:
    assert in_user_words("CPU, 8 cores") == "CPU，8 核"
    assert list_in_user_words("4-bit weights, 30 % of MLP neurons") == "4 位权重，30 % 的 MLP 神经元"
    assert in_user_words("Something nobody knows.") == "Something nobody knows."
    needs = HostNeeds((), EMPTY, 4096)
    with pytest.raises(BadSetting) as refused:
        plan_host(needs, 1000)
    assert in_user_words(str(refused.value)) == (
        "模型至少需要 9.00 GB 内存（其中草稿 0.00 GB，4,096 词元的上下文 2.00 GB），但预算是 0.00 GB。"
    )


def test_in_english_it_stays_as_it_was_said() -> None:
    for said in ("Bringing in layer 12's MLP", "4-bit weights", "The driver has lost the card."):
        assert in_user_words(said) == said


# What the fake engine says and the real one does not, and an entry of pyqtgraph's menu, which is switched off.
FAKE = ("capital of France", "CPU, 2 threads", "Export")
LATIN = re.compile(r"[A-Za-z]{3,}")
KEPT = re.compile(
    r"Specular|SmolLM2|Instruct|MLP|GPU|CPU|RAM|GiB|MiB|KiB|PCIe|GGUF|Ctrl|Shift|Enter|Esc|Alt|English|Top-|Min-|"
    r"ChatML|logits|Python|llama|json|gguf|MB/s|virtual memory|host|json|Seine|starter|bit weights|neurons"
)


def test_the_window_speaks_chinese(chinese: None, benches: BenchMaker, qtbot: QtBot) -> None:
    bench = benches()
    bench.ready()
    window = bench.window
    window.chat.send("你好？")
    bench.reach(HostState.READY)
    bench.settings.set("expert", True)
    qtbot.waitUntil(lambda: window.cockpit.cockpit is not None, timeout=10_000)
    english = sorted(
        {
            words
            for page in (window, window.settings_page)
            for words in shown_words(page)
            if LATIN.search(KEPT.sub("", words)) and not any(part in words for part in FAKE)
        }
    )
    assert english == []


def test_a_setting_of_another_language_says_that_it_counts_later(benches: BenchMaker) -> None:
    bench = benches()
    bench.window.show_settings()
    row = bench.window.settings_page.pane.row("language")
    assert "next start" in shown_words(row)
    bench.settings.set("language", CHINESE)
    assert bench.window.settings_action.text() == "Settings"


def test_the_file_lies_with_the_program() -> None:
    assert TS.is_file() and Path(language.__file__).parents[1] in TS.parents
