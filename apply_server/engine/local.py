"""The engine over a target in this process: prompt, decode, read the answer, edit the document.

Must not know which target it is, nor editors, terminals or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import Any, Generic, TypeVar

from apply_server.chat_template import ChatTemplate
from apply_server.decode.draft import Proposer
from apply_server.decode.loop import decode, prefill
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.session import Counters, Finish, Session, StopRule, check_cancelled
from apply_server.decode.speedup import CostTable
from apply_server.decode.target import TargetModel
from apply_server.document import Document
from apply_server.edits import rewrite
from apply_server.engine.base import Decoding, Done, EngineEvent, Prefilling, Report, Verified
from apply_server.engine.merging import predict
from apply_server.engine.partial import Confirmed
from apply_server.errors import ApplyError, DocumentTooLong, TruncatedOutput
from apply_server.prompt import Answer, Prompt, Task, build_prompt
from apply_server.propose.build import DraftSources
from apply_server.propose.draft_model import DraftingModel
from apply_server.propose.heads import DraftHeads
from apply_server.request import EditRequest
from apply_server.tokens import Tokenizer
from apply_server.view import ModelView

SlotT = TypeVar("SlotT")


@dataclass(frozen=True, slots=True)
class Model(Generic[SlotT]):
    """A target with everything that speaks its language.

    `context` is the most tokens that prompt and answer may have, `cost` what passes cost here,
    `dtype` the number type that the target computes in, for reports; `drafter` is a smaller model
    of the same language and `heads` guess from the target's hidden states, where they are.
    """

    target: TargetModel[SlotT]
    tokenizer: Tokenizer
    template: ChatTemplate
    profile: str
    eos: frozenset[int]
    context: int
    cost: CostTable
    dtype: str = ""
    drafter: DraftingModel[Any] | None = None
    heads: DraftHeads | None = None


@dataclass(frozen=True, slots=True)
class LocalEngine(Generic[SlotT]):
    """See Engine.

    `max_new` caps the answer (None derives the cap from file and edit), `max_file` the file; both
    in tokens. `sampling` says how the target chooses.
    """

    model: Model[SlotT]
    proposer: Callable[[DraftSources, CostTable], Proposer]
    max_new: int | None = None
    max_file: int | None = None
    sampling: Sampling = GREEDY

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        """See Engine.run."""
        view = ModelView.of(request.document)
        prompt = self.prompt(request)
        answer = self.answer(prompt)
        with self.session(prompt, answer, cancel) as session:
            for done in prefill(session, self.model.target):
                yield Prefilling(done, len(prompt.tokens))
            confirmed = Confirmed(view)
            for _ in decode(session, self.model.target):
                progress = _progress(self._report(session), len(prompt.source))
                yield progress
                yield from self._confirmed(confirmed, answer, session, progress)
        _check_complete(answer, session)
        edits, text = rewrite(request.document, view.restore(answer.text))
        yield Done(edits, text, self._report(session), output=tuple(session.output))

    def warm(
        self, document: Document, name: str, language: str, cancel: Event
    ) -> Iterator[Prefilling]:
        """See ModelEngine.warm."""
        task = Task(name, language, ModelView.of(document).text, instruction="", snippet="")
        model = self.model
        prompt = build_prompt(task, model.profile, model.tokenizer, model.template)
        for done in model.target.warm(prompt.tokens[: prompt.ahead]):
            yield Prefilling(done, prompt.ahead)
            check_cancelled(cancel)

    def _confirmed(
        self, confirmed: Confirmed, answer: Answer, session: Session[SlotT], progress: Decoding
    ) -> Iterator[Verified]:
        """What the last pass settled, where it settled anything."""
        before = confirmed.original_line
        edits = confirmed.feed(answer.lines_from(confirmed.lines))
        if answer.closed:
            edits += confirmed.finish()
        if edits or confirmed.original_line > before:
            yield Verified(
                confirmed.original_line,
                confirmed.result_line,
                edits,
                session.counters.target_passes,
                progress.tokens_per_s,
                confirmed.copied_share,
                progress.share,
            )

    def prompt(self, request: EditRequest) -> Prompt:
        """What the target is asked. Raises InvalidRequest where the profile can't say it."""
        task = task_of(request, ModelView.of(request.document))
        return build_prompt(task, self.model.profile, self.model.tokenizer, self.model.template)

    def answer(self, prompt: Prompt) -> Answer:
        """A reader of the answer to `prompt`, and the stop rule of its session."""
        return Answer(self.model.tokenizer.stream(), prompt.end, self.model.eos)

    @contextmanager
    def session(self, prompt: Prompt, stop: StopRule, cancel: Event) -> Iterator[Session[SlotT]]:
        """A session ready for prefill; its slot is closed in the end.

        Raises DocumentTooLong where prompt and answer don't fit the model.
        """
        limit = self.limit(prompt)
        slot = self.model.target.open(prompt.tokens, limit, self.sampling)
        try:
            sources = DraftSources(
                prompt.source,
                prompt.snippet,
                prompt.merged,
                (prompt.instruction,),
                prompt.tokens,
                limit,
            )
            proposer = self.proposer(sources, self.model.cost)
            cached = self.model.target.cached(slot)
            counters = Counters(prompt_tokens=len(prompt.tokens), cached_tokens=cached)
            yield Session(slot, proposer, stop, limit, cancel, counters)
        finally:
            self.model.target.close(slot)

    def _report(self, session: Session[SlotT]) -> Report:
        counted = asdict(session.counters)
        cost = sum(self.model.cost.cost(tokens) for tokens in counted.pop("blocks"))
        return Report(**counted, modelled_cost=cost)

    def limit(self, prompt: Prompt) -> int:
        """The most tokens an honest answer needs: the file, the edit twice, and room to spare.

        Less where the model's context ends before. Raises DocumentTooLong where the context, or the
        user's own cap, has no room for a file as long as this one.
        """
        file, asked = len(prompt.source), len(prompt.tokens)
        if self.max_file is not None and file > self.max_file:
            raise _too_long(file, self.max_file)
        generous = file + file // 4 + 2 * len(prompt.snippet) + 256
        limit = min(self.max_new or generous, self.model.context - asked)
        if limit >= file:
            return limit
        capped = self.max_new is not None and self.max_new < file
        needed, most = (file, self.max_new) if capped else (asked + file, self.model.context)
        raise _too_long(needed, most)


