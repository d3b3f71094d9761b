"""Machine code for a target's pass, compiled on the machine that it runs on (numba, LLVM).

Every number of a result is computed by the same instructions in the same order whatever block its
row stands in, so speculation can't change a bit of it. Numba is imported by the modules in here
and nowhere else; they are imported when a model is loaded.
"""
