"""What an operator can ask for. The command line and the service call the same functions."""