def _too_long(needed: int, most: int | None) -> DocumentTooLong:
    return DocumentTooLong(
        f"Needs about {needed} tokens; limit is {most}. Nothing was changed.",
        {"needed": needed, "limit": most},
    )


def task_of(request: EditRequest, view: ModelView) -> Task:
    """The request as a prompt says it, with the merge of its snippet where there is one."""
    task = Task(
        name=request.name,
        language=request.language_id,
        original=view.text,
        instruction=request.instruction,
        snippet=request.snippet_view,
    )
    try:
        merged = predict(request)
    except ApplyError:
        return task
    return replace(task, merged=view.answer(merged.lines))


def _check_complete(answer: Answer, session: Session[SlotT]) -> None:
    """Whether an empty answer was asked for is for the guards to say."""
    if answer.closed:
        return
    reason = "stopped before the end of the file"
    if session.finish is Finish.LIMIT:
        reason = f"reached its limit of {session.limit} tokens before the end of the file"
    raise TruncatedOutput(
        f"The model {reason}. Nothing was changed; try again with a clearer or smaller edit.",
        {"output_tokens": session.counters.output_tokens},
    )


def _progress(report: Report, expected: int) -> Decoding:
    share = min(1.0, report.output_tokens / max(1, expected))
    return Decoding(share, report.tokens_per_s, report.acceptance_rate)
