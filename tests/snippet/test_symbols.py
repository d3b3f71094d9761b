"""What lines of many languages name."""

from __future__ import annotations

import pytest

from apply_server.snippet.symbols import Symbol, symbol_of

DEFINITIONS = {
    "def run(self, x):": "run",
    "async def run(self):": "run",
    "class Box(Base):": "Box",
    "public sealed class Box : Base": "Box",
    "func Run(x int) error {": "Run",
    "func (s *Store) Run(x int) error {": "Run",
    "pub(crate) async fn run<T>(x: T) -> T {": "run",
    "export default function run(x) {": "run",
    "export const run = async (x) => {": "run",
    "private run = (x: string): boolean => {": "run",
    "local function run(x)": "run",
    "function M.run(x)": "M.run",
    "fun run(x: Int): Int {": "fun run" if False else "run",
    "int run(const struct ring *ring, void *bytes)": "run",
    "static size_t run(struct ring *ring)": "run",
    "public static Task<T> Run<T>(T x)": "Run",
    "int run() {": "run",
    "constructor(options: Options) {": "constructor",
    "async parcel(id: string): Promise<Parcel> {": "parcel",
    "interface Options {": "Options",
    "type Store struct {": "Store",
    "impl Store {": "Store",
    "(defn run [x] x)": "run",
    "[tool.ruff]": "tool.ruff",
}


@pytest.mark.parametrize("text", DEFINITIONS)
def test_definitions(text):
    assert symbol_of(text) == Symbol("definition", DEFINITIONS[text])


KEYS = {
    "x = 1": "x",
    "self.low = 0": "self.low",
    "const port = 80;": "port",
    "let mut total: u64 = 0;": "total",
    "local port = 80": "port",
    "x := load()": "x",
    "image: web": "image",
    '"name": "a",': "name",
    "- uses: checkout": "uses",
    ".box { color: red; }": ".box",
}


@pytest.mark.parametrize("text", KEYS)
def test_keys(text):
    assert symbol_of(text) == Symbol("key", KEYS[text])


@pytest.mark.parametrize(
    "text",
    ["", "}", "return x", "if (a) {", "for x in y:", "else {", "run(x);", "# a = 1", "a == b"],
)
def test_lines_that_name_nothing(text):
    assert symbol_of(text) is None


def test_headings_only_where_they_are():
    assert symbol_of("## Install", headings=True) == Symbol("definition", "## Install")
    assert symbol_of("x = 1", headings=True) is None
    assert symbol_of("## Install") is None
