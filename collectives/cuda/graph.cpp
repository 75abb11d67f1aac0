#include "collectives/cuda/graph.hpp"

#include "collectives/cuda/check.hpp"

namespace polyring::cuda {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};

/// Null where nothing was captured.
std::unique_ptr<CUgraph_st, DestroyGraph> end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "end a capture (cudaStreamEndCapture)");
  return std::unique_ptr<CUgraph_st, DestroyGraph>(graph);
}

}  // namespace

CapturedGraph::CapturedGraph(cudaStream_t stream, const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
        "begin a capture (cudaStreamBeginCapture)");
  try {
    enqueue();
  } catch (...) {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  const auto captured = end_capture(stream);
  cudaGraphExec_t graph = nullptr;
  check(cudaGraphInstantiate(&graph, captured.get(), 0), "make a graph (cudaGraphInstantiate)");
  graph_.reset(graph);
}

void CapturedGraph::launch(cudaStream_t stream) const {
  check(cudaGraphLaunch(graph_.get(), stream), "launch a graph (cudaGraphLaunch)");
}

}  // namespace polyring::cuda
