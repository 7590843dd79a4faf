"""Models larger than the fast memory: which parts stay there, which are brought in for every full pass."""
