"""Chunkers to play with: pick a text and two methods, move their sliders, and see at once what that does to the chunks.

For whoever wants a feeling for a method before they read its code: the coloured chunks, their number and sizes, what
they repeat, and which of them a question finds, for two methods on the same passage. It is made of ipywidgets, and runs
in a notebook or, by Voila, alone (`python -m chunklab explore`); where widgets do not run, as on GitHub, its output
is a picture of how it began. Cost: that of `explorer_picture`, and one message to the browser.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

from ipywidgets import HTML, Combobox, Dropdown, FloatSlider, HBox, IntSlider, Layout, Textarea, VBox, Widget

import chunklab
from chunklab.chunk import check_text
from chunklab.corpus import Question
from chunklab.explorer_picture import METHODS, SHOWN, Choice, Picture, picture

GIVEN, PASTE, NOVELLA = "the text given", "a text of your own", "the_bell_that_waited.txt"
_NUMBER, _STEP = count(1), 50


def explore(text: str | None = None) -> Explorer:
    """Open the explorer: two methods side by side on a text, with sliders.

    Args:
        text: what to cut; the course's novella by default. Others can be picked, or pasted, there.

    Returns:
        A widget, for the last line of a cell.

    Raises:
        ValueError: a text that is not a str.

    >>> explore("The keeper wound the clock. It was late.")
    A · fixed characters: 1 chunk of 40 characters
      0  0–40  'The keeper wound the clock. It was late.'
    B · recursive: 1 chunk of 40 characters
      0  0–40  'The keeper wound the clock. It was late.'
    """
    return Explorer(text)


class _Panel(VBox):
    """A method and the widgets of its settings; what was set before is there when a method is picked again."""

    def __init__(self, letter: str, method: str, changed: Any) -> None:
        self._changed, self._settings = changed, dict[str, dict[str, Widget]]()
        self._letter = letter
        self.method = Dropdown(options=list(METHODS), value=method, **_look(f"method {letter}"))
        self.method.observe(self._pick, "value")
        super().__init__(layout=Layout(flex="1 1 300px", min_width="0"))
        self._pick(None)

    def _pick(self, change: Any) -> None:
        method = self.method.value
        if method not in self._settings:
            settings = METHODS[method][1].items()
            about = getattr(chunklab, METHODS[method][0]).__doc__
            self._settings[method] = {name: _widget(name, about, *allowed) for name, allowed in settings}
            for widget in self._settings[method].values():
                widget.observe(self._changed, "value")
        self.children = [self.method, *self._settings[method].values()]
        if change:
            self._changed(change)

    @property
    def name(self) -> str:
        """What the method is called where both are shown."""
        return f"{self._letter} · {self.method.value}"

    @property
    def choice(self) -> Choice:
        """The method as it is set."""
        settings = self._settings[self.method.value]
        return Choice(self.method.value, tuple((name, widget.value) for name, widget in settings.items()))


def _widget(name: str, about: str, *allowed: Any) -> Widget:
    """A slider for a number, a list to pick from for names; hovering says what the chunker says of the argument."""
    said = re.search(rf"^ +{name}: (.+(?:\n {{12,}}.+)*)", about, re.M)
    look = _look(name) | {"tooltip": " ".join(said[1].split()) if said else name}
    if isinstance(allowed[0], str):
        return Dropdown(options=allowed, **look)
    low, high, step, value = allowed
    slider = IntSlider if isinstance(low, int) else FloatSlider
    return slider(min=low, max=high, step=step, value=value, **look)


def _look(name: str, flex: str | None = None) -> dict[str, Any]:
    """What each widget is made with: its label, and as much of the width as there is."""
    layout = Layout(width="auto", flex=flex)
    return {"description": name, "tooltip": name, "style": {"description_width": "initial"}, "layout": layout}


def _row(widgets: list[Widget]) -> HBox:
    """Widgets side by side; below each other on a narrow page."""
    return HBox(widgets, layout=Layout(flex_flow="row wrap", grid_gap="0 1.5em"))


def _course() -> tuple[dict[str, str], list[Question]]:
    """The texts of the course and the questions about them; none where the package was installed without."""
    try:
        return chunklab.load_corpus(), chunklab.load_questions()
    except FileNotFoundError:
        return {}, []


class Explorer(VBox):
    """The widget that `explore` opens."""

    def __init__(self, text: str | None = None) -> None:
        texts, self._questions = _course()
        if text is None:
            texts = dict(sorted(texts.items(), key=lambda item: item[0] != NOVELLA))
        else:
            name = next((name for name, known in texts.items() if known == check_text(text)), GIVEN)
            texts = {name: check_text(text)} | texts
        # An id of our own: a random one would make each run of a notebook another file.
        super().__init__(model_id=f"chunklab-explorer-{next(_NUMBER)}")
        self._texts = texts
        self.text = Dropdown(options=[*texts, PASTE], **_look("text"))
        self.pasted = Textarea(placeholder="Paste a text here", rows=5, **_look("paste"))
        self.panels = [_Panel("A", "fixed characters", self._show), _Panel("B", "recursive", self._show)]
        asked = {"placeholder": "Ask, and the chunks that are found light up", "continuous_update": False}
        self.question = Combobox(**asked, **_look("question", "3 1 300px"))
        self.k = IntSlider(value=3, min=1, max=10, **_look("hits", "1 1 220px"))
        self.numbers, self.passage = HTML(), HTML()
        self.place = IntSlider(step=_STEP, **_look("show from", "3 1 300px"))
        self.hit = Dropdown(**_look("go to", "1 1 220px"))
        asking, looking = _row([self.question, self.k]), _row([self.place, self.hit])
        self.children = [self.text, self.pasted, _row(self.panels), asking, self.numbers, looking, self.passage]
        self._quiet = False
        for widget in (self.text, self.pasted, self.question, self.k, self.place, self.hit):
            widget.observe(self._show, "value")
        self._show(None)

    def picture(self, times: bool = True) -> Picture:
        """What is to be shown as all is set now."""
        document, question = self.text.value, self.question.value
        known = next((q.spans for q in self._questions if q.question == question), ())
        gold = tuple((span.start, span.end) for span in known if span.document == document)
        choices = {panel.name: panel.choice for panel in self.panels}
        return picture(self._document(), choices, self.place.value, question, self.k.value, gold, times)

    def _document(self) -> str:
        return self._texts.get(self.text.value, self.pasted.value)

    def _show(self, change: Any) -> None:
        if self._quiet:
            return
        owner, self._quiet = change and change.owner, True  # what is set below is not a change of the learner's
        try:
            if owner in (None, self.text, self.pasted):
                self._show_text()
            if owner is self.hit and self.hit.index:
                self._go_to(self.hit.value)
            if "minilm" in [value for panel in self.panels for _, value in panel.choice.settings]:
                self.numbers.value = "<i>Embedding …</i>"  # seconds, the first time
            made = self.picture()
            options = [("a hit …", -1), *made.hits.items()]
            if list(self.hit.options) != options:
                self.hit.options = options  # and the first is chosen
            elif owner is self.place:
                self.hit.index = 0
            if owner is self.question and made.hits:
                self.hit.index = 1
                self._go_to(self.hit.value)
                made = self.picture()
            self.hit.layout.display = None if made.hits else "none"
        finally:
            self._quiet = False
        # As wide as the page is, and no wider for the sake of what is inside.
        fitting = '<div style="width:0;min-width:100%">{}</div>'.format
        self.numbers.value, self.passage.value = fitting(made.numbers), fitting(made.view.html)

    def _show_text(self) -> None:
        """Make ready for another text: its beginning, its questions."""
        self.pasted.layout.display = None if self.text.value == PASTE else "none"
        here = [q.question for q in self._questions if {span.document for span in q.spans} == {self.text.value}]
        self.question.options = here
        self.place.value, self.place.max = 0, max(1, len(self._document()) - 1)

    def _go_to(self, hit: int) -> None:
        # A slider in a browser comes back with a place on one of its steps, as if it had been moved.
        self.place.value = max(0, hit - SHOWN // 10) // _STEP * _STEP

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget; beside it, for where none runs, a picture."""
        made = self.picture(times=False)
        note = "A picture of the explorer: run this cell to move its sliders."
        page = f'<div style="font-size:12px;opacity:.75">{note}</div>{made.numbers}{made.view.html}'
        return super()._repr_mimebundle_(**kwargs) | {"text/plain": made.view.plain, "text/html": page}

    def __repr__(self) -> str:
        return self.picture(times=False).view.plain
