"""Snippets with markers: one kind of edit a test, several languages each."""

from __future__ import annotations

import pytest

from apply_server.errors import AmbiguousTarget, AnchorNotFound
from tests.merge.support import applied, run

CHANGED_LINE = {
    "python": (
        "HOST = 'a'\nPORT = 80\nUSER = 'me'\n",
        "# ... existing code ...\nPORT = 8080\n# ... existing code ...\n",
        "HOST = 'a'\nPORT = 8080\nUSER = 'me'\n",
    ),
    "javascript": (
        "const host = 'a';\nconst port = 80;\nconst user = 'me';\n",
        "// ... existing code ...\nconst port = 8080;\n// ... existing code ...\n",
        "const host = 'a';\nconst port = 8080;\nconst user = 'me';\n",
    ),
    "lua": (
        "local host = 'a'\nlocal port = 80\nlocal user = 'me'\n",
        "-- ... existing code ...\nlocal port = 8080\n-- ... existing code ...\n",
        "local host = 'a'\nlocal port = 8080\nlocal user = 'me'\n",
    ),
    "yaml": (
        "host: a\nport: 80\nuser: me\n",
        "# ... existing code ...\nport: 8080\n# ... existing code ...\n",
        "host: a\nport: 8080\nuser: me\n",
    ),
    "css": (
        "a { color: red; }\nb { color: blue; }\np { margin: 0; }\n",
        "/* ... existing code ... */\nb { color: navy; }\n/* ... existing code ... */\n",
        "a { color: red; }\nb { color: navy; }\np { margin: 0; }\n",
    ),
    "html": (
        "<ul>\n  <li>One apple</li>\n  <li>Two pears</li>\n  <li>Three figs</li>\n</ul>\n",
        "<!-- existing code -->\n  <li>Two ripe pears</li>\n  <!-- existing code -->\n",
        "<ul>\n  <li>One apple</li>\n  <li>Two ripe pears</li>\n  <li>Three figs</li>\n</ul>\n",
    ),
}


@pytest.mark.parametrize("language", CHANGED_LINE)
def test_a_changed_line_without_neighbours_replaces_its_older_form(language):
    original, edit, expected = CHANGED_LINE[language]
    assert applied(original, edit, language) == expected


FIRST_AND_LAST = [
    ("a = 1\nb = 2\nc = 3\n", "a = 10\n# ... rest of the code ...\n", "a = 10\nb = 2\nc = 3\n"),
    ("a = 1\nb = 2\nc = 3\n", "# ... existing code ...\nc = 30\n", "a = 1\nb = 2\nc = 30\n"),
    ("one\ntwo\nthree\n", "# ... existing code ...\ntwo\nTHREE\n", "one\ntwo\nTHREE\n"),
    ("one\ntwo\n", "# ... existing code ...\ntwo\nthree\n", "one\ntwo\nthree\n"),
    ("one\ntwo\n", "zero\none\n# ... existing code ...\n", "zero\none\ntwo\n"),
]


@pytest.mark.parametrize(("original", "edit", "expected"), FIRST_AND_LAST)
def test_without_a_marker_the_snippet_reaches_the_files_edge(original, edit, expected):
    assert applied(original, edit, "text") == expected


APPENDED = {
    "python": (
        "def area(w, h):\n    return w * h\n",
        "# ... existing code ...\n\n\ndef edge(w, h):\n    return 2 * (w + h)\n",
        "def area(w, h):\n    return w * h\n\n\ndef edge(w, h):\n    return 2 * (w + h)\n",
    ),
    "javascript": (
        "const load = () => {\n  show(null);\n};\n",
        "// ... existing code ...\n\nconst save = () => {\n  show(null);\n};\n",
        "const load = () => {\n  show(null);\n};\n\nconst save = () => {\n  show(null);\n};\n",
    ),
    "rust": (
        "fn load() -> u8 {\n    1\n}\n",
        "// ... existing code ...\n\nfn save() -> u8 {\n    1\n}\n",
        "fn load() -> u8 {\n    1\n}\n\nfn save() -> u8 {\n    1\n}\n",
    ),
    "markdown": (
        "# Kit\n\nWords.\n\n## Setup\n\nRun it.\n",
        "<!-- ... existing content ... -->\n\n## Licence\n\nFree.\n",
        "# Kit\n\nWords.\n\n## Setup\n\nRun it.\n\n## Licence\n\nFree.\n",
    ),
    "toml": (
        '[tool]\nname = "a"\nlevel = 3\n',
        '# ... existing code ...\n\n[other]\nname = "a"\n',
        '[tool]\nname = "a"\nlevel = 3\n\n[other]\nname = "a"\n',
    ),
}


