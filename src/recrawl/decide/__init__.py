"""What should happen: pure functions. `now` and randomness are arguments."""
