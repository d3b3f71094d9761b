from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.document import Document, Line, Position, PositionEncoding, split_lines
from apply_server.errors import UnsupportedEncoding

ENDINGS = ("\n", "\r\n", "\r")
ODD = "a é\t😀中\x0c\x0b\u2028\u2029\x85\x1c\u0301"
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
texts = st.text(st.sampled_from(ODD + "\r\n"), max_size=40)


@given(texts)
@settings(deadline=None)
def test_lines_rebuild_the_text_and_end_at_lf_crlf_and_cr_only(text: str) -> None:
    lines = split_lines(text)
    assert "".join(line.text + line.eol for line in lines) == text
    assert all(line.eol in ENDINGS for line in lines[:-1])
    assert not any(character in line.text for line in lines for character in "\r\n")
    assert not lines or lines[-1].eol or lines[-1].text


def test_each_line_keeps_its_own_ending() -> None:
    assert split_lines("a\rb\r\nc\n\n\rd") == (
        Line("a", "\r"),
        Line("b", "\r\n"),
        Line("c", "\n"),
        Line("", "\n"),
        Line("", "\r"),
        Line("d", ""),
    )
    assert split_lines("") == ()


@given(st.binary(max_size=60), st.sampled_from([None, "cp1252", "utf-16", "shift_jis", "utf-7"]))
@settings(deadline=None, max_examples=400)
def test_bytes_come_back_or_are_refused(data: bytes, encoding: str | None) -> None:
    try:
        document = Document.from_bytes(data, encoding)
    except UnsupportedEncoding:
        return
    assert document.encode(document.text) == data


@given(
    texts,
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]),
)
@settings(deadline=None)
def test_every_unicode_encoding_round_trips_with_its_bom(text: str, encoding: str) -> None:
    data = f"\ufeff{text}".encode(encoding)
    document = Document.from_bytes(data)
    assert (document.text, document.encoding) == (text, encoding)
    assert document.bom == "\ufeff".encode(encoding)
    assert document.encode(f"{text}\nmore") == f"\ufeff{text}\nmore".encode(encoding)


def test_utf8_without_a_bom_is_the_default_and_gets_none() -> None:
    document = Document.from_bytes("é = 😀\r\n".encode())
    assert (document.encoding, document.bom) == ("utf-8", b"")
    assert document.encode("ü") == "ü".encode()


def test_an_explicit_encoding_is_used() -> None:
    document = Document.from_bytes(b"na\xefve \x80\r\n", "cp1252")
    assert document.text == "naïve €\r\n"
    assert document.encode("“x”") == b"\x93x\x94"


@pytest.mark.parametrize(
    ("name", "data", "codec"),
    [
        ("utf-8-sig", codecs.BOM_UTF8 + b"a", "utf-8"),
        ("utf-16", codecs.BOM_UTF16_BE + b"\0a", "utf-16-be"),
        ("UTF16", b"a\0", "utf-16-le"),
        ("utf-32", b"a\0\0\0", "utf-32-le"),
    ],
)
def test_an_encoding_name_settles_byte_order_and_bom(name: str, data: bytes, codec: str) -> None:
    document = Document.from_bytes(data, name)
    assert (document.text, document.encoding, document.encode("a")) == ("a", codec, data)


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        ("# -*- coding: latin-1 -*-\n", "iso8859-1"),
        ("#!/bin/sh\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        ("<?xml version='1.0' encoding='windows-1250'?>\n", "cp1250"),
        ('<!doctype html>\n<meta charset="windows-1251">\n', "cp1251"),
    ],
)
def test_a_file_that_is_not_utf8_may_name_its_encoding(head: str, codec: str) -> None:
    data = head.encode() + b"x = '\xe9'\n"
    document = Document.from_bytes(data)
    assert document.encoding == codec
    assert document.encode(document.text) == data


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (b"# -*- coding: latin-1 -*-\n", "iso8859-1"),
        (b"# coding: utf-8\n", "utf-8"),
        (b"# coding: hex\n", "utf-8"),
        (b"# coding: utf-16\n", "utf-8"),
        (b"x = 1\n", "utf-8"),
    ],
)
def test_what_is_added_to_a_file_in_ascii_is_written_as_it_declares(
    head: bytes, codec: str
) -> None:
    document = Document.from_bytes(head)
    assert document.encoding == codec
    assert document.encode(document.text + "é\n") == head + "é\n".encode(codec)


def test_a_declaration_does_not_overrule_valid_utf8() -> None:
    assert Document.from_bytes("# coding: latin-1\né".encode()).encoding == "utf-8"