@pytest.mark.parametrize("language", APPENDED)
def test_new_things_at_the_end_take_nothing_away(language):
    original, edit, expected = APPENDED[language]
    result = run(original, edit, language)
    assert "".join(line + "\n" for line in result.lines) == expected
    assert result.unambiguous
    assert [hunk.end - hunk.start for hunk in result.hunks] == [0]


NEW_METHOD = {
    "java": (
        "class Box {\n    int low() {\n        return 1;\n    }\n}\n",
        "class Box {\n    // ... existing code ...\n\n    int high() {\n        return 2;\n"
        "    }\n}\n",
        "class Box {\n    int low() {\n        return 1;\n    }\n\n"
        "    int high() {\n        return 2;\n    }\n}\n",
    ),
    "python": (
        "class Box:\n    def low(self):\n        return 1\n\n\nclass Bag:\n    size = 3\n",
        "class Box:\n    # ... existing code ...\n\n    def high(self):\n        return 2\n\n\n"
        "# ... existing code ...\n",
        "class Box:\n    def low(self):\n        return 1\n\n    def high(self):\n"
        "        return 2\n"
        "\n\nclass Bag:\n    size = 3\n",
    ),
    "ruby": (
        "class Box\n  def low\n    1\n  end\nend\n\nclass Bag\nend\n",
        "class Box\n  # ... existing code ...\n\n  def high\n    2\n  end\nend\n\n"
        "# ... rest of file ...\n",
        "class Box\n  def low\n    1\n  end\n\n  def high\n    2\n  end\nend\n\nclass Bag\nend\n",
    ),
    "csharp": (
        "class Box\n{\n    int Low()\n    {\n        return 1;\n    }\n}\n",
        "class Box\n{\n    // ... existing code ...\n\n    int High()\n    {\n"
        "        return 2;\n    }\n}\n",
        "class Box\n{\n    int Low()\n    {\n        return 1;\n    }\n\n"
        "    int High()\n    {\n        return 2;\n    }\n}\n",
    ),
    "typescript": (
        "export class Box {\n  low() {\n    return 1;\n  }\n}\n\nexport const size = 3;\n",
        "// ... existing code ...\nexport class Box {\n  // ... existing code ...\n\n  high() {\n"
        "    return 2;\n  }\n}\n// ... existing code ...\n",
        "export class Box {\n  low() {\n    return 1;\n  }\n\n  high() {\n    return 2;\n  }\n}\n\n"
        "export const size = 3;\n",
    ),
}


@pytest.mark.parametrize("language", NEW_METHOD)
def test_a_new_method_goes_to_the_end_of_its_class(language):
    original, edit, expected = NEW_METHOD[language]
    assert applied(original, edit, language) == expected


NESTED = {
    "python": (
        "class A:\n    def run(self):\n        return 1\n\n\nclass B:\n    def run(self):\n"
        "        return 1\n",
        "# ... existing code ...\nclass B:\n    # ... existing code ...\n    def run(self):\n"
        "        return 2\n",
        "class A:\n    def run(self):\n        return 1\n\n\nclass B:\n    def run(self):\n"
        "        return 2\n",
    ),
    "java": (
        "class A {\n    int run() {\n        log(1);\n        return 1;\n    }\n}\n\nclass B {\n"
        "    int run() {\n        log(1);\n        return 1;\n    }\n}\n",
        "// ... existing code ...\nclass B {\n    int run() {\n        // ... existing code ...\n"
        "        return 2;\n    }\n}\n",
        "class A {\n    int run() {\n        log(1);\n        return 1;\n    }\n}\n\nclass B {\n"
        "    int run() {\n        log(1);\n        return 2;\n    }\n}\n",
    ),
    "go": (
        "type A struct {\n\tName string\n\tSize int\n}\n\ntype B struct {\n\tName string\n"
        "\tSize int\n}\n",
        "// ... existing code ...\ntype B struct {\n\tName string\n\tSize int64\n}\n",
        "type A struct {\n\tName string\n\tSize int\n}\n\ntype B struct {\n\tName string\n"
        "\tSize int64\n}\n",
    ),
    "yaml": (
        "web:\n  image: one\n  ports: 80\ndb:\n  image: one\n  ports: 90\n",
        "# ... existing code ...\ndb:\n  image: two\n  # ... existing code ...\n",
        "web:\n  image: one\n  ports: 80\ndb:\n  image: two\n  ports: 90\n",
    ),
    "toml": (
        '[first]\nversion = "1"\n\n[second]\nversion = "1"\n',
        '# ... existing code ...\n[second]\nversion = "2"\n',
        '[first]\nversion = "1"\n\n[second]\nversion = "2"\n',
    ),
}


