"""What operators see of a running service: metrics, health, logs."""
