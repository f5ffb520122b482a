"""The one error that is meant for the person at the controls."""

from __future__ import annotations


class BadInput(ValueError):
    """Something a person brought (a file, a formula, a setting) cannot be used.

    The message is one sentence that says what is wrong and what would be right; `field` names the
    knob or control that caused it, so that the sentence can be shown beside it.
    """

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field
