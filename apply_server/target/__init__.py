"""Targets: whatever verifies drafts. Must not know proposers, text or files."""
