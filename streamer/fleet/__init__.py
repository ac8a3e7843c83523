"""The simulated fleet: its users, items, outbreaks, events, and ground truth."""
