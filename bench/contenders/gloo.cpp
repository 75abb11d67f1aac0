#include "bench/contenders/gloo.hpp"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <span>

#include "base/error.hpp"
#include "collectives/runtime/kernels.hpp"
#include "collectives/runtime/net/address.hpp"

namespace polyring {
namespace {

/// Where ranks leave the addresses at which they listen. Every rank sets one value before it reads others':
/// all are exchanged at that moment.
class RankStore final : public gloo::rendezvous::Store {
 public:
  explicit RankStore(const World& world) : world_(world) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const auto keys = world_.allgather(std::as_bytes(std::span(key)));
    const auto values = world_.allgather(std::as_bytes(std::span(data)));
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      values_[text(keys[rank])] = {chars(values[rank]), chars(values[rank]) + values[rank].size()};
    }
  }
  std::vector<char> get(const std::string& key) override { return values_.at(key); }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  static const char* chars(const std::vector<std::byte>& bytes) {
    return reinterpret_cast<const char*>(bytes.data());
  }
  static std::string text(const std::vector<std::byte>& bytes) { return {chars(bytes), bytes.size()}; }

  const World& world_;
  std::map<std::string, std::vector<char>> values_;
};

/// Gloo's own sentences begin with "[file:line] ", and it has no type for a time that is over.
template <typename Action>
void guard(const std::string& algorithm, Action&& action) {
  try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    std::string_view sentence = error.what();
    if (sentence.starts_with('[')) sentence.remove_prefix(std::min(sentence.find("] ") + 2, sentence.size()));
    const bool late = sentence.find("imed out") != sentence.npos || sentence.find("timeout") != sentence.npos;
    throw Error(late ? ExitCode::timeout : ExitCode::internal, fmt::format("{}: {}", algorithm, sentence));
  }
}

// What Gloo's templates are made for: it looks at an element's size only, ours is the function that combines.
template <typename Word, ElementKind kind, ReduceOp op>
void combine(Word* result, const Word* other, std::size_t count) {
  auto* bytes = reinterpret_cast<std::byte*>(result);
  combine_on_host(kind, op, bytes, bytes, reinterpret_cast<const std::byte*>(other),
                  static_cast<Count>(count));
}

template <typename Word, ElementKind kind>
auto* combine_function(ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return &combine<Word, kind, ReduceOp::prod>;
    case ReduceOp::min:
      return &combine<Word, kind, ReduceOp::min>;
    case ReduceOp::max:
      return &combine<Word, kind, ReduceOp::max>;
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  return &combine<Word, kind, ReduceOp::sum>;
}

/// Calls action(Word{}, function), Word being as large as an element of this kind.
template <typename Action>
auto with_word(ElementKind kind, ReduceOp op, Action&& action) {
  switch (kind) {
    case ElementKind::float16:
      return action(std::uint16_t{}, combine_function<std::uint16_t, ElementKind::float16>(op));
    case ElementKind::bfloat16:
      return action(std::uint16_t{}, combine_function<std::uint16_t, ElementKind::bfloat16>(op));
    case ElementKind::int32:
      return action(std::uint32_t{}, combine_function<std::uint32_t, ElementKind::int32>(op));
    case ElementKind::float64:
      return action(std::uint64_t{}, combine_function<std::uint64_t, ElementKind::float64>(op));
    case ElementKind::int64:
      return action(std::uint64_t{}, combine_function<std::uint64_t, ElementKind::int64>(op));
    case ElementKind::float32:
      break;
  }
  return action(std::uint32_t{}, combine_function<std::uint32_t, ElementKind::float32>(op));
}

using Context = std::shared_ptr<gloo::Context>;

class GlooAllreduce : public CollectiveCall {
 public:
  GlooAllreduce(Context context, std::string algorithm, ElementKind kind, ReduceOp op, Count count)
      : context_(std::move(context)), algorithm_("gloo:" + algorithm), kind_(kind), op_(op), count_(count) {}

  std::string algorithm() const override { return algorithm_; }
  bool keeps_time_limit() const override { return true; }
  std::string implementation() const override { return "Gloo " + gloo_version(); }

  void run(const std::byte* input, std::byte* output) final {
    if (count_ == 0) return;
    if (context_->size > 1) {
      guard(algorithm_, [&] { reduce(input, output); });
    } else if (input != output) {
      std::memcpy(output, input, bytes());
    }
    if (op_ == ReduceOp::avg) divide_on_host(kind_, output, count_, context_->size);
  }

 protected:
  virtual void reduce(const std::byte* input, std::byte* output) = 0;
  std::size_t bytes() const { return bytes_of(count_, kind_).value; }

  Context context_;
  std::string algorithm_;
  ElementKind kind_;
  ReduceOp op_;
  Count count_;
};

