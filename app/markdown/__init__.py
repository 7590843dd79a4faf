"""Markdown as styles of its own source: plain data, no Qt."""
