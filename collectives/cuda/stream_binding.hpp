// A plan for a stream, bound to buffers: what is enqueued, with all addresses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/rank_gpu.hpp"
#include "collectives/cuda/stream_plan.hpp"
#include "collectives/cuda/stream_words.hpp"

namespace polyring::cuda {

struct CopyCommand {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

struct ReduceCommand {
  Reduction reduction;
  std::vector<const std::byte*> operands;
  std::byte* result = nullptr;
  Count count = 0;
  bool aside = false;
};

struct ExchangeCommand {
  bool copies = false;  // its only operand
  Reduction reduction;
  int most_blocks = 1;
  std::unique_ptr<ExchangeArguments> arguments;
};

struct MessageCommand {
  int most_blocks = 1;
  std::unique_ptr<MessageArguments> arguments;
};

/// One group.
struct NcclCommand {
  struct Message {
    Rank peer = 0;
    std::byte* data = nullptr;
    Count count = 0;
    ElementKind kind = ElementKind::float32;
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
};

using StreamCommand = std::variant<CopyCommand, ReduceCommand, ExchangeCommand, MessageCommand, NcclCommand,
                                   ForkStep, MarkStep, JoinStep>;

struct StreamBinding {
  std::vector<StreamCommand> commands;
  Memory copies;  // of what others read and this rank overwrites
};

/// How many blocks a kernel that waits may have, where it alone could have so many.
class Residency {
 public:
  Residency(int device, std::size_t ranks_on_gpu);
  /// 0: there are too many ranks on this GPU.
  int share(int blocks_alone) const;

 private:
  int multiprocessors_;
  int ranks_;
};

struct BindingOptions {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* slots = nullptr;
  bool by_nccl = false;      // messages
  std::uint64_t number = 0;  // of the binding, among those of this rank
};

/// Collective among the ranks of a host that have exchanges or messages with each other. Throws a usage Error
/// where one of them binds something else.
StreamBinding bind(RankGpu& gpu, const StreamWords& words, const StreamPlan& plan, const Residency& residency,
                   const BindingOptions& options);

}  // namespace polyring::cuda