/// gloo::allreduce: takes its buffers in each call.
class FreeFunction final : public GlooAllreduce {
 public:
  using Algorithm = gloo::AllreduceOptions::Algorithm;

  FreeFunction(Context context, std::string name, Algorithm which, ElementKind kind, ReduceOp op, Count count)
      : GlooAllreduce(std::move(context), std::move(name), kind, op, count), which_(which) {}

 private:
  void reduce(const std::byte* input, std::byte* output) override {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(which_);
    options.setReduceFunction(
        [kind = kind_, op = op_](void* result, const void* left, const void* right, std::size_t count) {
          combine_on_host(kind, op, static_cast<std::byte*>(result), static_cast<const std::byte*>(left),
                          static_cast<const std::byte*>(right), static_cast<Count>(count));
        });
    with_word(kind_, op_, [&](auto word, auto*) {
      using Word = decltype(word);
      const auto count = static_cast<std::size_t>(count_);
      // Gloo has no read-only buffers, and only reads this one.
      if (input != output) options.setInput(reinterpret_cast<Word*>(const_cast<std::byte*>(input)), count);
      options.setOutput(reinterpret_cast<Word*>(output), count);
    });
    gloo::allreduce(options);
  }

  Algorithm which_;
};

/// The classes of Gloo's older interface: made for one buffer, in which they reduce. They number their
/// messages from a counter, so that no rank can make its object anew unless all do: the first run decides.
template <template <typename> class Algorithm>
class BoundAllreduce final : public GlooAllreduce {
 public:
  using GlooAllreduce::GlooAllreduce;

  ~BoundAllreduce() override {
    try {
      if (std::uncaught_exceptions() == 0) unbind();
    } catch (const std::exception&) {
      // A rank has gone, and what was sent to it with it.
    }
  }

 private:
  void reduce(const std::byte* input, std::byte* output) override {
    if (output != bound_to_) bind(output);
    if (input != output) std::memcpy(output, input, bytes());
    has_run_ = false;
    bound_->run();
    has_run_ = true;
  }

  /// Collective. When a run ends here, its last messages may be waiting in Gloo's thread, which reads them
  /// from the object; when it has ended on all ranks, they have arrived.
  void unbind() {
    if (!has_run_) return;
    has_run_ = false;
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  void bind(std::byte* buffer) {
    unbind();
    bound_.reset();
    with_word(kind_, op_, [&](auto word, auto* combine) {
      using Word = decltype(word);
      const auto function = std::make_shared<gloo::ReductionFunction<Word>>(gloo::CUSTOM, combine);
      bound_ =
          std::make_unique<Algorithm<Word>>(context_, std::vector<Word*>{reinterpret_cast<Word*>(buffer)},
                                            static_cast<int>(count_), function.get());
      function_ = function;
      bound_to_ = buffer;
    });
  }

  std::shared_ptr<void> function_;  // the algorithm's
  std::unique_ptr<gloo::Algorithm> bound_;
  const std::byte* bound_to_ = nullptr;
  bool has_run_ = false;  // to its end, and not been waited for since
};

}  // namespace

struct Gloo::Connections {
  std::shared_ptr<gloo::transport::Device> device;
  Context context;
};

bool has_gloo() { return true; }

std::string gloo_version() {
  return fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
}

Gloo::Gloo(const World& world, const std::string& interface, Seconds timeout)
    : connections_(std::make_unique<Connections>()) {
  const bool several_hosts = world.nodes() > 1;
  gloo::transport::tcp::attr where;
  where.hostname = choose_address(network_interfaces(), interface, default_interface(), several_hosts);
  guard("gloo", [&] {
    connections_->device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(world.rank(), world.size());
    context->setTimeout(
        std::chrono::milliseconds(std::max<std::int64_t>(1, std::llround(timeout.value * 1e3))));
    RankStore store(world);
    context->connectFullMesh(store, connections_->device);
    connections_->context = std::move(context);
  });
}

Gloo::~Gloo() = default;

std::unique_ptr<CollectiveCall> Gloo::make(const std::string& algorithm, ElementKind kind, ReduceOp op,
                                           Count count) {
  const Context& context = connections_->context;
  if (algorithm == "ring-chunked") {
    return std::make_unique<BoundAllreduce<gloo::AllreduceRingChunked>>(context, algorithm, kind, op, count);
  }
  if (algorithm == "halving-doubling") {
    return std::make_unique<BoundAllreduce<gloo::AllreduceHalvingDoubling>>(context, algorithm, kind, op,
                                                                            count);
  }
  const auto which = algorithm == "ring" ? FreeFunction::Algorithm::RING : FreeFunction::Algorithm::BCUBE;
  return std::make_unique<FreeFunction>(context, algorithm, which, kind, op, count);
}

}  // namespace polyring