@pytest.mark.parametrize(
    ("data", "encoding", "words"),
    [
        (b"caf\xe9\n", None, "isn't valid utf-8"),
        (b"f = open(p, encoding='latin-1')\ncaf\xe9\n", None, "isn't valid utf-8"),
        (b"# coding: no-such-thing\ncaf\xe9\n", None, "isn't valid utf-8"),
        (b"a\0b", None, "NUL"),
        ("wide".encode("utf-16-le"), None, "NUL"),
        (b"a", "no-such-thing", "no encoding named"),
        (b"a", "base64", "can't decode"),
        (b"a", "bad\0name", "no encoding named"),
        (codecs.BOM_UTF16_LE + b"\0\xd8", None, "utf-16-le"),
        # Bytes that mean a character which is written in another way.
        (b"+AGE-", "utf-7", "change its bytes"),
    ],
)
def test_what_would_not_survive_is_refused(data: bytes, encoding: str | None, words: str) -> None:
    with pytest.raises(UnsupportedEncoding, match=words) as caught:
        Document.from_bytes(data, encoding)
    assert caught.value.remedy
    assert caught.value.remedy.setting == "encoding"


def test_characters_that_the_encoding_lacks_are_named() -> None:
    document = Document.from_bytes(b"x\n", "latin-1")
    with pytest.raises(UnsupportedEncoding) as caught:
        document.encode("é€ 中€\n")
    assert caught.value.details == {"characters": ["'€' (U+20AC)", "'中' (U+4E2D)"]}
    assert "'€' (U+20AC), '中' (U+4E2D)" in caught.value.message


def test_a_look_alike_is_not_written_instead() -> None:
    document = Document.from_bytes("日".encode("shift_jis"), "shift_jis")
    with pytest.raises(UnsupportedEncoding, match="U\\+00A5"):
        document.encode("¥100")  # the codec would write a backslash


def test_a_result_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(UnsupportedEncoding, match="NUL"):
        Document.from_bytes(b"x\n").encode("x\0\n")


def test_the_view_hides_endings_but_not_the_final_newline() -> None:
    assert Document.from_text("a\r\nb\rc\n").view() == "a\nb\nc\n"
    assert Document.from_text("a\r\n\r\nb").view() == "a\n\nb"
    assert Document.from_text("").view() == ""


@pytest.mark.parametrize(
    ("text", "eol"), [("a\r\nb\nc\r\n", "\r\n"), ("a\rb\n", "\r"), ("a", "\n"), ("", "\n")]
)
def test_the_dominant_ending(text: str, eol: str) -> None:
    assert Document.from_text(text).dominant_eol() == eol


@given(texts, st.data())
@settings(deadline=None, max_examples=300)
def test_positions_and_offsets_are_inverse(text: str, data: st.DataObject) -> None:
    document = Document.from_text(text)
    offset = data.draw(st.integers(0, len(text)))
    encoding = data.draw(st.sampled_from(ENCODINGS))
    inside_eol = text[offset - 1 : offset + 1] == "\r\n"
    back = document.offset(document.position(offset, encoding), encoding)
    assert back == offset - inside_eol


@pytest.mark.parametrize(
    ("encoding", "widths"), [("utf-8", (2, 4, 3)), ("utf-16", (1, 2, 1)), ("utf-32", (1, 1, 1))]
)
def test_code_units_of_each_encoding(encoding: PositionEncoding, widths: tuple[int, ...]) -> None:
    document = Document.from_text("x\né😀中\n")
    units = 0
    for index, width in enumerate(widths):
        assert document.position(2 + index, encoding) == Position(1, units)
        for inside in range(width):
            assert document.offset(Position(1, units + inside), encoding) == 2 + index
        units += width
    assert document.offset(Position(1, units), encoding) == 5


def test_positions_outside_are_clamped() -> None:
    document = Document.from_text("ab\r\nc")
    assert document.offset(Position(0, 99), "utf-16") == 2
    assert document.offset(Position(1, 99), "utf-16") == 5
    assert document.offset(Position(9, 0), "utf-16") == 5
    assert document.offset(Position(-1, 3), "utf-16") == 0
    assert document.position(3, "utf-16") == Position(0, 2)
    assert document.position(99, "utf-16") == Position(1, 1)
    assert Document.from_text("a\n").position(2, "utf-16") == Position(1, 0)
    assert Document.from_text("").position(0, "utf-16") == Position(0, 0)


def test_an_editors_lone_surrogate_is_one_unit_and_cannot_be_written() -> None:
    document = Document.from_text("\ud83dx")
    assert document.position(1, "utf-16") == Position(0, 1)
    with pytest.raises(UnsupportedEncoding, match="U\\+D83D"):
        document.encode(document.text)
