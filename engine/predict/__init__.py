"""Guesses at what a draft may leave out for a token: MLP neurons, attention heads, input channels."""
