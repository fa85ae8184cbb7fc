"""What can be proved of a mixture's commands, and what was measured: `moie datasheet`."""
