"""From records to decisions: events, time steps, buffering, and the engine that connects them."""
