"""From records to decisions: events, time steps, counting, and the engine that ties them."""
