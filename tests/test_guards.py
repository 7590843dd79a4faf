"""The guards themselves: each kind of leak fails the test that caused it and names the line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

INNER_TESTS = """
import logging, os, threading
from PySide6.QtCore import QObject, QThread, QTimer
from PySide6.QtWidgets import QWidget

log = logging.getLogger("engine.somewhere")
kept = []

def test_thread_left(request):
    done = threading.Event()
    request.config.add_cleanup(done.set)
    threading.Thread(target=done.wait, name="left alone", daemon=True).start()  # here: thread

def test_thread_joined():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def test_qthread_left(qapp):
    kept.append(QThread())
    kept[-1].start()  # here: qthread

def test_qthread_ended(qapp):
    thread = QThread()
    thread.start()
    thread.quit()
    assert thread.wait(5000)

def test_qtimer_left(qapp):
    kept.append(QTimer())
    kept[-1].start(1000)  # here: qtimer

def test_qtimer_stopped(qapp):
    timer = QTimer()
    timer.start(1000)
    timer.stop()

def test_qtimer_of_a_closed_widget(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    QTimer(widget).start(1000)

def test_warning():
    log.warning("this was not %s", "expected")

def test_info():
    log.info("fine")

def test_expected_warning(caplog):
    with caplog.at_level(logging.WARNING):
        log.warning("expected")
    assert "expected" in caplog.text

def test_error_where_a_warning_is_expected(caplog):
    with caplog.at_level(logging.WARNING):
        log.error("worse than expected")

def test_debug_level_expects_no_warning(caplog):
    with caplog.at_level(logging.DEBUG):
        log.warning("not announced")

def test_data_folder(own_data_folder):
    assert os.environ["SPECULAR_DATA_DIR"] == str(own_data_folder)
    assert not os.listdir(own_data_folder)
"""

LEAVING = {
    "test_thread_left": "here: thread",
    "test_qthread_left": "here: qthread",
    "test_qtimer_left": "here: qtimer",
}
LOGGING = {
    "test_warning": "WARNING engine.somewhere: this was not expected",
    "test_error_where_a_warning_is_expected": "ERROR engine.somewhere: worse than expected",
    "test_debug_level_expects_no_warning": "WARNING engine.somewhere: not announced",
}
CLEAN = INNER_TESTS.count("def test_") - len(LEAVING) - len(LOGGING)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Output of one pytest run over `INNER_TESTS` with the guards of this project."""
    folder = tmp_path_factory.mktemp("inner")
    tests = Path(__file__).parent
    (folder / "conftest.py").write_text((tests / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_inner.py").write_text(INNER_TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--color=no", str(folder)],
        capture_output=True, text=True, cwd=folder, env=environment, timeout=100, check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


def section(report: str, test: str) -> str:
    """The part of the report about the teardown of one test."""
    head = f"ERROR at teardown of {test} "
    assert head in report, report
    return report.split(head, 1)[1].split("\n____", 1)[0]


@pytest.mark.parametrize(("test", "mark"), LEAVING.items())
def test_what_is_left_running_fails_and_is_named_by_its_line(report: str, test: str, mark: str) -> None:
    line = 1 + INNER_TESTS[: INNER_TESTS.index(mark)].count("\n")
    assert f"test_inner.py:{line} in {test}" in section(report, test)


@pytest.mark.parametrize(("test", "message"), LOGGING.items())
def test_a_log_record_nobody_expected_fails(report: str, test: str, message: str) -> None:
    assert message in section(report, test)


def test_clean_tests_pass(report: str) -> None:
    errors = len(LEAVING) + len(LOGGING)
    assert report.count("ERROR at teardown of") == errors
    assert f"{CLEAN + errors} passed, {errors} errors" in report
