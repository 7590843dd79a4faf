"""Loading: a failed or cancelled load leaves the model before it usable and takes nothing with it."""

from __future__ import annotations

import gc
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import engine.model.compiled_runner as compiled_runner_module
from builders import byte_tokenizer, shard, tiny_llama, write_gguf, write_json
from engine.engine import Engine
from engine.errors import BadSetting, LoadCancelled, ModelFileError, NoModel, SpecularError
from engine.files.paths import cache_dir
from engine.records import LoadProgress
from engine_rig import loaded_engine, no_end_tokens, random_prompts, reply, request

PROMPT = random_prompts(1, 290, seed=41)[0]
WANTED = request(PROMPT, 20, gamma=3)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with loaded_engine(no_end_tokens(tiny_llama(tmp_path / "first", std=0.25))) as made:
        yield made


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return byte_tokenizer(no_end_tokens(tiny_llama(tmp_path / "second", layers=3, std=0.25, seed=5)))


def kernel_threads() -> int:
    return sum(thread.name.startswith("specular-kernel") for thread in threading.enumerate())


def mapped(folder: Path) -> bool:
    """Whether this process has a file of the folder in memory (Linux; elsewhere False)."""
    maps = Path("/proc/self/maps")
    gc.collect()
    return maps.exists() and str(folder) in maps.read_text()


def test_load_tells_what_it_loaded(tmp_path: Path, second: Path) -> None:
    with loaded_engine(second) as engine:
        info = engine.info
        assert info is not None
        assert (info.name, info.family, info.layers, info.hidden_size) == ("second", "llama", 3, 64)
        assert (info.vocabulary, info.context, info.weights_dtype) == (290, 256, "F32")
        data = (second / "model.safetensors").read_bytes()
        assert info.weights_bytes == len(data) - 8 - int.from_bytes(data[:8], "little")
        assert info.weights_bytes / 8 < info.draft_bytes < info.weights_bytes / 3
        assert info.device.startswith("CPU") and info.kernels == "compiled CPU kernels"
        assert info.template != "none" and info.notes == ()


def cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size * 6 // 10])


def point_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")


def lose_a_shard(folder: Path) -> None:
    shard(folder, 5)
    (folder / "model-00003-of-00005.safetensors").unlink()


def be_a_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def be_unknown(folder: Path) -> None:
    write_json(folder / "config.json", {"architectures": ["OtherModel"]})


