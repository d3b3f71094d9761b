"""The decoding loop: draft, verify in one target pass, accept, commit, observe.

Knows tokens as integers only: no torch, no text, no files.
"""
