"""Events and results as lines of JSON, in files and pipes."""
