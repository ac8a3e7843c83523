"""The mathematics of the guarantee: no I/O, no clock, no users."""
