"""What people type: the command `neuralucb`."""
