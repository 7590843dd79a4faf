"""The CPU path: kernels compiled at set-up by numba, no compiler needed on the user's machine."""
