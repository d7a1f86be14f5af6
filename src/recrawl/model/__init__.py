"""What things are: frozen values and enums. No I/O, no clock, no SQL."""
