"""Measurements of the engine that a user can repeat: `specular-cli bench`."""
