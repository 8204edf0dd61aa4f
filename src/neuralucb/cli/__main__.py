"""`python -m neuralucb.cli` is the command `neuralucb`."""

from neuralucb.cli.app import main

if __name__ == "__main__":
    main()
