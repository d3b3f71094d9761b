"""Replays recorded edits and measures them. Must not know the language server."""
