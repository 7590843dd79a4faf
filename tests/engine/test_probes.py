"""Probes of card and computer: figures, missing ones with their reason, and drivers that fail at any moment."""

from __future__ import annotations

import logging
import os

import pytest

from engine.probes import nvml
from engine.probes.host import FIRST, HostProbe
from engine.probes.nvml import NvmlProbe
from engine.probes.reading import CardProbe, Measure, NoProbe
from nvml_stub import CARD, NvmlStub

MISMATCH, LOST, NOT_SUPPORTED, NO_PERMISSION, NO_LIBRARY, NO_DRIVER = 18, 15, 3, 4, 12, 9


@pytest.fixture
def stub() -> NvmlStub:
    return NvmlStub()


def test_the_figures_of_a_card(stub: NvmlStub) -> None:
    reading = NvmlProbe(stub).read(CARD, bus=True)
    assert (reading.name, reading.lost) == ("Test card", False)
    assert (reading.total, reading.used, reading.own) == tuple(Measure(n * 2.0**30) for n in (12, 5, 3))
    assert reading.busy.value == pytest.approx(0.47)
    assert (reading.received.value, reading.sent.value) == (2_048_000, 2_048_000)
    assert (reading.celsius.value, reading.watts.value) == (61, pytest.approx(180))


def test_the_bus_is_left_alone_unless_asked_for(stub: NvmlStub) -> None:
    reading = NvmlProbe(stub).read(CARD, bus=False)
    assert reading.received == reading.sent == Measure(None, nvml.NO_BUS)
    assert "nvmlDeviceGetPcieThroughput" not in stub.calls


def test_an_instance_of_a_card_is_found_and_lacks_its_load_only(stub: NvmlStub) -> None:
    stub.mig = True
    stub.failing = {"nvmlDeviceGetUtilizationRates": NOT_SUPPORTED}
    reading = NvmlProbe(stub).read(CARD, bus=False)
    assert reading.used.value == 5 * 2**30
    assert reading.busy == Measure(None, "This card does not tell it.") and not reading.lost


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetMemoryInfo", "used"),
        ("nvmlDeviceGetMemoryInfo", "total"),
        ("nvmlDeviceGetUtilizationRates", "busy"),
        ("nvmlDeviceGetTemperature", "celsius"),
        ("nvmlDeviceGetPowerUsage", "watts"),
        ("nvmlDeviceGetPcieThroughput", "received"),
        ("nvmlDeviceGetComputeRunningProcesses", "own"),
    ],
)
def test_a_missing_field_is_none_with_a_reason_and_the_others_stay(stub: NvmlStub, function: str, field: str) -> None:
    stub.failing = {function: NO_PERMISSION}
    reading = NvmlProbe(stub).read(CARD, bus=True)
    assert getattr(reading, field) == Measure(None, "The driver tells it to administrators only.")
    known = [getattr(reading, name).value for name in ("used", "busy", "celsius", "watts", "received", "own")]
    assert sum(value is not None for value in known) >= 4


@pytest.mark.parametrize(("own", "pid"), [(None, os.getpid()), (2**30, 2)])
def test_this_programs_share_may_be_unknown(stub: NvmlStub, own: int | None, pid: int) -> None:
    stub.own, stub.pid = own, pid
    assert NvmlProbe(stub).read(CARD, bus=False).own == Measure(None, nvml.OWN_UNKNOWN)


@pytest.mark.parametrize("number", [NO_LIBRARY, NO_DRIVER, MISMATCH])
def test_a_library_that_does_not_begin_costs_figures_and_one_line(
    stub: NvmlStub, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    stub.init_error = number
    probe = NvmlProbe(stub)
    with caplog.at_level(logging.WARNING):
        readings = [probe.read(CARD, bus=True) for _ in range(3)]
    assert all(reading.lost and reading.used == Measure(None, nvml.REASONS[number]) for reading in readings)
    assert [record.getMessage() for record in caplog.records] == [f"No figures of the card: {nvml.REASONS[number]}"]
    probe.rest()
    assert "nvmlShutdown" not in stub.calls  # closing what never opened is an error of its own


@pytest.mark.parametrize("number", [LOST, MISMATCH, 1, 16])
def test_a_card_lost_in_mid_session_comes_back(stub: NvmlStub, number: int, caplog: pytest.LogCaptureFixture) -> None:
    probe = NvmlProbe(stub)
    assert not probe.read(CARD, bus=False).lost
    with caplog.at_level(logging.WARNING), stub.failing_with(number):
        assert probe.read(CARD, bus=False).lost
        assert stub.open == 0
        assert probe.read(CARD, bus=False).lost
    assert len(caplog.records) == 1
    assert probe.read(CARD, bus=False).used.value == 5 * 2**30
    probe.rest()
    assert stub.open == 0


def test_losing_it_again_is_told_again(stub: NvmlStub, caplog: pytest.LogCaptureFixture) -> None:
    probe = NvmlProbe(stub)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with stub.failing_with(LOST):
                probe.read(CARD, bus=False)
            probe.read(CARD, bus=False)
    assert len(caplog.records) == 2


def test_failing_at_the_end_harms_nothing(stub: NvmlStub) -> None:
    probe = NvmlProbe(stub)
    probe.read(CARD, bus=False)
    stub.shutdown_error = 999
    probe.rest()
    probe.rest()
    assert stub.calls.count("nvmlShutdown") == 1


def test_an_unknown_card_is_told(stub: NvmlStub, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        reading = NvmlProbe(stub).read("99999999-2222-3333-4444-555555555555", bus=False)
    assert reading.lost and reading.total.reason == nvml.REASONS[nvml.NOT_FOUND]


def test_the_real_library_either_answers_or_says_why(caplog: pytest.LogCaptureFixture) -> None:
    probe = NvmlProbe()
    with caplog.at_level(logging.WARNING):
        reading = probe.read(CARD, bus=True)
        probe.rest()
    assert reading.lost and reading.used.value is None and reading.used.reason.endswith(".")


def test_no_probe_has_no_figures() -> None:
    probe: CardProbe = NoProbe("There is none.")
    reading = probe.read(CARD, bus=True)
    probe.rest()
    fields = (reading.total, reading.used, reading.own, reading.busy, reading.received, reading.celsius, reading.watts)
    assert set(fields) == {Measure(None, "There is none.")}


def test_the_computer_and_this_process() -> None:
    probe = HostProbe()
    first = probe.read()
    assert first.busy == first.own_cores == Measure(None, FIRST)
    second = probe.read()
    assert second.total.value and second.available.value and second.own.value and second.own_mapped.value is not None
    assert second.own_mapped.value <= second.own.value < second.total.value
    assert second.busy.value is not None and 0 <= second.busy.value <= 1
    assert second.own_cores.value is not None and second.own_cores.value >= 0
    probe.rest()
    assert probe.read().busy.reason == FIRST
