"""A reply as files to keep or send: a page, a picture and a replay."""
