"""Tokenizers, models and engines small enough for tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from apply_server.chat_template import ChatTemplate
from apply_server.decode.draft import Draft, Proposer
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.speedup import CostTable
from apply_server.decode.target import Verdict
from apply_server.document import Document
from apply_server.engine.base import Decoding, Done, EngineEvent, Prefilling, Verified
from apply_server.engine.local import LocalEngine, Model
from apply_server.propose.build import DraftSources, build_proposer
from apply_server.request import EditRequest
from apply_server.target.scripted import ScriptedSlot, ScriptedTarget
from apply_server.tokens import TextStream, WordTokenizer
from tests.conftest import tiny_model

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
COST = CostTable.synthetic(15.0)
EOS = -1


def byte_backend() -> Tokenizer:
    """A tokenizer with one token a byte, and the special tokens after them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    return backend


def save_model(folder: Path, context: int = 2048, family: str = "llama") -> Path:
    """A random model that loads like a real one: weights, tokenizer and chat template."""
    backend = byte_backend()
    model = tiny_model(
        family,
        vocab_size=backend.get_vocab_size(),
        max_position_embeddings=context,
        eos_token_id=backend.token_to_id("<|im_end|>"),
        bos_token_id=None,
    )
    model.save_pretrained(folder)
    backend.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(CHATML, "utf-8")
    return folder


class Pieces:
    """A text stream over tokens whose texts are given, so any chunking can be tried."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = pieces

    def push(self, token: int) -> str:
        return self.pieces[token]


class EndingTokenizer(WordTokenizer):
    """The built-in tokenizer with an end-of-sequence token, EOS, that has no text."""

    def stream(self) -> TextStream:
        texts = super().stream()

        class Ending:
            def push(self, token: int) -> str:
                return "" if token == EOS else texts.push(token)

        return Ending()


@dataclass(slots=True)
class RecordingTarget:
    """A scripted target that remembers its slots and the sizes of its blocks.

    `before_pass` runs ahead of each pass.
    """

    script: ScriptedTarget
    before_pass: Callable[[], None] = lambda: None
    chunks: int = 0
    rooms: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    sampled: list[Sampling] = field(default_factory=list)
    opened: list[ScriptedSlot] = field(default_factory=list)
    closed: list[ScriptedSlot] = field(default_factory=list)

    @property
    def passes(self) -> int:
        return self.script.passes

    def open(self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY) -> ScriptedSlot:
        self.rooms.append(room)
        self.sampled.append(sampling)
        self.opened.append(self.script.open(prompt, room))
        return self.opened[-1]

    def cached(self, slot: ScriptedSlot) -> int:
        return self.script.cached(slot)

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        return iter(range(1, self.chunks + 1))

    def prefill(self, slot: ScriptedSlot) -> Iterator[int]:
        return iter(range(1, self.chunks + 1))

    def verify(self, batch: Sequence[tuple[ScriptedSlot, Draft]]) -> list[Verdict]:
        self.before_pass()
        self.blocks += (1 + len(draft) for _, draft in batch)
        return self.script.verify(batch)

    def commit(self, slot: ScriptedSlot, path: Sequence[int], pending: int) -> None:
        self.script.commit(slot, path, pending)

    def close(self, slot: ScriptedSlot) -> None:
        self.closed.append(slot)


@dataclass(slots=True)
class Bench:
    """An engine whose model answers with `answer`, and what is needed to look into it."""

    answer: str
    ended: bool = False
    kind: str = "auto"
    max_new: int | None = None
    context: int = 100_000
    tokenizer: EndingTokenizer = field(default_factory=EndingTokenizer)
    sources: list[DraftSources] = field(default_factory=list)
    target: RecordingTarget = field(init=False)

    def __post_init__(self) -> None:
        tokens = self.tokenizer.encode(self.answer)
        script = ScriptedTarget(lambda prompt: (*tokens, EOS) if self.ended else tokens)
        self.target = RecordingTarget(script)

    def engine(self) -> LocalEngine[ScriptedSlot]:
        template = ChatTemplate("{% for m in messages %}{{ m.content }}\n{% endfor %}")
        eos = frozenset({EOS})
        model = Model(self.target, self.tokenizer, template, "chat", eos, self.context, COST)
        return LocalEngine(model, self._proposer, self.max_new)

    def run(self, request: EditRequest, cancel: Event | None = None) -> list[EngineEvent]:
        return list(self.engine().run(request, cancel or Event()))

    def done(self, request: EditRequest) -> Done:
        last = self.run(request)[-1]
        assert isinstance(last, Done)
        return last

    def _proposer(self, sources: DraftSources, cost: CostTable) -> Proposer:
        self.sources.append(sources)
        return build_proposer(sources, cost, self.kind)


def request(
    original: str | bytes, instruction: str = "", snippet: str = "", name: str = "file.py"
) -> EditRequest:
    """A request for a file with this content."""
    data = original.encode() if isinstance(original, str) else original
    return EditRequest(Document.from_bytes(data), name, instruction, snippet)


def check_progress(events: Sequence[EngineEvent]) -> None:
    """Prefilling, then Decoding with Verified, then one Done; numbers that only grow and stay in
    range, and edits that make up the result.
    """
    order = {Prefilling: 0, Decoding: 1, Verified: 1, Done: 2}
    kinds = [order[type(event)] for event in events]
    assert kinds == sorted(kinds)
    assert kinds.count(2) == 1
    confirmed = [event for event in events if isinstance(event, Verified)]
    for one, other in itertools.pairwise(confirmed):
        assert one.original_line <= other.original_line
        assert one.result_line <= other.result_line
    read = [event.done for event in events if isinstance(event, Prefilling)]
    assert read == sorted(read)
    assert all(event.done <= event.total for event in events if isinstance(event, Prefilling))
    written = [event for event in events if isinstance(event, Decoding)]
    shares = [event.share for event in written]
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert all(0.0 <= event.acceptance_rate <= 1.0 for event in written)
    assert all(event.tokens_per_s >= 0.0 for event in written)
