"""Who drafts: proposers that copy from the original, the snippet, the merge and the output so far.

Knows tokens as integers only; must not know targets.
"""
