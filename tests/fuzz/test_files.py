"""Any bytes and any rewrite of them."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from apply_server.document import Document
from apply_server.edits import rewrite, unified_diff
from apply_server.errors import UnsupportedEncoding
from tests.fuzz.documents import CODECS, Code, arbitrary_bytes, code, encoded, texts
from tests.fuzz.invariants import check
from tests.fuzz.running import bounded, fuzzed


@fuzzed(examples=150, share=0.1)
@given(
    arbitrary_bytes,
    st.sampled_from((None, "utf-7", "hz", "utf-8-sig", "utf-16", *CODECS)),
    st.data(),
)
def test_a_rewrite_of_any_bytes_changes_what_it_says(data, encoding, more):
    try:
        document = Document.from_bytes(data, encoding)
    except UnsupportedEncoding:
        return
    assert document.encode(document.text) == data
    pieces = st.sampled_from([*(line.text for line in document.lines), "", "é", "new", "\ufeff"])
    ending = more.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    view = ending.join(more.draw(st.lists(pieces, max_size=8)))
    with bounded():
        edits, text = rewrite(document, view)
        check(document, edits, text)


@fuzzed(examples=60, share=0.05)
@given(code(), code(), st.data())
def test_a_rewrite_of_any_code_changes_what_it_says(one: Code, other: Code, more):
    data, encoding = encoded(more.draw, more.draw(texts(one.lines)))
    try:
        document = Document.from_bytes(data, encoding)
    except UnsupportedEncoding:
        assume(False)
    lines = list(document.line_texts())
    cut = more.draw(st.integers(0, len(lines)))
    view = more.draw(texts([*lines[:cut], *other.lines[:10], *lines[cut:]][: len(lines) + 3]))
    with bounded():
        edits, text = rewrite(document, view)
        check(document, edits, text)
        assert bool(unified_diff(document, text, "f")) == (text != document.text)
