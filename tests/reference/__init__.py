"""Slow float64 NumPy transcriptions of the papers' pseudo-code. They import nothing from the library."""
