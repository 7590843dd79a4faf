"""The CUDA path: Triton kernels of a fixed width of sixteen rows.

Exactness: every kernel computes all sixteen rows of its tile in a fixed order over K, whatever the number of rows in
use; rows beyond it are zero. So a row's bits do not depend on its neighbours, and plain steps and verify passes agree.

Ordering: inside a captured step each kernel may start before its predecessor ends (programmatic dependent launch) and
then loads only what no kernel of the same step writes: weights, tables, cache rows below the step's position. The
first kernel of a step is launched in full order, so nothing reaches over from one step into the next.
"""
