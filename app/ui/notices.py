"""What the user is told above the composer, and what the button beside it does."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMessageBox, QWidget

from app.starter_fetch import StarterFetch
from app.ui.conversation_view import ConversationView


class Notices(QObject):
    """One banner at a time. load_starter() when its button asks for the starter model, load_again() for the present,
    shortcut_wanted() for the desktop's menu, report_wanted() for what is left of a run that did not end well,
    restart_wanted() for another engine in place of one with a fault."""

    load_starter = Signal()
    load_again = Signal()
    shortcut_wanted = Signal()
    report_wanted = Signal()
    restart_wanted = Signal()

    def __init__(self, view: ConversationView, fetch: StarterFetch, window: QWidget) -> None:
        super().__init__(window)
        self._view = view
        self._fetch = fetch
        self._window = window
        self._details, self._of_engine = "", False
        self._action = ""
        view.banner_action_clicked.connect(self._on_action)
        fetch.running_changed.connect(self._on_fetching)
        fetch.failed.connect(self._on_fetch_failed)

    @Slot(str)
    def tell(self, sentence: str) -> None:
        """A sentence without anything to do."""
        self._show(sentence, "", "")

    @Slot(str, bool)
    def budget_refused(self, sentence: str, reload: bool) -> None:
        """A memory budget is not in force; `reload`: loading the model again would help."""
        self._show(sentence, self.tr("Load again") if reload else "", "again")

    @property
    def silent(self) -> bool:
        """Whether nothing is told at the moment."""
        return self._view.banner.isHidden()

    def offer_shortcut(self) -> None:
        """Ask whether the desktop's menu shall have Specular."""
        words = self.tr("Shall Specular be in the menu of your applications, and open models by a double click?")
        self._show(words, self.tr("Add it"), "shortcut")

    def offer_report(self, sentence: str) -> None:
        """The run before did not end well."""
        self._show(sentence, self.tr("Show the report"), "report")

    def failed_again(self, sentence: str, count: int) -> None:
        """An error that was shown before: its count, where it is still to be seen."""
        shown = self._view.banner.sentence()
        if not self.silent and self._action == "details" and shown.startswith(sentence):
            self._show(f"{sentence} (×{count})", self.tr("Details"), "details")

    def failed(self, sentence: str, details: str, *, offer_starter: bool = False, of_engine: bool = False) -> None:
        """An error; its traceback, if any, behind a button, or else the starter model where it was the first load.

        of_engine: the engine may be broken, and restarting it is offered with the traceback.
        """
        self._details, self._of_engine = details, of_engine
        if details:
            self._show(sentence, self.tr("Details"), "details")
        else:
            self._show(sentence, self.tr("Load the starter model") if offer_starter else "", "starter")

    @Slot()
    def no_model(self) -> None:
        """Something was sent without a model."""
        words = self.tr("No model is loaded. Your text is kept.")
        self._show(words, self.tr("Load the starter model"), "starter")

    @Slot()
    def starter_missing(self) -> None:
        """The starter model has not been fetched yet."""
        words = self.tr("The starter model is not on this computer yet. It is a download of 98 MB.")
        self._show(words, self.tr("Fetch the starter model"), "fetch")

    @Slot(bool)
    def _on_fetching(self, running: bool) -> None:
        if running:
            self._show(self.tr("Fetching the starter model (98 MB)…"), self.tr("Cancel"), "give up")
        else:
            self._view.hide_banner()

    @Slot(str)
    def _on_fetch_failed(self, sentence: str) -> None:
        self._show(sentence, self.tr("Try again"), "fetch")

    def _show(self, sentence: str, button: str, action: str) -> None:
        self._action = action
        self._view.show_banner(sentence, button or None)

    @Slot()
    def _on_action(self) -> None:
        action = self._action
        if action == "details":
            self._show_details()
        elif action == "again":
            self._view.hide_banner()
            self.load_again.emit()
        elif action == "report":
            self._view.hide_banner()
            self.report_wanted.emit()
        elif action == "shortcut":
            self._view.hide_banner()
            self.shortcut_wanted.emit()
        elif action == "starter":
            self._view.hide_banner()
            self.load_starter.emit()
        elif action == "fetch":
            self._fetch.start()
        elif action == "give up":
            self._fetch.give_up()
            self.starter_missing()

    def _show_details(self) -> None:
        box = QMessageBox(self._window)
        box.setIcon(QMessageBox.Icon.NoIcon)
        box.setWindowTitle(self.tr("Details"))
        box.setText(self.tr("This helps whoever looks into the fault."))
        box.setDetailedText(self._details)
        box.setStandardButtons(QMessageBox.StandardButton.Close)
        if self._of_engine:
            restart = box.addButton(self.tr("Restart the engine"), QMessageBox.ButtonRole.ActionRole)
            restart.clicked.connect(self.restart_wanted)
        box.open()
