"""What people are shown is what was said, whatever names files and cases have."""

from __future__ import annotations

import pytest

from apply_server import terminal

# Rich takes the first for a style, and the second for the end of one that was never begun.
NAMES = ("app/[slug]/page.tsx", "app/[/slug]/page.tsx")


@pytest.mark.parametrize("name", NAMES)
def test_brackets_in_names_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, so that bars are drawn too
    monkeypatch.setenv("COLUMNS", "200")
    with terminal.progress() as bars:
        bars.add_task(f"Reading {name}", detail=f"{name} · plain")
        terminal.model_report(bars).notice(f"Fetching {name}")
        bars.console.print(name)
        bars.refresh()
    shown = capsys.readouterr().err
    assert all(text in shown for text in (f"Reading {name}", f"{name} · plain", f"Fetching {name}"))
