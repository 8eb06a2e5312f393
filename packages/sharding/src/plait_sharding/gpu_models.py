"""Models of GPUs, described for the compiler when no such device is attached.

The numbers are from NVIDIA's data sheets and from CUDA's queries of such devices.  The field names
are those of `GpuTargetConfigProto`, the compiler's description of a GPU
(https://github.com/openxla/xla, stream_executor/device_description.proto).

Invariant: the compiler can emit code for every model that is listed here.
"""

from typing import NamedTuple

__all__ = ["GPU_MODELS", "GpuModel"]

_MIB = 1 << 20


class GpuModel(NamedTuple):
    """The properties in which models of GPUs differ.

    Attributes:
      name: the driver's name for the model.
      capability: CUDA's compute capability, (major, minor).
      cores: its streaming multiprocessors, each with `units` for float32.
      clock: the maximum, in GHz.
      memory: in bytes; `bandwidth`: of the memory, in bytes per second.
      cache: bytes of the second level.
      shared: bytes of shared memory per core; a block can get at most this less 1 KiB.
    """

    name: str
    capability: tuple[int, int]
    cores: int
    units: int
    clock: float
    memory: int
    bandwidth: int
    cache: int
    shared: int

    def described(self) -> str:
        """Return the model as the text of a `GpuTargetConfigProto`."""
        major, minor = self.capability
        # From Hopper on, code may use features of exactly this architecture.
        features = " feature_extension: ACCELERATED_FEATURES" if major >= 9 else ""
        about = {
            "threads_per_warp": 32,
            "threads_per_block_limit": 1024,
            "threads_per_core_limit": 2048,
            "thread_dim_limit_x": 1024,
            "thread_dim_limit_y": 1024,
            "thread_dim_limit_z": 64,
            "block_dim_limit_x": 2**31 - 1,
            "block_dim_limit_y": 2**16 - 1,
            "block_dim_limit_z": 2**16 - 1,
            "registers_per_core_limit": 2**16,
            "registers_per_block_limit": 2**16,
            "shared_memory_per_block": 48 << 10,
            "shared_memory_per_core": self.shared,
            "shared_memory_per_block_optin": self.shared - 1024,
            "core_count": self.cores,
            "fpus_per_core": self.units,
            "clock_rate_ghz": self.clock,
            "device_memory_size": self.memory,
            "memory_bandwidth": self.bandwidth,
            "l2_cache_size": self.cache,
        }
        fields = " ".join([f"{name}: {value}" for name, value in about.items()])
        return (
            f"gpu_device_info {{ {fields} "
            f"cuda_compute_capability {{ major: {major} minor: {minor}{features} }} }} "
            f'platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 10 }} '
            f'device_description_str: "{self.name}"'
        )


GPU_MODELS = {
    "a100": GpuModel(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 1.41,
        85_100_068_864, 2_039_040_000_000, 40 * _MIB, 164 << 10,
    ),
    "h100": GpuModel(
        "NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 1.98,
        84_942_979_072, 3_352_320_000_000, 50 * _MIB, 228 << 10,
    ),
    "h200": GpuModel(
        "NVIDIA H200", (9, 0), 132, 128, 1.98,
        151_397_597_184, 4_800_000_000_000, 50 * _MIB, 228 << 10,
    ),
    "b200": GpuModel(
        "NVIDIA B200", (10, 0), 148, 128, 1.965,
        191_514_411_008, 7_672_320_000_000, 132_644_864, 228 << 10,
    ),
}  # fmt: skip
"""Models by their names in topologies."""
