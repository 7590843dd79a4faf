"""Every operation in plain torch: the oracle of the compiled kernels, and the path for CUDA cards.

Kept apart from `kernels/compiled` because importing torch takes seconds and importing the compiler half of one; each
path imports only what it runs.
"""
