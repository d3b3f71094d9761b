"""The download of a whole hub repository, as a program.

This module must not know who started it or what becomes of the files.
"""

from __future__ import annotations

import sys

from huggingface_hub import snapshot_download

from apply_server.models.repositories import MODEL_PATTERNS


def main(arguments: list[str]) -> None:
    """Fetch the repository named first, from the endpoint named second."""
    repo, endpoint = arguments
    snapshot_download(repo, allow_patterns=list(MODEL_PATTERNS), endpoint=endpoint or None)


if __name__ == "__main__":
    main(sys.argv[1:])
