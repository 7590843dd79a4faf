"""The models that this computer has: what is known, what each is and needs, and how more come from the hub."""
