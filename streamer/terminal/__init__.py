"""What a terminal shows of a stream, live or line by line."""
