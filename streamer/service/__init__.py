"""The runtime: moves events to the engine, and decisions to the ledger and the audience."""
