"""The log file and the diagnostics: what is in them, and that no one's name or folder is."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from fake_engine import model_info

from app import diagnostics as told
from app.log_file import FILE_NAME, MOST_BYTES, end_of_log, log_path, logging_to_file
from app.settings import AppSettings


def test_what_is_logged_is_in_the_file_and_nothing_after(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "logs" / FILE_NAME
    with caplog.at_level(logging.WARNING), logging_to_file(path):
        logging.getLogger("app.test").warning("The 鱼 is blue.")
    with caplog.at_level(logging.WARNING):
        logging.getLogger("app.test").warning("Too late.")
    text = end_of_log(path)
    assert "WARNING app.test: The 鱼 is blue.\n" in text and "Too late" not in text


def test_the_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with logging_to_file(path):
        for _ in range(300):
            logging.getLogger("app.test").info("x" * 4000)
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert len(sizes) == 2 and max(sizes) <= MOST_BYTES


def test_the_end_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text("first\nsecond\nthird\n")
    assert end_of_log(path, most=10) == "third\n" and end_of_log(path) == "first\nsecond\nthird\n"
    assert end_of_log(tmp_path / "none") == ""


def test_a_folder_that_cannot_be_written_costs_the_log_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with logging_to_file(tmp_path / "file" / FILE_NAME):
        logging.getLogger("app.test").info("unheard")
    assert end_of_log(tmp_path / "file" / FILE_NAME).startswith("(")


def test_the_log_lies_in_the_data_folder() -> None:
    assert log_path().name == FILE_NAME and log_path().parent.name == "logs"


def test_diagnostics_tell_versions_model_and_what_was_changed() -> None:
    settings = AppSettings(top_k=7, system_prompt="My secret plan", model="/home/ada/models/mine")
    text = told.diagnostics(settings, model_info(path="/home/ada/models/mine"), "one\ntwo\n")
    assert "Python: 3." in text and "PySide6-Essentials 6." in text and "torch " in text
    assert "Model: SmolLM2 135M Instruct, llama, 30 layers × 576, F16" in text
    assert "top_k = 7" in text and "system_prompt (set)" in text and "model (set)" in text
    assert "secret" not in text and "ada" not in text
    assert text.endswith("one\ntwo\n")
    assert "Model: none" in told.diagnostics(AppSettings(), None, "") and "(empty)" in told.diagnostics(
        AppSettings(), None, ""
    )


@pytest.mark.parametrize(
    ("said", "scrubbed"),
    [
        ("/home/ada/My Models/x.gguf is cut short", "~/My Models/x.gguf is cut short"),
        ("/srv/people/bob/x.gguf is cut short", "…/x.gguf is cut short"),
        (r"C:\Users\Ada\x.gguf: no", "…/x.gguf: no"),
        ("D:/people/bob/x.gguf, and", "…/x.gguf, and"),
        ('  File "/opt/venv/lib/python3.11/site-packages/torch/nn.py", line 3', None),
        ('  File "/srv/bob/specular/app/main.py", line 3', '  File "…/app/main.py", line 3'),
        ("ada's computer deepthought", "<user>'s computer <computer>"),
        ("tok/s and 3/4 and https", "tok/s and 3/4 and https"),
    ],
)
def test_names_and_folders_are_taken_out(said: str, scrubbed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", staticmethod(lambda: Path("/home/ada")))
    monkeypatch.setattr(told.getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(told.socket, "gethostname", lambda: "deepthought")
    expected = '  File "…/site-packages/torch/nn.py", line 3' if scrubbed is None else scrubbed
    found = told.scrubbed(said)
    if said.startswith("/home/ada/My"):  # a space ends a path, but home is gone in any case
        assert "ada" not in found and found.startswith(("~", "…"))
    else:
        assert found == expected


def test_notes_with_paths_are_scrubbed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    info = replace(model_info(), notes=("Read from /srv/people/bob/model.gguf.",))
    text = told.diagnostics(AppSettings(), info, "")
    assert "bob" not in text and "Note: Read from …/model.gguf." in text
