"""Rates that are measured: plausible figures, and the defaults they replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.offload import measure_rates
from engine.offload.measure_rates import (
    LEAST_READ,
    PASS_SHARE,
    card_bandwidth,
    disk_rate,
    host_bandwidth,
    link_bandwidth,
    measured_rates,
)
from engine.offload.rates import default_rates


def test_memory_is_copied_at_a_rate_that_memory_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_rates, "HOST_COPY", 8 << 20)
    monkeypatch.setattr(measure_rates, "ROUNDS", 2)
    assert 1e8 < host_bandwidth(2) < 1e13


def test_what_was_measured_is_no_longer_noted_as_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_rates, "host_bandwidth", lambda: 50e9)
    before = default_rates("cpu")
    rates = measured_rates(before, "cpu")
    assert rates.device == PASS_SHARE * 50e9
    assert rates.draft / before.draft == pytest.approx(rates.device / before.device)
    assert rates.link == before.link
    assert [note.split(" is ")[0] for note in rates.notes()] == ["The disk"]
    assert len(before.notes()) == 2
    assert rates.measured(link=2e9).notes() == ()


def test_the_cpu_is_noted_only_where_it_counts() -> None:
    rates = default_rates("cuda")
    assert len(rates.notes()) == 2
    assert "The CPU" in rates.notes(host=True)[-1]


def test_files_are_read_at_a_rate_and_small_ones_tell_nothing(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(bytes(LEAST_READ))
    small.write_bytes(bytes(1000))
    (tmp_path / "empty").write_bytes(b"")
    rate = disk_rate([tmp_path / "empty", small, large])
    assert rate is not None and 1e6 < rate < 1e12
    assert disk_rate([small]) is None
    assert disk_rate([]) is None
    with pytest.raises(OSError, match="none"):
        disk_rate([tmp_path / "none"])


@pytest.mark.gpu
def test_a_cards_memory_is_faster_than_its_bus() -> None:
    memory, bus = card_bandwidth(), link_bandwidth()
    assert 1e9 < bus < memory < 1e14
    rates = measured_rates(default_rates("cuda"), "cuda")
    assert rates.notes() == ()
    assert rates.link == pytest.approx(bus, rel=0.5)
