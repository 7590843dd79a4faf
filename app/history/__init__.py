"""Stored chats: one SQLite file, written by one thread. No Qt."""
