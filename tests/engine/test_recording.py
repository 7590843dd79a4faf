"""Replay files: what is written is read back equal, and whatever else is in a file is refused with one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.comparison import Comparison, equal_from
from engine.errors import RecordingError
from engine.recipe import Ingredients, Recipe
from engine.recording import Recording, event_times, joined_ids, read_recording, to_json, write_recording
from engine.records import Event, ModelInfo, Opening, PrefillProgress
from engine.settings import Sampling, Speculation
from reply_builders import cycle, finished, sibling_cycle

INFO = ModelInfo(
    "Tiny", "/home/someone/models/tiny", "llama", 2, 8, 99, 64, "F16", 10, 5, "CPU", "kernels", "ChatML",
    recipe=Recipe(skipped_attention=(1,)), ingredients=Ingredients((16, 4)),
)  # fmt: skip


def recording(**changes: Any) -> Recording:
    events: tuple[Event, ...] = (
        PrefillProgress(0, 40, 0),
        PrefillProgress(40, 40, 0),
        cycle(0, [" one", " zwei", " \u4e09"], " four"),
        sibling_cycle(1, [" five"], " six", " seven", [" wrong"]),
        cycle(2, [" </script>\ud83d"], " \x00&", [" no", " nor"]),
        finished(tail=" end"),
    )
    made = Recording(
        "Why?",
        INFO,
        Sampling(0.7, seed=3),
        Speculation(recipe=Recipe(weight_bits=4)),
        99,
        events,
        event_times(events),
        Comparison(9, None, 9, 9, 2.0, 1.0),
    )
    return replace(made, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "reply.json"
    write_recording(target, recording())
    return target


def test_a_recording_survives_the_file(path: Path) -> None:
    read = read_recording(path)
    assert read == replace(recording(), model=replace(INFO, path="tiny"), times=read.times)
    assert read.times == pytest.approx(recording().times, abs=1e-6)
    assert read.text.startswith(" one zwei \u4e09 four five six seven")
    assert read.statistics == recording().statistics and read.statistics.siblings == 1


def test_the_folder_of_a_model_does_not_leave_the_computer(path: Path) -> None:
    assert "someone" not in path.read_text()
    noted = replace(INFO, notes=("The saved recipe /home/someone/r.json is damaged.",))
    assert "someone" not in to_json(recording(model=noted))
    windows = replace(INFO, path="C:\\Users\\someone\\tiny.gguf")
    assert "someone" not in to_json(recording(model=windows))


def test_times_follow_the_engines_own_clock() -> None:
    events = recording().events
    times = event_times(events)
    assert times[:2] == (0.0, 0.4)
    seconds = [event.record.seconds for event in recording().cycles]
    assert times[2:] == pytest.approx([0.4 + seconds[0], 0.4 + sum(seconds[:2]), *[0.4 + sum(seconds)] * 2])


def test_a_file_that_is_cut_short_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(0, len(whole) - 2, 97):
        path.write_bytes(whole[:size])
        with pytest.raises(RecordingError, match=r"^reply.json is no replay .*damaged or cut short\.$"):
            read_recording(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none.json cannot be read: No such file"):
        read_recording(tmp_path / "none.json")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"reply.json cannot be written: No such file"):
        write_recording(tmp_path / "no" / "reply.json", recording())


def cut(values: dict[str, Any]) -> None:
    del values["events"][-1]


def after_the_end(values: dict[str, Any]) -> None:
    values["events"].append(dict(values["events"][-1]))


def at(place: str, value: Any) -> Any:
    """Changes one value; place is a path of keys and numbers."""

    def change(values: Any) -> None:
        *steps, last = place.split(".")
        for step in steps:
            values = values[int(step) if step.isdigit() else step]
        values[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (at("version", 2), "written by another version of Specular (format 2, not 1)"),
        (at("version", None), "written by another version"),
        (at("format", "gguf"), "another kind of file"),
        (cut, "cut short: the end of the reply is missing"),
        (after_the_end, "goes on after its end"),
        (at("surprise", 1), "unknown field 'surprise'"),
        (at("prompt", 7), "prompt is no text"),
        (at("model", None), "model is no object"),
        (at("model.layers", "2"), "model.layers is no whole number"),
        (at("model.layers", True), "model.layers is no whole number"),
        (at("model.extra", 2), "unknown field 'extra'"),
        (at("sampling.temperature", -1), "temperature is -1"),
        (at("sampling.temperature", "hot"), "sampling.temperature is no number"),
        (at("speculation.gamma", 99), "gamma is 99"),
        (at("max_new_tokens", -1), "max_new_tokens is no number"),
        (at("events", {}), "events are no list"),
        (at("events.0", 3), "events are no list"),
        (at("events.1.kind", "kernel"), "event 2 is of an unknown kind"),
        (at("events.3.at", 0.1), "time of its event 4 makes no sense"),
        (at("events.3.at", float("nan")), "time of its event 4 makes no sense"),
        (at("events.3.at", None), "time of its event 4 makes no sense"),
        (at("events.2.record.drafted_ids", "ids"), "event 3.record.drafted_ids is no list"),
        (at("events.2.record.drafted_ids.0", 1.5), "event 3.record.drafted_ids is no whole number"),
        (at("events.2.record.next_state", "great"), "next_state is none of its choices"),
        (at("events.2.record.next_state", "rejected"), "event 3 contradicts itself"),
        (at("events.2.record.accepted", 9), "event 3 contradicts itself"),
        (at("events.2.record.accepted", -1), "event 3 contradicts itself"),
        (at("events.2.record.verify_seconds", -1), "event 3 contradicts itself"),
        (at("events.2.record.plain_seconds", float("inf")), "event 3.record.plain_seconds is no number"),
        (at("events.2.pieces", []), "event 3 contradicts itself"),
        (at("events.2.ghosts", [" a"]), "event 3 contradicts itself"),
        (at("events.2.record.recipe.weight_bits", None), "recipe.weight_bits is no whole number"),
        (at("events.5.reason", "tired"), "reason is none of its choices"),
        (at("comparison.compared", None), "comparison.compared is no whole number"),
    ],
)
def test_anything_else_is_refused_with_a_sentence_naming_the_file(path: Path, change: Any, cause: str) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    with pytest.raises(RecordingError) as refused:
        read_recording(path)
    sentence = str(refused.value)
    assert sentence.startswith("reply.json is no replay that can be shown: ") and sentence.endswith(".")
    assert cause in sentence and "\n" not in sentence


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"null", b'{"a":' * 5000, b"\xff\xfe", b"GGUF"])
def test_other_files_are_refused(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="no replay that can be shown"):
        read_recording(path)


def test_a_field_added_later_takes_its_default(path: Path) -> None:
    values = json.loads(path.read_text())
    del values["events"][2]["record"]["strategy"]
    path.write_text(json.dumps(values))
    assert read_recording(path).cycles[0].record.strategy == "chain"
    del values["events"][2]["record"]["accepted"]
    path.write_text(json.dumps(values))
    with pytest.raises(RecordingError, match=r"record\.accepted is missing"):
        read_recording(path)


def test_equal_tokens_are_counted_on_from_where_one_was() -> None:
    assert equal_from([1, 2, 3], [1, 2, 3, 4], 0) == 3
    assert equal_from([1, 2, 3], [1, 9, 3], 0) == 1
    assert equal_from([1, 2, 3], [1, 9, 3], 2) == 1
    assert equal_from([1, 2], [1, 2, 3], 2) == equal_from([], [1], 0) == 0


def test_a_comparison_claims_identity_only_for_whole_equal_replies() -> None:
    whole = Comparison(9, None, 9, 9, 3.0, 1.5)
    assert whole.identical and whole.speed_up == 2.0
    stopped = replace(whole, stopped=True)
    assert not stopped.identical and stopped.speed_up is None
    assert not replace(whole, difference=4).identical and replace(whole, difference=4).speed_up is None


def test_given_tokens_are_part_of_the_recording_and_come_first(tmp_path: Path) -> None:
    events: tuple[Event, ...] = (Opening((5, 6), (" given", " too")), *recording().events)
    made = recording(events=events, times=event_times(events))
    write_recording(tmp_path / "a.json", made)
    read = read_recording(tmp_path / "a.json")
    assert read.events == events and read.text.startswith(" given too one zwei")
    assert joined_ids(read.events)[:3] == [5, 6, 100]
    assert read.statistics == recording().statistics, "no cycle made them"
    for bad in ((*recording().events[:2], *events), (Opening((5, 6), (" given",)), *recording().events)):
        write_recording(tmp_path / "b.json", recording(events=bad, times=event_times(bad)))
        with pytest.raises(RecordingError, match=r"opening in its event \d+ contradicts itself"):
            read_recording(tmp_path / "b.json")
