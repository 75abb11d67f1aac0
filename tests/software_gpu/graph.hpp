// Graphs: what a capture has recorded, to be launched as often as wanted.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "tests/software_gpu/capture.hpp"

namespace polyring::software_gpu {

/// Process::mutex is held.
cudaGraph_t keep_graph(std::shared_ptr<Graph> graph);

}  // namespace polyring::software_gpu
