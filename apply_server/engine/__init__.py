"""From a request to its result: the layer that puts plan, prompt, decoding and edits together."""