@pytest.mark.parametrize("language", NESTED)
def test_a_header_tells_which_of_two_equal_blocks_is_meant(language):
    original, edit, expected = NESTED[language]
    assert applied(original, edit, language) == expected


DELETED = {
    "python": (
        "a = make(1)\nb = make(2)\nc = make(3)\nuse(a, b, c)\n",
        "# ... existing code ...\na = make(1)\nc = make(3)\nuse(a, c)\n",
        "a = make(1)\nc = make(3)\nuse(a, c)\n",
    ),
    "go": (
        "func a() int {\n\treturn 1\n}\n\nfunc b() int {\n\treturn 2\n}\n\nfunc c() int {\n"
        "\treturn 3\n}\n",
        "func a() int {\n\treturn 1\n}\n\nfunc c() int {\n\treturn 3\n}\n"
        "// ... existing code ...\n",
        "func a() int {\n\treturn 1\n}\n\nfunc c() int {\n\treturn 3\n}\n",
    ),
    "sql": (
        "SELECT id,\n       name,\n       secret,\n       email\nFROM people;\n",
        "-- ... existing code ...\n       name,\n       email\n-- ... existing code ...\n",
        "SELECT id,\n       name,\n       email\nFROM people;\n",
    ),
}


@pytest.mark.parametrize("language", DELETED)
def test_what_stood_between_two_given_neighbours_goes(language):
    original, edit, expected = DELETED[language]
    assert applied(original, edit, language) == expected


def test_several_hunks_each_land_in_their_place():
    original = "".join(f"def f{i}(x):\n    return x + {i}\n\n\n" for i in range(9))
    edit = (
        "# ... existing code ...\n\ndef f2(x):\n    return x - 2\n\n\n# ... existing code ...\n\n"
        "def f6(x):\n    check(x)\n    return x + 6\n\n\n# ... existing code ...\n"
    )
    expected = original.replace("x + 2", "x - 2").replace(
        "    return x + 6", "    check(x)\n    return x + 6"
    )
    result = run(original, edit, "python")
    assert "".join(line + "\n" for line in result.lines) == expected
    assert [(hunk.start, hunk.end, hunk.anchor) for hunk in result.hunks] == [
        (9, 10, "exact"),
        (25, 25, "exact"),
    ]


