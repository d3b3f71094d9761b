"""Training draft heads for a model, on its own answers to edits.

Importing this package imports no torch.
"""
