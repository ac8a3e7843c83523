"""Terminal views of a stream: a live screen, or plain lines."""
