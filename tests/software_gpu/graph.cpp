#include "tests/software_gpu/graph.hpp"

#include <unordered_map>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"

namespace polyring::software_gpu {
namespace {

struct Executable {
  std::shared_ptr<const Graph> graph;
  Point last;  // the end of its last launch: it does not run beside itself
};

std::unordered_map<cudaGraph_t, std::shared_ptr<Graph>>& graphs() {
  static auto* const kept = new std::unordered_map<cudaGraph_t, std::shared_ptr<Graph>>;
  return *kept;
}

std::unordered_map<cudaGraphExec_t, std::shared_ptr<Executable>>& executables() {
  static auto* const kept = new std::unordered_map<cudaGraphExec_t, std::shared_ptr<Executable>>;
  return *kept;
}

const std::shared_ptr<Graph>& graph_of(cudaGraph_t handle) {
  const auto found = graphs().find(handle);
  require(found != graphs().end(), cudaErrorInvalidValue);
  return found->second;
}

Executable& executable_of(cudaGraphExec_t handle) {
  const auto found = executables().find(handle);
  require(found != executables().end(), cudaErrorInvalidValue);
  return *found->second;
}

/// Does all nodes one after the other, in an order that differs from launch to launch.
void run_nodes(const Graph& graph, const std::vector<std::optional<Fault>>& faults, std::mt19937_64& random) {
  std::vector<std::size_t> missing(graph.nodes.size());
  std::vector<std::vector<std::size_t>> followers(graph.nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    missing[node] = graph.nodes[node].after.size();
    for (const int before : graph.nodes[node].after)
      followers[static_cast<std::size_t>(before)].push_back(node);
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    Operation operation = graph.nodes[node].operation;
    operation.fault = faults[node];
    perform(*graph.nodes[node].device, operation, random);
    for (const std::size_t follower : followers[node])
      if (--missing[follower] == 0) ready.push_back(follower);
  }
}

Operation launch_of(const Executable& executable, std::uint64_t seed) {
  std::vector<std::optional<Fault>> faults;
  for (const GraphNode& node : executable.graph->nodes) {
    faults.push_back(node.operation.counts ? node.device->next_operation() : std::nullopt);
  }
  Operation operation{.what = "graph", .run = [graph = executable.graph, faults = std::move(faults), seed] {
                        std::mt19937_64 random(seed);
                        run_nodes(*graph, faults, random);
                      }};
  operation.counts = false;
  operation.after = {executable.last};
  return operation;
}

/// The nodes of a launch inside another capture, as nodes of that.
void add_nodes(Stream& stream, const Graph& graph) {
  Operation operation{.what = "graph", .run = [copy = graph] {
                        std::mt19937_64 random(0);
                        run_nodes(copy, std::vector<std::optional<Fault>>(copy.nodes.size()), random);
                      }};
  operation.counts = false;
  submit(stream, std::move(operation));
}

std::uint64_t launches = 0;

}  // namespace

cudaGraph_t keep_graph(std::shared_ptr<Graph> graph) {
  const auto handle = reinterpret_cast<cudaGraph_t>(graph.get());
  graphs().emplace(handle, std::move(graph));
  return handle;
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* handle, cudaGraph_t graph, unsigned long long flags) {
  if (flags != 0) fail_loudly("cudaGraphInstantiate with flags is not implemented");
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(handle != nullptr, cudaErrorInvalidValue);
    auto made = std::make_shared<Executable>();
    made->graph = std::make_shared<const Graph>(*graph_of(graph));
    *handle = reinterpret_cast<cudaGraphExec_t>(made.get());
    executables().emplace(*handle, std::move(made));
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* handle, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(handle, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    executable_of(handle);
    stream_of(stream);
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t in) {
  return call(Needs::working, [&] {
    const Process& process = Process::get();
    const std::lock_guard lock(Process::get().mutex);
    Executable& executable = executable_of(handle);
    Stream& stream = stream_of(in);
    if (stream.capture != nullptr) return add_nodes(stream, *executable.graph);
    executable.last =
        submit(stream, launch_of(executable, process.plan.delays.seed * 1'000'003 + ++launches));
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return call(Needs::devices, [&] {
    const std::lock_guard lock(Process::get().mutex);
    executable_of(handle);
    executables().erase(handle);
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(Needs::devices, [&] {
    const std::lock_guard lock(Process::get().mutex);
    graph_of(graph);
    graphs().erase(graph);
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) fail_loudly("cudaGraphGetNodes hands out no nodes, only their number");
  return call(Needs::devices, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(count != nullptr, cudaErrorInvalidValue);
    *count = graph_of(graph)->nodes.size();
  });
}
}
