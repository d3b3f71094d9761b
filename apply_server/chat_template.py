"""A model's own chat template, rendered around our texts.

Must not know what the texts say. Our texts are tokenised apart from the template's, so the
template is rendered with placeholders and cut there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from apply_server.errors import ModelUnavailable

# A private-use character: in no template, and no template escapes, trims or splits it.
_USER = "\ue000"


class ChatTemplate:
    """A Jinja chat template, in the sandbox that transformers uses for it as well."""

    def __init__(self, source: str, specials: Mapping[str, str] | None = None) -> None:
        self.source = source
        self.specials = dict(specials or {})

    @classmethod
    def load(cls, folder: Path) -> ChatTemplate:
        """From `chat_template.jinja`, else from `tokenizer_config.json`.

        Raises ModelUnavailable where a model has none: it was not trained to take instructions.
        """
        config = _read_json(folder / "tokenizer_config.json")
        file = folder / "chat_template.jinja"
        source = file.read_text("utf-8") if file.is_file() else config.get("chat_template")
        if not isinstance(source, str):
            raise ModelUnavailable(
                f"The model in {folder} has no chat template, so it can't be told what to edit. "
                "Choose an instruction-tuned model."
            )
        specials = {
            key: value["content"] if isinstance(value, dict) else value
            for key, value in config.items()
            if key.endswith("_token") and isinstance(value, dict | str)
        }
        return cls(source, specials)

    def render(self, system: str) -> tuple[str, str]:
        """(what comes before the user's message, what comes between it and the answer).

        The system message is part of the first; a template without a system role gets it at the
        head of the user's message. Raises ModelUnavailable for a template that fails or loses the
        message.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": _USER}]
        try:
            text = self._render(messages)
        except Exception:  # templates raise whatever they like for a role they don't know
            text = ""
        if system not in text:  # others skip such a role without a word
            text = self._render_or_refuse([{"role": "user", "content": f"{system}\n\n{_USER}"}])
        before, found, between = text.partition(_USER)
        if not found:
            raise ModelUnavailable("The model's chat template drops the user's message.")
        return before, between

    def _render_or_refuse(self, messages: list[dict[str, str]]) -> str:
        try:
            return self._render(messages)
        except Exception as error:
            raise ModelUnavailable(f"The model's chat template fails: {error}") from error

    def _render(self, messages: list[dict[str, str]]) -> str:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        template = environment.from_string(self.source)
        return template.render(messages=messages, add_generation_prompt=True, **self.specials)


def _raise(message: str) -> None:
    raise ValueError(message)


def _read_json(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ModelUnavailable(f"{path} is not valid JSON: {error}") from error
    return content if isinstance(content, dict) else {}
