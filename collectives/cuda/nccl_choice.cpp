#include "collectives/cuda/nccl_choice.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/names.hpp"
#include "base/text.hpp"

namespace polyring {
namespace {

// NCCL's «Environment Variables», NCCL_ALGO and NCCL_PROTO. Trees only allreduce; PAT does not.
const std::string kReduceAll[] = {"ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree"};
const std::string kReduceScatterOrGather[] = {"ring", "collnetdirect", "nvls", "pat"};
const std::string kProtocols[] = {"ll", "ll128", "simple"};

std::string_view function_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce_scatter:
      return "reducescatter";
    case Collective::allgather:
      return "allgather";
    case Collective::alltoall:  // grouped ncclSend and ncclRecv
      return "";
  }
  return "";
}

std::span<const std::string> algorithms_of(Collective collective) {
  if (collective == Collective::alltoall) return {};
  return collective == Collective::allreduce ? std::span<const std::string>(kReduceAll)
                                             : std::span<const std::string>(kReduceScatterOrGather);
}

/// The list of names that a variable has for this function: "LIST;function:LIST;…", where the last counts.
std::string list_for(std::string_view text, std::string_view function) {
  std::string list;
  for (const std::string& entry : split(text, ';')) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) {
      list = entry;
    } else if (lower_case(entry.substr(0, colon)) == function) {
      list = entry.substr(colon + 1);
    }
  }
  return list;
}

std::string only_name(std::string_view text, Collective collective, std::span<const std::string> known) {
  return known_name(list_for(text, function_of(collective)), known).value_or("");
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

NcclChoice nccl_choice(Collective collective, std::string_view algorithms, std::string_view protocols) {
  const std::span<const std::string> known = algorithms_of(collective);
  if (known.empty()) return {};
  return {only_name(algorithms, collective, known), only_name(protocols, collective, kProtocols)};
}

NcclChoice nccl_choice(Collective collective) {
  return nccl_choice(collective, variable("NCCL_ALGO"), variable("NCCL_PROTO"));
}

std::string nccl_name(const NcclChoice& choice) {
  return choice.algorithm.empty() ? "nccl" : "nccl:" + choice.algorithm;
}

}  // namespace polyring
