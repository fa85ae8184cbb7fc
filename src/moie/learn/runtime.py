"""Settings of jax: on the CPU, on one thread, unless there is work for an accelerator; compiled
code is kept between runs."""

import os
from pathlib import Path


def prepare(accelerator: bool = False) -> None:
    """Call before jax is first used; what the user has set in the environment stays.

    The arrays are small: a second thread or an accelerator costs more than it gives, and several
    runs share a machine better with one thread each. One thread also keeps results repeatable.
    `accelerator`: use one if there is one, with operations that give the same bits every time.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if accelerator:
        if "xla_gpu_autotune_level" not in flags:
            flags += " --xla_gpu_autotune_level=0"
    else:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if "xla_cpu_multi_thread_eigen" not in flags:
        one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ["XLA_FLAGS"] = f"{flags} {one_thread}".strip()

    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(home / "moie" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
