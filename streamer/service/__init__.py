"""The runtime: it moves events to the engine and decisions to where they belong."""
