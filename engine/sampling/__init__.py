"""Choosing tokens: the processed distribution, the noise that picks from it, and accepting what a draft proposed."""