INDENTED = {
    "spaces for tabs": (
        "go",
        "func sum(xs []int) int {\n\tt := 0\n\tfor _, x := range xs {\n\t\tt += x\n\t}\n"
        "\treturn t\n}\n",
        "// ... existing code ...\n    for _, x := range xs {\n        if x > 0 {\n"
        "            t += x\n        }\n    }\n// ... existing code ...\n",
        "func sum(xs []int) int {\n\tt := 0\n\tfor _, x := range xs {\n\t\tif x > 0 {\n"
        "\t\t\tt += x\n"
        "\t\t}\n\t}\n\treturn t\n}\n",
    ),
    "tabs for spaces": (
        "javascript",
        "function f(a) {\n    if (a) {\n        go(a);\n    }\n    return a;\n}\n",
        "// ... existing code ...\n\tif (a) {\n\t\tlog(a);\n\t\tgo(a);\n\t}\n"
        "// ... existing code ...\n",
        "function f(a) {\n    if (a) {\n        log(a);\n        go(a);\n    }\n    return a;\n}\n",
    ),
    "two spaces for four": (
        "python",
        "class A:\n    def f(self):\n        x = load()\n        return x\n\n    def g(self):\n"
        "        pass\n",
        "# ... existing code ...\n  def f(self):\n    x = load()\n    check(x)\n    return x\n\n"
        "# ... existing code ...\n",
        "class A:\n    def f(self):\n        x = load()\n        check(x)\n        return x\n\n"
        "    def g(self):\n        pass\n",
    ),
    "dedented": (
        "python",
        "class A:\n    def f(self):\n        x = load()\n        return x\n\n    size = 3\n",
        "# ... existing code ...\ndef f(self):\n    x = load()\n    check(x)\n    return x\n"
        "# ... existing code ...\n",
        "class A:\n    def f(self):\n        x = load()\n        check(x)\n        return x\n\n"
        "    size = 3\n",
    ),
    "first line without": (
        "python",
        "class A:\n    def f(self):\n        self.low = 0\n        self.high = 9\n"
        "        self.on = True\n",
        "# ... existing code ...\nself.low = 5\n        self.high = 99\n# ... existing code ...\n",
        "class A:\n    def f(self):\n        self.low = 5\n        self.high = 99\n"
        "        self.on = True\n",
    ),
    "makefile": (
        "makefile",
        "all: a.o\n\na.o: a.c\n\tcc -c a.c\n\nclean:\n\trm -f a.o\n",
        "# ... existing code ...\na.o: a.c\n    cc -O2 -c a.c\n    size a.o\n"
        "# ... existing code ...\n",
        "all: a.o\n\na.o: a.c\n\tcc -O2 -c a.c\n\tsize a.o\n\nclean:\n\trm -f a.o\n",
    ),
}


@pytest.mark.parametrize("kind", INDENTED)
def test_the_files_indentation_wins(kind):
    language, original, edit, expected = INDENTED[kind]
    assert applied(original, edit, language) == expected


def test_indentation_that_changes_on_purpose_is_kept():
    original = "def f(x):\n    start()\n    go(x)\n    stop()\n"
    edit = "def f(x):\n    start()\n    if x:\n        go(x)\n    stop()\n# ... existing code ...\n"
    assert applied(original, edit, "python") == (
        "def f(x):\n    start()\n    if x:\n        go(x)\n    stop()\n"
    )


HIDDEN = [
    (
        "typescript",
        "function first() {\n  one();\n  two();\n}\n\nfunction last() {\n  one();\n}\n",
        "function first() {\n  // ... existing code ...\n}\n\nfunction middle() {\n  one();\n}\n\n"
        "// ... existing code ...\n",
        "function first() {\n  one();\n  two();\n}\n\nfunction middle() {\n  one();\n}\n\n"
        "function last() {\n  one();\n}\n",
    ),
    (
        "python",
        "def first(x):\n    rows = []\n    for row in x:\n        rows.append(row)\n"
        "    return rows\n\n\n"
        "def last(x):\n    return x\n",
        "def first(x):\n    # ... existing code ...\n\n\ndef middle(x):\n    rows = []\n"
        "    for row in x:\n        rows.insert(0, row)\n    return rows\n\n\ndef last(x):\n"
        "    # ... existing code ...\n",
        "def first(x):\n    rows = []\n    for row in x:\n        rows.append(row)\n"
        "    return rows\n\n\n"
        "def middle(x):\n    rows = []\n    for row in x:\n        rows.insert(0, row)\n"
        "    return rows\n"
        "\n\ndef last(x):\n    return x\n",
    ),
]


@pytest.mark.parametrize(("language", "original", "edit", "expected"), HIDDEN)
def test_a_marker_hides_the_whole_rest_of_its_block(language, original, edit, expected):
    assert applied(original, edit, language) == expected


MOVED = [
    (
        "css",
        ".b { color: red; }\n.a { color: blue; }\n.c { color: green; }\n",
        ".a { color: blue; }\n.b { color: red; }\n/* ... existing code ... */\n",
        ".a { color: blue; }\n.b { color: red; }\n.c { color: green; }\n",
    ),
    (
        "yaml",
        "tail: 9\nhead: 1\nbody: 2\nfoot: 3\n",
        "head: 1\ntail: 9\n# ... existing code ...\n",
        "head: 1\ntail: 9\nbody: 2\nfoot: 3\n",
    ),
]


@pytest.mark.parametrize(("language", "original", "edit", "expected"), MOVED)
def test_moved_lines_leave_their_old_place(language, original, edit, expected):
    assert applied(original, edit, language) == expected


