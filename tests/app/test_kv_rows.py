"""The rows of the KV cache's figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_engine import kv_memory

from app.kv_rows import MEAN, NEVER, NO_PAGES, kv_rows
from engine.memory.report import KvMemory, PageOperations

PLAIN = replace(kv_memory(), page_bytes=0, pool=0, late=0, operations=())


def figures(report: KvMemory) -> dict[str, str | None]:
    return {row.name.english: row.figure for row in kv_rows(report)}


def test_every_figure_of_the_report_is_listed() -> None:
    found = figures(replace(kv_memory(), late=7, evicted=1234))
    assert found == {
        "Reserved": "512 MiB",
        "Whole context": "94 MiB",
        "Mapped": "3.0 MiB",
        "Used": "2.0 MiB",
        "Fragmentation": "1.0 MiB",
        "Pool": "1.0 MiB",
        "Page size": "1.0 MiB",
        "Conversations": "2",
        "Evicted": "1,234",
        "Pages late": "7",
        "Pages: create": "4 · 14.0 µs",
        "Pages: map": "3 · 3.0 µs",
        "Pages: unmap": "0",
    }


@pytest.mark.parametrize("name", ["Pool", "Page size", "Pages late"])
def test_a_plain_tensor_has_no_figures_of_pages(name: str) -> None:
    row = next(row for row in kv_rows(PLAIN) if row.name.english == name)
    assert (row.figure, row.help) == (None, NO_PAGES)
    assert figures(PLAIN)["Mapped"] == "3.0 MiB"


def test_an_operation_that_never_happened_has_no_mean() -> None:
    report = replace(kv_memory(), operations=(PageOperations("map", 0, 0.0), PageOperations("create", 2000, 0.1)))
    never, often = kv_rows(report)[-2:]
    assert (never.figure, never.help) == ("0", NEVER)
    assert (often.figure, often.help) == ("2,000 · 50.0 µs", MEAN)


def test_every_row_has_help() -> None:
    assert all(row.help.endswith(".") for report in (kv_memory(), PLAIN) for row in kv_rows(report))
