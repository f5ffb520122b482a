"""What mends a run, proved by trying each remedy from the same seed."""
