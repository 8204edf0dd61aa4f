"""How long the theory takes: H against one matrix product, d̃ of 10 000 contexts, and the estimate beyond memory.

python benchmarks/theory.py
"""

import resource
import time

import numpy as np

from neuralucb.theory import effective_dimension_of, estimate_log_det, kernel_product, tangent_kernel

DIM = 20


def sphere(count):
    rows = np.random.default_rng(0).normal(size=(count, DIM))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def fastest(work, repeats=5):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main():
    print("| what | measured | against | ratio |\n| --- | --- | --- | --- |")
    started = time.perf_counter()
    found = effective_dimension_of(sphere(10_000), depth=3, regularization=1.0)
    seconds = time.perf_counter() - started
    print(
        f"| d̃ of 10 000 contexts, L = 3 ({found.value:.1f}) | {seconds:.1f} s, {peak_gigabytes():.2f} GB "
        "| limit: 120 s, 4 GB | |"
    )

    x, square = sphere(5000), np.random.default_rng(0).normal(size=(5000, 5000))
    product = fastest(lambda: square @ square)
    for depth in (2, 3, 5):
        kernel = fastest(lambda depth=depth: tangent_kernel(x, depth=depth))
        print(
            f"| H of 5000 contexts, d = {DIM}, L = {depth} | {kernel:.2f} s "
            f"| a 5000 × 5000 float64 product: {product:.2f} s | {kernel / product:.2f} |"
        )

    exact = effective_dimension_of(x, depth=3, regularization=1.0).value * np.log1p(len(x))
    started = time.perf_counter()
    estimate = estimate_log_det(kernel_product(x, depth=3), len(x), regularization=1.0)
    print(
        f"| log det of 5000 contexts without H: {estimate.value:.0f} ± {estimate.error:.0f} (one standard error) "
        f"| {time.perf_counter() - started:.1f} s | exact: {exact:.0f} | |"
    )


if __name__ == "__main__":
    main()
