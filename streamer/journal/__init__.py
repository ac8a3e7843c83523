"""What must survive: decisions, charges, offsets. One interface, two journals."""
