"""What every other package builds on: precision, memory, files, threads, progress, errors and the compile cache."""
