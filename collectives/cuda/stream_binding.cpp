#include "collectives/cuda/stream_binding.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/make_arguments.hpp"

namespace polyring::cuda {
namespace {

/// Blocks that each multiprocessor holds of any kernel: see their launch bounds.
constexpr int kBlocksOfEach = 2;
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kVector = 16;

/// What a rank tells another of a step that both take part in, in the order of their steps.
struct Offer {
  StreamPlace gives;
  StreamPlace takes;
};

struct Introduction {
  std::uint64_t number = 0;  // of the binding
  std::array<GpuLocation, kStreamMemories> memory;
};

/// What passes between this rank and one peer.
struct Pair {
  std::vector<Offer> own;
  std::vector<Offer> others;
  std::size_t next = 0;  // of the others
  Introduction introduction;
};

class Binder {
 public:
  Binder(RankGpu& gpu, const StreamWords& words, const StreamPlan& plan, const Residency& residency,
         const BindingOptions& options)
      : gpu_(gpu), words_(words), plan_(plan), residency_(residency), options_(options) {
    memory_ = {options.input, options.output, options.slots, nullptr};
  }

  StreamBinding run() {
    for (const StreamStep& step : plan_.steps) {
      std::visit([this](const auto& each) { offer(each); }, step);
    }
    if (copies_bytes_ > 0) binding_.copies = gpu_.allocate(Bytes{copies_bytes_});
    memory_.back() = binding_.copies.get();
    swap();
    for (const StreamStep& step : plan_.steps) {
      std::visit([this](const auto& each) { add(each); }, step);
    }
    return std::move(binding_);
  }

 private:
  std::byte* at(StreamPlace place) const {
    return memory_[static_cast<std::size_t>(place.memory)] + place.offset;
  }
  std::byte* at(Rank rank, const Pair& pair, StreamPlace place) {
    return gpu_.at(rank, pair.introduction.memory[static_cast<std::size_t>(place.memory)]) + place.offset;
  }

  // First what this rank offers.

  template <typename Step>
  void offer(const Step&) {}  // in this rank's memory
  void offer(const GroupStep& group) {
    if (options_.by_nccl) return;
    for (const GroupStep::Message& message : group.receives)
      pairs_[message.peer].own.push_back({{}, message.place});
    for (const GroupStep::Message& message : group.sends) pairs_[message.peer].others.emplace_back();
  }
  void offer(const ExchangeStep& step) {
    const std::vector<Copied> copied = overwritten(step);
    for (const ExchangeStep::Partner& partner : step.partners) {
      Pair& pair = pairs_[partner.rank];
      pair.own.push_back({given(partner, copied), partner.takes});
      pair.others.emplace_back();
    }
    for (const Copied& each : copied) copies_bytes_ = std::max(copies_bytes_, each.to.offset + each.bytes);
  }

  /// What a partner reads and this rank overwrites, and where its copy is.
  struct Copied {
    StreamPlace from;
    std::size_t bytes = 0;
    StreamPlace to;
  };

