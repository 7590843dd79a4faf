"""The low-bit copy of a model that drafts: its value format, how it is made, and where it is kept."""
