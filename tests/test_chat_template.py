"""A model's template around our texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apply_server.chat_template import ChatTemplate
from apply_server.errors import ModelUnavailable
from tests.engine.support import CHATML

NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}[model]"
)
SKIPS_SYSTEM = (
    "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}[model]"
)


def test_the_template_is_cut_around_the_users_message() -> None:
    before, between = ChatTemplate(CHATML).render("Be careful.")
    assert before == "<|im_start|>system\nBe careful.<|im_end|>\n<|im_start|>user\n"
    assert between == "<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("source", [NO_SYSTEM, SKIPS_SYSTEM])
def test_without_a_system_role_its_message_heads_the_users(source: str) -> None:
    assert ChatTemplate(source).render("Be careful.") == ("[user]Be careful.\n\n", "[model]")


def test_a_template_that_trims_messages_is_cut_all_the_same() -> None:
    source = "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{% endfor %}[model]"
    assert ChatTemplate(source).render("S") == ("[system]S[user]", "[model]")


def test_blocks_leave_no_lines_as_in_transformers() -> None:
    source = (
        "{% for m in messages %}\n    {% if m.role == 'user' %}\nU\n{{ m.content }}\n"
        "    {% else %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}\nA"
    )
    assert ChatTemplate(source).render("S") == ("S\nU\n", "\nA")


def test_loop_controls_work_as_in_transformers() -> None:
    source = (
        "{% for m in messages %}{{ m.content }}"
        "{% if loop.last %}{% break %}{% endif %}|{% endfor %}"
    )
    assert ChatTemplate(source).render("S") == ("S|", "")


def test_special_tokens_are_the_models_own() -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    template = ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})
    assert template.render("S") == ("<s>S</s>", "</s>")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}", "drops"),
        ("{{ raise_exception('only tools') }}", "only tools"),
        ("{% for m in", "template"),
        ("{{ messages.__class__.__mro__ }}{{ messages[0].content }}", "unsafe"),
    ],
    ids=["drops the message", "always raises", "syntax error", "leaves the sandbox"],
)
def test_a_template_that_cannot_be_used_is_refused(source: str, reason: str) -> None:
    with pytest.raises(ModelUnavailable, match=reason):
        ChatTemplate(source).render("S")


def test_a_template_file_comes_before_the_configurations(tmp_path: Path) -> None:
    config = {"chat_template": "old", "eos_token": {"content": "</s>"}, "bos_token": "<s>"}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps(config | {"add_bos_token": True, "pad_token": None}), "utf-8"
    )
    assert ChatTemplate.load(tmp_path).source == "old"
    (tmp_path / "chat_template.jinja").write_text("new é", "utf-8")
    loaded = ChatTemplate.load(tmp_path)
    assert loaded.source == "new é"
    assert loaded.specials == {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no chat template"),
        ("{}", "no chat template"),
        ("[]", "no chat template"),
        ("{", "tokenizer_config.json is not valid JSON"),
    ],
)
def test_a_model_without_a_template_is_refused(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ModelUnavailable, match=reason):
        ChatTemplate.load(tmp_path)
