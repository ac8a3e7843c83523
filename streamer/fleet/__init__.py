"""The simulated fleet: its users, items, outbreaks, events, and the truth about them."""