  std::vector<Copied> overwritten(const ExchangeStep& step) const {
    Exchange exchange;
    exchange.own = {at(step.own), step.own_bytes};
    exchange.result = step.keeps ? at(step.result) : nullptr;
    exchange.reduction = step.reduction;
    std::vector<Copied> copied;
    std::size_t end = 0;
    for (const ExchangeStep::Partner& partner : step.partners) {
      if (partner.gives_bytes == 0 || !exchange.overwrites({at(partner.gives), partner.gives_bytes}))
        continue;
      if (find(partner, copied) != nullptr) continue;
      // As the original, so that vectors stay vectors.
      const std::size_t offset = end + reinterpret_cast<std::uintptr_t>(at(partner.gives)) % kVector;
      copied.push_back({partner.gives, partner.gives_bytes, {StreamMemory::copies, offset}});
      end = (offset + partner.gives_bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    return copied;
  }
  static const Copied* find(const ExchangeStep::Partner& partner, const std::vector<Copied>& copied) {
    const auto found = std::ranges::find_if(copied, [&](const Copied& each) {
      return each.from.memory == partner.gives.memory && each.from.offset == partner.gives.offset &&
             each.bytes == partner.gives_bytes;
    });
    return found == copied.end() ? nullptr : &*found;
  }
  static StreamPlace given(const ExchangeStep::Partner& partner, const std::vector<Copied>& copied) {
    const Copied* const copy = find(partner, copied);
    return copy == nullptr ? partner.gives : copy->to;
  }

  void swap() {
    std::map<Rank, std::vector<std::byte>> out;
    std::map<Rank, std::vector<std::byte>> in;
    std::vector<RankGpu::Letter> letters;
    for (auto& [rank, pair] : pairs_) {
      in[rank].resize(sizeof(Introduction) + pair.others.size() * sizeof(Offer));
      out[rank] = letter_to(rank, pair);
      letters.push_back({rank, out[rank], in[rank]});
    }
    gpu_.swap(letters);
    for (auto& [rank, pair] : pairs_) {
      std::memcpy(&pair.introduction, in[rank].data(), sizeof(Introduction));
      if (pair.introduction.number != options_.number)
        usage_error(
            "rank {} gives a collective other new buffers than rank {}; give all ranks new buffers at once",
            rank, gpu_.rank());
      if (!pair.others.empty())
        std::memcpy(pair.others.data(), in[rank].data() + sizeof(Introduction),
                    pair.others.size() * sizeof(Offer));
    }
  }

  std::vector<std::byte> letter_to(Rank rank, const Pair& pair) {
    std::array<bool, kStreamMemories> used{};
    for (const Offer& offer : pair.own) {
      used[static_cast<std::size_t>(offer.gives.memory)] = true;
      used[static_cast<std::size_t>(offer.takes.memory)] = true;
    }
    Introduction introduction{.number = options_.number, .memory = {}};
    for (std::size_t m = 0; m < kStreamMemories; ++m) {
      if (used[m] && memory_[m] != nullptr) introduction.memory[m] = gpu_.locate(rank, {memory_[m], 1});
    }
    std::vector<std::byte> letter(sizeof introduction + pair.own.size() * sizeof(Offer));
    std::memcpy(letter.data(), &introduction, sizeof introduction);
    if (!pair.own.empty())
      std::memcpy(letter.data() + sizeof introduction, pair.own.data(), pair.own.size() * sizeof(Offer));
    return letter;
  }

  // Then the commands.

  /// Of the command that is added next, from 1.
  std::uint32_t number() const { return static_cast<std::uint32_t>(binding_.commands.size() + 1); }

  template <typename Step>
  void add(const Step& step) {
    binding_.commands.emplace_back(step);
  }
  void add(const CopyStep& step) {
    if (at(step.from) == at(step.to) || step.bytes == 0) return;
    binding_.commands.emplace_back(CopyCommand{at(step.to), at(step.from), step.bytes});
  }

  void add(const ReduceStep& step) {
    ReduceCommand command{step.reduction, {}, at(step.result), step.count, step.aside};
    for (const StreamPlace operand : step.operands) command.operands.push_back(at(operand));
    binding_.commands.emplace_back(std::move(command));
  }

  void add(const ExchangeStep& step) {
    const std::vector<Copied> copied = overwritten(step);
    ExchangeCommand command{false, step.reduction, 1, std::make_unique<ExchangeArguments>()};
    ExchangeArguments& arguments = *command.arguments;
    set_buffers(step, command);
    words_.fill(arguments);
    for (const ExchangeStep::Partner& partner : step.partners) {
      const auto p = static_cast<std::size_t>(arguments.peer_count++);
      arguments.theirs[p] = words_.exchange_words(partner.rank);
      arguments.places[p] = words_.place_of(partner.rank);
    }
    // The kernel makes one copy; more are rare.
    for (std::size_t i = 1; i < copied.size(); ++i)
      binding_.commands.emplace_back(CopyCommand{at(copied[i].to), at(copied[i].from), copied[i].bytes});
    if (!copied.empty()) {
      arguments.staged_from = at(copied.front().from);
      arguments.staging = at(copied.front().to);
      arguments.staged_bytes = static_cast<std::int64_t>(copied.front().bytes);
    }
    arguments.watch.number = number();
    const int alone = command.copies ? exchange_copy_blocks() : exchange_blocks(step.reduction);
    command.most_blocks = residency_.share(alone);
    binding_.commands.emplace_back(std::move(command));
  }

  /// Operands are in the order of the ranks.
  void set_buffers(const ExchangeStep& step, ExchangeCommand& command) {
    std::vector<const std::byte*> operands;
    std::vector<std::byte*> results;
    bool has_own = false;
    for (const ExchangeStep::Partner& partner : step.partners) {
      Pair& pair = pairs_.at(partner.rank);
      const Offer& offer = pair.others[pair.next++];
      if (!has_own && partner.rank > gpu_.rank()) {
        operands.push_back(at(step.own));
        has_own = true;
      }
      if (step.own_bytes == 0) continue;
      if (partner.read) operands.push_back(at(partner.rank, pair, offer.gives));
      if (partner.write) results.push_back(at(partner.rank, pair, offer.takes));
    }
    if (!has_own) operands.push_back(at(step.own));
    command.copies = operands.size() == 1;
    if (command.copies) {  // it only hands on
      command.arguments->reduce =
          copy_arguments(results, operands.front(), results.empty() ? 0 : step.own_bytes);
      return;
    }
    if (step.keeps) results.push_back(at(step.result));
    const Count count = static_cast<Count>(step.own_bytes) / size_of(step.reduction.kind);
    command.arguments->reduce = reduce_arguments(step.reduction, results, operands, count);
  }

  void add(const GroupStep& group) {
    if (!options_.by_nccl) return add_messages(group);
    NcclCommand command;
    for (const GroupStep::Message& message : group.receives)
      command.receives.push_back({message.peer, at(message.place), message.count, message.kind});
    for (const GroupStep::Message& message : group.sends)
      command.sends.push_back({message.peer, at(message.place), message.count, message.kind});
    binding_.commands.emplace_back(std::move(command));
  }

  /// As few kernels as hold the copies.
  void add_messages(const GroupStep& group) {
    MessageArguments common{};
    words_.fill(common);
    for (const GroupStep::Message& message : group.receives) {
      const std::uint8_t place = words_.place_of(message.peer);
      std::uint8_t* const end = common.sender_places + common.sender_count;
      if (std::find(common.sender_places, end, place) != end) continue;
      common.senders[common.sender_count] = words_.message_words(message.peer);
      common.sender_places[common.sender_count++] = place;
    }
    for (const GroupStep::Message& message : group.sends) {
      const std::uint8_t place = words_.place_of(message.peer);
      std::uint8_t* const end = common.receiver_places + common.receiver_count;
      if (std::find(common.receiver_places, end, place) != end) continue;
      common.receivers[common.receiver_count] = words_.message_words(message.peer);
      common.receiver_places[common.receiver_count++] = place;
    }
    std::size_t next = 0;
    do {
      auto arguments = std::make_unique<MessageArguments>(common);
      arguments->begins = next == 0;
      for (; next < group.sends.size() && arguments->copy_count < kMostMessages; ++next)
        arguments->copies[arguments->copy_count++] = copy_of(group.sends[next]);
      arguments->ends = next == group.sends.size();
      arguments->watch.number = number();
      binding_.commands.emplace_back(
          MessageCommand{residency_.share(message_blocks()), std::move(arguments)});
    } while (next < group.sends.size());
  }

  MessageCopy copy_of(const GroupStep::Message& message) {
    Pair& pair = pairs_.at(message.peer);
    const Offer& offer = pair.others[pair.next++];
    return {at(message.place), at(message.peer, pair, offer.takes),
            static_cast<std::int64_t>(bytes_of(message.count, message.kind).value)};
  }

  RankGpu& gpu_;
  const StreamWords& words_;
  const StreamPlan& plan_;
  const Residency& residency_;
  const BindingOptions& options_;
  std::array<std::byte*, kStreamMemories> memory_{};
  std::map<Rank, Pair> pairs_;
  std::size_t copies_bytes_ = 0;
  StreamBinding binding_;
};

}  // namespace

Residency::Residency(int device, std::size_t ranks_on_gpu)
    : multiprocessors_(multiprocessors(device)), ranks_(static_cast<int>(ranks_on_gpu)) {}

/// Where kernels of several ranks meet, they need unequal parts of a multiprocessor, but none more than a
/// half.
int Residency::share(int blocks_alone) const {
  if (ranks_ == 1) return blocks_alone;
  return std::min(blocks_alone, kBlocksOfEach * multiprocessors_) / ranks_;
}

StreamBinding bind(RankGpu& gpu, const StreamWords& words, const StreamPlan& plan, const Residency& residency,
                   const BindingOptions& options) {
  return Binder(gpu, words, plan, residency, options).run();
}

}  // namespace polyring::cuda
