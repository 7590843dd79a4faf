"""Shortcuts by which the desktop starts the window: menus, icons, and files that open with it."""
