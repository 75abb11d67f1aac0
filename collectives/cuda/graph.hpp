// CapturedGraph: what was enqueued on a stream once, to be launched at once any number of times.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

namespace polyring::cuda {

class CapturedGraph {
 public:
  /// `enqueue` gives this stream, which is not the default one, all that the graph has; nothing of it runs
  /// now.
  CapturedGraph(cudaStream_t stream, const std::function<void()>& enqueue);

  void launch(cudaStream_t stream) const;
  /// Also while it runs: CUDA keeps what is needed until then. It cannot be launched any more.
  void destroy() { graph_.reset(); }

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

}  // namespace polyring::cuda
