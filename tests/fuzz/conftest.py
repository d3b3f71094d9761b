"""Registers the profile "fuzz" before pytest's option asks for it."""

from __future__ import annotations

import tests.fuzz.running  # noqa: F401