UNMENTIONED = [
    (
        "python",
        "# Licence: free\nimport os\nimport sys\n\n\ndef f(x):\n    # why: slow disks\n    y = x\n"
        "    return y\n",
        "# ... existing code ...\n\ndef f(x):\n    # why: slow disks\n    y = x + 1\n"
        "    return y\n",
        "# Licence: free\nimport os\nimport sys\n\n\ndef f(x):\n    # why: slow disks\n"
        "    y = x + 1\n"
        "    return y\n",
    ),
    (
        "python",
        "# Licence: free\nimport os\n\nA = 1\n\n\ndef f(x):\n    return x + 100\n\n\ndef g(x):\n"
        "    return x\n",
        "def f(x):\n    return x + 200\n\n\n# ... existing code ...\n",
        "# Licence: free\nimport os\n\nA = 1\n\n\ndef f(x):\n    return x + 200\n\n\ndef g(x):\n"
        "    return x\n",
    ),
]


@pytest.mark.parametrize(("language", "original", "edit", "expected"), UNMENTIONED)
def test_imports_and_comments_that_are_not_mentioned_stay(language, original, edit, expected):
    assert applied(original, edit, language) == expected


BLANKS = [
    # A blank line beside a marker only sets it off.
    (
        "struct P {\n  int a;\n  int b;\n};\n",
        "// ... existing code ...\n\n  int b;\n  int c;\n\n// ... existing code ...\n",
        "struct P {\n  int a;\n  int b;\n  int c;\n};\n",
    ),
    # New code before the next function keeps a blank line on either side.
    (
        "int a() {\n  return 1;\n}\n\nint b() {\n  return 2;\n}\n",
        "int a() {\n  return 1;\n}\n\nint n() {\n  return 3;\n}\n// ... existing code ...\n",
        "int a() {\n  return 1;\n}\n\nint n() {\n  return 3;\n}\n\nint b() {\n  return 2;\n}\n",
    ),
]


@pytest.mark.parametrize(("original", "edit", "expected"), BLANKS)
def test_blank_lines_around_markers(original, edit, expected):
    assert applied(original, edit, "cpp") == expected


def test_unicode_is_folded_for_matching_only():
    original = "say(“hi”)\nname = 'Cafe\u0301'\nprice = '10\u00a0EUR'\ntax = 1\n"
    edit = "# ... existing code ...\nprice = '10 EUR'\ntax = 2\n"
    assert applied(original, edit, "python") == (
        "say(“hi”)\nname = 'Cafe\u0301'\nprice = '10 EUR'\ntax = 2\n"
    )


def test_trailing_blanks_survive():
    original = "**When**: May 1  \n**Who**: Sam  \n"
    edit = "**When**: May 2  \n<!-- ... existing content ... -->\n"
    assert applied(original, edit, "markdown") == "**When**: May 2  \n**Who**: Sam  \n"


def test_a_file_that_does_not_parse_is_merged_all_the_same():
    original = "def a(:\n    return 1\n\ndef b():\n    return 2\n"
    edit = "# ... existing code ...\ndef b():\n    return 3\n"
    assert applied(original, edit, "python") == "def a(:\n    return 1\n\ndef b():\n    return 3\n"


AMBIGUOUS = [
    ("if a:\n    again()\nif b:\n    again()\nif c:\n    again()\n", "    again(3)", [2, 4, 6]),
    ("open()\nsend(x)\nclose()\nopen()\nsend(x)\nclose()\n", "send(x, y)", [2, 5]),
]


@pytest.mark.parametrize(("original", "line", "places"), AMBIGUOUS)
def test_equal_places_are_refused_with_their_lines(original, line, places):
    edit = f"# ... existing code ...\n{line}\n# ... existing code ...\n"
    with pytest.raises(AmbiguousTarget) as caught:
        run(original, edit, "python")
    assert caught.value.details["lines"] == places
    assert all(str(place) in caught.value.message for place in places)


def test_code_that_is_not_there_is_refused_with_the_closest_lines():
    original = "def load(path):\n    return open(path)\n\n\ndef save(path):\n    return path\n"
    edit = "# ... existing code ...\nclass Reader(Base):\n    limit = 7\n# ... existing code ...\n"
    with pytest.raises(AnchorNotFound) as caught:
        run(original, edit, "python")
    assert isinstance(caught.value.details["lines"], list)
    assert "class Reader(Base):" in caught.value.message


