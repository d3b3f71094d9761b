"""Measures decoding against its peers on the same prompts and weights, in one process."""
