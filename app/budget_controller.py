"""The memory budget: forecasts while its slider moves, the move of the model's parts, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.host import EngineHost
from app.live_settings import LiveSettings
from app.model_controller import ModelController
from app.outlooks import Outlooks, Question
from app.states import HostState
from engine.records import LoadProgress

if TYPE_CHECKING:
    from app.ui.budget_editor import BudgetEditor  # imports numpy, for which the first paint does not wait

GB = 10**9


class BudgetController(QObject):
    """told(sentence, reload) of a move that failed, for where the settings page cannot be seen."""

    told = Signal(str, bool)

    def __init__(
        self, host: EngineHost, settings: LiveSettings, models: ModelController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._host, self._settings, self._models = host, settings, models
        self.outlooks = Outlooks(host, self)
        self._editor: BudgetEditor | None = None
        self._loading_with = self._in_force = self._asked = settings.current.budget_gb
        self._going_back = False
        self._yielded = ""
        settings.changed.connect(self._on_setting)
        models.loading.connect(self._on_loading)
        host.model_loaded.connect(self._on_loaded)
        host.model_gone.connect(self._on_gone)
        host.move_progress.connect(self._on_progress)
        host.moved.connect(self._on_moved)
        host.state_changed.connect(self._on_state)

    def serve(self, editor: BudgetEditor) -> None:
        """Answer this editor from now on."""
        self._editor = editor
        editor.moved.connect(self._ask)
        editor.shown.connect(self._ask_again)
        editor.load_again.connect(self._models.load_again)
        self.outlooks.answered.connect(editor.show_answer)
        if editor.isVisible():
            self._ask_again()

    @Slot(float)
    def _ask(self, budget_gb: float) -> None:
        current = self._settings.current
        budget = int(budget_gb * GB) if budget_gb else None
        self.outlooks.ask(Question(current.model, current.context or None, budget))

    @Slot()
    def _ask_again(self) -> None:
        """Of the budget that is set, where somebody can see the answer."""
        if self._editor is not None and self._editor.isVisible():
            self._ask(self._settings.current.budget_gb)

    @Slot(str, object)
    def _on_setting(self, name: str, value: object) -> None:
        if name == "budget_gb" and not self._going_back:
            if self._editor is not None:
                self._editor.show_note("")
            self._apply(self._settings.current.budget_gb)
        if name in ("budget_gb", "model", "context"):
            self._ask_again()

    def _apply(self, budget_gb: float) -> None:
        """Move the loaded model; without one, and during a load, the end of the next load sees to it."""
        if self._host.use_budget(int(budget_gb * GB) if budget_gb else None):
            self._asked = budget_gb

    @Slot(str)
    def _on_loading(self, _: str) -> None:
        self._loading_with = self._settings.current.budget_gb

    @Slot(object)
    def _on_loaded(self, _: object) -> None:
        self._in_force = self._loading_with
        if self._editor is not None:
            self._editor.show_progress(None)
            self._editor.show_note("")
        if self._settings.current.budget_gb != self._in_force:
            self._apply(self._settings.current.budget_gb)
        self._ask_again()

    @Slot()
    def _on_gone(self) -> None:
        if self._editor is not None:
            self._editor.show_progress(None)
        self._ask_again()

    @Slot(object)
    def _on_progress(self, progress: LoadProgress) -> None:
        if self._editor is not None:
            self._editor.show_progress(progress)

    @Slot(str, bool)
    def _on_moved(self, sentence: str, reload: bool) -> None:
        if self._editor is not None:
            self._editor.show_progress(None)
        if not sentence:
            self._in_force = self._asked
        elif not reload:
            self._go_back()
        if sentence and self._editor is not None:
            self._editor.show_note(sentence, reload=reload)
        if sentence and (self._editor is None or not self._editor.isVisible()):
            self.told.emit(sentence, reload)
        self._ask_again()

    def _go_back(self) -> None:
        """The engine has what it had: the setting says so too."""
        self._going_back = True
        try:
            self._settings.set("budget_gb", self._in_force)
        finally:
            self._going_back = False

    @Slot(object)
    def _on_state(self, state: HostState) -> None:
        if state is HostState.CLOSED:
            self.outlooks.close()
        elif not state.under_way:
            self._tell_of_pressure()
            self._ask_again()

    def _tell_of_pressure(self) -> None:
        """Parts gave way to other programs during a reply: said once."""
        offload = self._host.offload()
        sentence = "" if offload is None else offload.yielded or ""
        if sentence and sentence != self._yielded:
            self.told.emit(sentence, False)
        self._yielded = sentence
