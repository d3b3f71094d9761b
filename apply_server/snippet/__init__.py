"""The dialects of an edit: lazy markers, patch, full file, search/replace, unified diff, V4A."""

from apply_server.snippet.model import Block, Dialect, Edit, Segment
from apply_server.snippet.parse import parse_snippet

__all__ = ["Block", "Dialect", "Edit", "Segment", "parse_snippet"]
