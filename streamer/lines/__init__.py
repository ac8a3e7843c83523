"""Events and results as JSON lines, in files and pipes."""
