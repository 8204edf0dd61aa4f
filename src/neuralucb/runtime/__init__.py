"""What every room stands on: precision, memory, files, threads, progress, and compiled programs kept between runs."""
