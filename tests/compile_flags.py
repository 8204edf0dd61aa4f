"""Prints XLA_FLAGS for tests, which compile far more than they compute: code that is made fast need not run fast.

An XLA that does not know the flags would end the process, so they are tried out first.
"""

import os
import subprocess
import sys

FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1"  # cutting a program into parts costs a seventh, and the cores are taken
    " --xla_disable_hlo_passes=simplify-while-loops,while-loop-invariant-code-motion"  # a sixth
)
TRY = "import jax; jax.jit(lambda x: x + 1)(1.0)"

if __name__ == "__main__":
    environment = os.environ | {"XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", TRY], check=False, env=environment, capture_output=True)
    print(FLAGS if done.returncode == 0 else "")