def be_gone(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (cut_weights, "model.safetensors"),
    "lfs pointer": (point_elsewhere, "LFS pointer"),
    "missing shard": (lose_a_shard, "Shard 3 of 5"),
    "pickle": (be_a_pickle, "pickle"),
    "unknown architecture": (be_unknown, "OtherModel"),
    "no folder": (be_gone, "second"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_load_that_fails_names_the_cause_and_keeps_the_old_model(fault: str, engine: Engine, second: Path) -> None:
    before, info, threads = reply(engine, WANTED).ids, engine.info, kernel_threads()
    damage, words = FAULTS[fault]
    damage(second)
    with pytest.raises(ModelFileError) as raised:
        engine.load(str(second), device="cpu")
    assert words in str(raised.value) and str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
    assert engine.info is info
    assert reply(engine, WANTED).ids == before
    assert kernel_threads() == threads
    del raised
    assert not mapped(second)


def test_a_truncated_gguf_keeps_the_old_model(engine: Engine, second: Path, tmp_path: Path) -> None:
    before = reply(engine, WANTED).ids
    path = write_gguf(tmp_path / "cut.gguf", second)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    with pytest.raises(ModelFileError, match=r"cut\.gguf"):
        engine.load(str(path), device="cpu")
    assert reply(engine, WANTED).ids == before


@pytest.mark.parametrize("context", [0, 15, 257, 10**9])
def test_a_context_out_of_range_is_refused_with_the_range(context: int, engine: Engine, second: Path) -> None:
    before = reply(engine, WANTED).ids
    with pytest.raises(BadSetting, match=rf"{context}.*16 to 256"):
        engine.load(str(second), context=context, device="cpu")
    assert reply(engine, WANTED).ids == before


def test_an_unknown_device_is_refused(engine: Engine, second: Path) -> None:
    with pytest.raises(BadSetting, match="quantum"):
        engine.load(str(second), device="quantum")
    assert reply(engine, WANTED).finished.new_tokens == 20


def test_a_load_can_be_cancelled_at_every_tensor(engine: Engine, second: Path) -> None:
    before, threads = reply(engine, WANTED).ids, kernel_threads()
    seen: list[LoadProgress] = []
    trial = Engine()
    trial.load(str(second), device="cpu", progress=seen.append)
    trial.close()
    kinds = {event.what for event in seen}
    assert len(seen) > 30 and len(kinds) >= 2
    for kind in kinds:
        steps = [event for event in seen if event.what == kind]
        assert [event.done for event in steps] == sorted(event.done for event in steps)
        assert steps[-1].done == steps[-1].total and steps[-1].done_bytes == steps[-1].total_bytes > 0
    for place in range(len(seen)):
        count = iter(range(len(seen)))

        def cancel_here(event: LoadProgress, at: int = place, count: Iterator[int] = count) -> None:
            if next(count) == at:
                engine.cancel_load()

        shutil.rmtree(cache_dir() / "drafts", ignore_errors=True)  # else there is less to make, and to cancel
        with pytest.raises(LoadCancelled):
            engine.load(str(second), device="cpu", progress=cancel_here)
        assert kernel_threads() == threads, place
    assert not mapped(second)
    assert reply(engine, WANTED).ids == before
    assert engine.load(str(second), device="cpu").name == "second"


def test_a_cancel_from_another_thread_ends_the_load(engine: Engine, second: Path) -> None:
    loading, cancelled = threading.Event(), threading.Event()

    def cancel_from_outside() -> None:
        assert loading.wait(20)
        engine.cancel_load()
        cancelled.set()

    def wait_once(event: LoadProgress) -> None:
        loading.set()
        assert cancelled.wait(20)

    thread = threading.Thread(target=cancel_from_outside)
    thread.start()
    with pytest.raises(LoadCancelled):
        engine.load(str(second), device="cpu", progress=wait_once)
    thread.join()


def test_an_error_in_the_progress_callback_escapes_and_leaves_nothing_behind(engine: Engine, second: Path) -> None:
    threads = kernel_threads()

    def fail(event: LoadProgress) -> None:
        if event.what == "Preparing the draft":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engine.load(str(second), device="cpu", progress=fail)
    assert kernel_threads() == threads
    assert reply(engine, WANTED).finished.new_tokens == 20


@pytest.mark.parametrize("shortage", [MemoryError, torch.OutOfMemoryError], ids=["host", "card"])
def test_too_little_memory_is_a_sentence_and_keeps_the_old_model(
    engine: Engine, second: Path, monkeypatch: pytest.MonkeyPatch, shortage: type[Exception]
) -> None:
    before, threads = reply(engine, WANTED).ids, kernel_threads()

    def fail(*arguments: object) -> None:
        raise shortage

    with monkeypatch.context() as patch:
        patch.setattr(compiled_runner_module, "allocate", fail)
        with pytest.raises(SpecularError, match="not enough memory"):
            engine.load(str(second), device="cpu")
    assert kernel_threads() == threads and not mapped(second)
    assert reply(engine, WANTED).ids == before


def test_a_file_that_goes_between_opening_and_reading_is_a_sentence(
    engine: Engine, second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.model import loaded

    choose = loaded.choose_device

    def late(wanted: str | None) -> object:
        (second / "model.safetensors").unlink()
        return choose(wanted)

    monkeypatch.setattr(loaded, "choose_device", late)
    with pytest.raises(ModelFileError, match=r"model\.safetensors"):
        engine.load(str(second), device="cpu")
    assert reply(engine, WANTED).finished.new_tokens == 20


def test_a_new_model_takes_the_place_of_the_old_and_its_memory(engine: Engine, second: Path, tmp_path: Path) -> None:
    threads = kernel_threads()
    assert not sys.platform.startswith("linux") or mapped(tmp_path / "first")
    engine.load(str(second), device="cpu")
    assert not mapped(tmp_path / "first")
    assert kernel_threads() == threads
    with loaded_engine(second) as fresh:
        assert reply(fresh, WANTED).ids == reply(engine, WANTED).ids
    engine.unload()
    assert engine.info is None and kernel_threads() == 0 and not mapped(second)
    with pytest.raises(NoModel):
        engine.generate(WANTED)
    engine.unload()


def test_close_in_mid_reply_leaves_no_threads_and_the_engine_can_load_again(engine: Engine, second: Path) -> None:
    events = engine.generate(request(PROMPT, 100, gamma=3))
    next(events)
    next(events)
    events.close()  # type: ignore[attr-defined]
    engine.close()
    engine.close()
    assert kernel_threads() == 0 and engine.info is None
    engine.load(str(second), device="cpu")
    assert reply(engine, WANTED).ids


def test_a_shape_the_compiled_kernels_cannot_take_runs_in_torch(tmp_path: Path) -> None:
    folder = no_end_tokens(tiny_llama(tmp_path / "narrow", heads=8, kv_heads=2, std=0.25))
    with loaded_engine(folder) as engine:
        assert engine.info is not None and "torch" in engine.info.kernels
        plain = reply(engine, request(PROMPT, 20, plain=True))
        for gamma in (1, 4):
            made = reply(engine, request(PROMPT, 20, gamma=gamma))
            assert made.ids == plain.ids and made.drafted > 0


def test_notes_call_a_converted_file_by_its_own_name(tmp_path: Path) -> None:
    folder = byte_tokenizer(tiny_llama(tmp_path / "source"), template="{{ ''.__class__ }}")
    file = tmp_path / "unsafe.gguf"
    write_gguf(file, folder)
    engine = Engine()
    try:
        notes = " ".join(engine.load(str(file), device="cpu").notes)
    finally:
        engine.close()
    assert "For unsafe, the ChatML format is used instead." in notes