def test_a_nearly_equal_place_is_reported_as_doubt():
    original = "def f():\n    a()\n    log('x', 1)\n\n\ndef g():\n    b()\n    log('x', 2)\n"
    edit = "# ... existing code ...\n    log('x', 3)\n# ... existing code ...\n"
    try:
        result = run(original, edit, "python")
    except AmbiguousTarget:
        return
    assert not result.unambiguous
    assert result.confidence < 0.5


ALL = [
    *((language, *case) for language, case in CHANGED_LINE.items()),
    *(("text", *case) for case in FIRST_AND_LAST),
    *((language, *case) for language, case in NESTED.items()),
    *((language, *case) for language, case in DELETED.items()),
    *INDENTED.values(),
    *HIDDEN,
    *MOVED,
]


@pytest.mark.parametrize(("language", "original", "edit", "expected"), ALL)
def test_an_edit_that_is_applied_already_changes_nothing(language, original, edit, expected):
    assert run(expected, edit, language).hunks == ()


@pytest.mark.parametrize(
    ("old", "given", "kept"),
    [
        ("    b = 2  ", "    b = 2", "    b = 2  "),
        ("    b = 2", "    b = 2  ", "    b = 2  "),
        ("\t", "", "\t"),
        ("", "    ", ""),
        ("   ", "  ", "   "),
    ],
)
@pytest.mark.parametrize("marker", ["# ... existing code ...\n", ""])
def test_whitespace_that_a_snippet_lost_at_a_lines_end_stays(old, given, kept, marker):
    original = f"def f():\n    a = 1\n{old}\n    c = 3\n    return d\n\n\ndef g():\n    pass\n"
    edit = f"{marker}def f():\n    a = 1\n{given}\n    c = 4\n    return d\n{marker}"
    expected = original.replace(f"{old}\n    c = 3", f"{kept}\n    c = 4")
    assert applied(original, edit, "python") == expected


def test_a_line_beside_a_marker_is_not_written_a_second_time():
    marker = "<!-- ... existing code ... -->"
    fence = ["```sh", "git clone station.git", "pip install .", "```", ""]
    original = ["Intro", "", *fence, "## Configure", "", "Put a file there:", "", "```toml", "[s]"]
    shown = [*fence, "## Configure_100", "", "Put a file there:", "```toml"]
    result = run("\n".join(original), "\n".join([marker, *shown, marker]), "markdown")
    assert result.lines.count("```toml") == 1 or not result.unambiguous


SHOWS_THE_PLACE = {
    "python": (  # below the change
        "books.sort()\nif rows:\n    pass\n    return\nlater()\n",
        "# ... existing code ...\nbooks.sort()\nclass New:\n    return\n# ... existing code ...\n",
    ),
    "ruby": (  # above it
        "rows.each do |row|\n  check(row)\nend\n\nif rows.empty?\n  return\nend\nbooks.sort!\n",
        "rows.each do |row|\n  # ... existing code ...\n  return\nend_if\nbooks.sort!\n",
    ),
    "javascript": (
        "for (const row of rows) {\n  check();\n}\n\nif (!rows) {\n  return;\n}\nbooks.sort();\n",
        "for (const row of rows) {\n  // ... existing code ...\n  return;\nend_if\nbooks.sort();\n",
    ),
}


@pytest.mark.parametrize("language", SHOWS_THE_PLACE)
def test_a_line_beside_a_marker_that_the_file_has_near_there_is_not_surely_new(language):
    original, edit = SHOWS_THE_PLACE[language]
    assert not run(original, edit, language).unambiguous


def test_lines_beside_a_marker_that_get_a_new_header_are_moved_and_not_in_doubt():
    urls = ['Homepage = "https://shop.example/home"', 'Documentation = "https://shop.example/docs"']
    head = ["[project]", "classifiers = [", '  "Topic :: Office",', '  "License :: Free",', "]"]
    tail = ['Issues = "https://shop.example/issues"', "", "[tool.x]", "a = 1"]
    marker = "# ... existing code ..."
    edit = [marker, *head[3:], "", "[project.urls]", *urls, marker]
    result = run("\n".join(head + urls + tail), "\n".join(edit), "toml")
    assert result.lines == (*head, "", "[project.urls]", *urls, *tail)
    assert result.unambiguous, result.warnings
