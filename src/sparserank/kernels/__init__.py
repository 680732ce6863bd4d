"""Numba kernels: arrays and integers in, arrays out. Each file imports only numpy, numba and math."""
