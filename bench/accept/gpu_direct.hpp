// Whether a host's NICs can reach the memory of its GPUs (GPUDirect RDMA), by what the kernel shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace polyring {

struct GpuDirect {
  int gpus = 0;                   // of NVIDIA's
  std::vector<std::string> nics;  // devices with ports of InfiniBand or RoCE: "mlx5_0"
  std::string module;             // that lets them reach it: "nvidia_peermem"; empty: none is loaded
  std::string driver;             // "open", "closed"; empty: NVIDIA's kernel module is not loaded
  std::string kernel;             // "6.8.0-45-generic"

  /// By Linux' DMA-BUF: the open kernel module on Linux 5.12 or later (NVIDIA, «GPU Operator», GPUDirect
  /// RDMA).
  bool has_dma_buf() const;
  bool operator==(const GpuDirect&) const = default;
};

/// `root` is where /proc and /sys are. Ports of NICs that are software (rxe, siw) do not count.
GpuDirect read_gpu_direct(const std::filesystem::path& root);

}  // namespace polyring
