"""Benchmarks over sets of questions: the same conversations by every way of decoding, in turns, and checked."""
