"""What the product claims, put to the test: the paper's example, and attacks on ourselves."""
