"""Survival rates before a session has its own.

Measured once by replaying a few hundred thousand tokens of real edits, rounded. A row holds the
rate per bucket of match lengths: 0, 1, 2–3, 4–7, …, 1024 and more.
"""

from __future__ import annotations

from collections.abc import Mapping

_LONG = (0.99, 0.993, 0.995, 0.998, 0.998, 0.998)

PRIORS: Mapping[str, tuple[float, ...]] = {
    # The merge is either right to the end or wrong within a few lines.
    "merged": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.9997, 0.9997, 0.9998, 0.9998, 0.9999),
    "merged-resync": (0.0, 0.4, 0.6, 0.87, 0.9, 0.96, *_LONG),
    "merged-replace": (0.8, 0.8, 0.2, 0.05, *(0.02,) * 8),
    # Edits come in clusters: the longer the copy since the last one, the farther the next.
    "original": (0.5, 0.6, 0.7, 0.8, 0.955, 0.987, 0.9965, 0.998, 0.998, 0.9985, 0.9988, 0.999),
    "original-resync": (0.0, 0.15, 0.5, 0.85, 0.957, 0.985, *_LONG),
    "original-replace": (0.25, 0.25, 0.1, 0.04, *(0.02,) * 8),
    "suffix": (0.0, 0.04, 0.32, 0.75, 0.9, 0.975, *_LONG),
    # What followed the last token before, by the share of occurrences that it followed.
    "recent-0": (0.0, 0.1, 0.28, 0.6, 0.8, 0.9, *_LONG),
    "recent-1": (0.0, 0.1, 0.24, 0.6, 0.8, 0.9, *_LONG),
    "recent-2": (0.0, 0.17, 0.34, 0.6, 0.8, 0.9, *_LONG),
    "recent-3": (0.0, 0.26, 0.56, 0.83, 0.92, 0.98, *_LONG),
    "recent-4": (0.0, 0.27, 0.49, 0.67, 0.85, 0.95, *_LONG),
    "recent-5": (0.0, 0.42, 0.5, 0.7, 0.83, 0.9, *_LONG),
}
