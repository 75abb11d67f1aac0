#include "collectives/library/c/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "collectives/library/c/failure.hpp"
#include "collectives/library/c/gpu_buffers.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring::library {

/// What a rank calls, as the others see it.
struct Called {
  std::int64_t collective = 0;  // a Collective, or one of the two below
  std::int64_t count = 0;
  std::int64_t kind = 0;
  std::int64_t op = 0;
  std::int64_t root = -1;  // of a broadcast

  bool operator==(const Called&) const = default;
};

namespace {

constexpr std::int64_t kBarrier = -1;
constexpr std::int64_t kFree = -2;
constexpr Count kWords = sizeof(Called) / sizeof(std::int64_t);

std::string to_text(const Called& called) {
  if (called.collective == kBarrier) return "a barrier";
  if (called.collective == kFree) return "polyring_comm_free()";
  const auto kind = static_cast<ElementKind>(called.kind);
  if (called.root >= 0)
    return fmt::format("a broadcast of {} {} from rank {}", called.count, polyring::to_text(kind),
                       called.root);
  const auto collective = static_cast<Collective>(called.collective);
  const std::string text =
      fmt::format("{} of {} {}", polyring::to_text(collective), called.count, polyring::to_text(kind));
  if (collective == Collective::allgather) return text;
  return fmt::format("{} by {}", text, polyring::to_text(static_cast<ReduceOp>(called.op)));
}

constexpr const char* kAborted = "the program has aborted the communicator; free it";

/// Every rank compares with rank 0, so all find the same ranks.
void compare(std::span<const Called> all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw MismatchError(
        fmt::format("rank 0 calls {}, and rank {} calls {}; all ranks must call the same in the same order",
                    to_text(all[0]), rank, to_text(all[rank])));
  }
}

/// Nothing for host memory.
std::optional<GpuDevice> find_gpu(int gpu) {
  if (gpu == kHostMemory) return std::nullopt;
  const LoadedGpuPlugin& loaded = gpu_plugin();
  if (loaded.plugin == nullptr) {
    throw Error(
        ExitCode::not_available,
        fmt::format("GPUs cannot be used: {}; name Polyring's plug-in for CUDA in POLYRING_CUDA_PLUGIN, or "
                    "create the communicator for host memory",
                    loaded.why_not));
  }
  std::vector<GpuDevice> gpus = loaded.plugin->gpus();
  if (gpu >= std::ssize(gpus)) {
    throw Error(ExitCode::not_available, fmt::format("there is no GPU {}: this process sees {}, from 0 on",
                                                     gpu, counted(std::ssize(gpus), "GPU")));
  }
  return std::move(gpus[index(gpu)]);
}

}  // namespace

Group::Group(std::unique_ptr<Bootstrap> bootstrap, GroupOptions options)
    : bootstrap_(std::move(bootstrap)),
      check_(options.check),
      gpu_(find_gpu(options.gpu)),
      processes_(*bootstrap_),
      planning_(plan_by_topology(*bootstrap_, gpu_ ? gpu_->pci : "")),
      communicator_(*bootstrap_, completed(std::move(options.communicator))) {
  is_created_ = true;
}

CommunicatorOptions Group::completed(CommunicatorOptions options) {
  if (gpu_) options.device = to_gpu(need_gpu_plugin(), *bootstrap_, *gpu_);
  options.planner = planning_.planner.get();
  std::function<void()>& idle = options.rules ? options.rules->idle : options.idle;
  if (!idle) {
    idle = [this] {
      if (aborted_) throw Error(ExitCode::mpi, kAborted);
      if (!is_created_) return processes_.check();  // all ranks are needed for that
      processes_.check([this] { return communicator_.transport().awaited(); });
    };
  }
  return options;
}

/// A rank that has its result may still be needed: by one that has yet to open its memory. Whoever gets
/// through the second of two barriers knows that all have been through the first, with this memory open.
void Group::end() {
  const std::lock_guard lock(mutex_);
  std::exception_ptr failure;
  if (!communicator_.failure() && operations_.empty()) {
    try {
      agree(Called{.collective = kFree});
      meet();
      meet();
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  give_up();
  deregister_all();
  if (failure) std::rethrow_exception(failure);
}

/// The operations stay, so that whoever waits for one is told.
void Group::abort() {
  aborted_ = true;  // ends the call of a thread that has the lock
  const std::lock_guard lock(mutex_);
  communicator_.give_up(Error(ExitCode::mpi, kAborted));
}

void Group::give_up() noexcept {
  communicator_.give_up(Error(ExitCode::usage, "the communicator was freed"));
  operations_.clear();
}

void Group::check(const CollectiveOf& what, const void* input, const void* output) const {
  if (what.count == 0) return;
  if (input == nullptr || output == nullptr)
    usage_error("a buffer is a null pointer; only one of 0 elements may be");
  constexpr Count kMost = Count{1} << 59;  // their bytes are a Count, too
  if (what.count > kMost) usage_error("{} elements are too many for any memory; give fewer", what.count);
  check_buffers(what.collective, communicator_.size(), communicator_.rank(), what.count, size_of(what.kind),
                static_cast<const std::byte*>(input), static_cast<const std::byte*>(output));
}

Group::Buffers Group::buffers_of(const CollectiveOf& what, const void* input, void* output) const {
  const auto bytes = [&](Count count) { return index(count * size_of(what.kind)); };
  const int ranks = communicator_.size();
  return {{static_cast<const std::byte*>(input), bytes(input_count(what.collective, ranks, what.count))},
          {static_cast<std::byte*>(output), bytes(output_count(what.collective, ranks, what.count))}};
}

/// Throws a usage Error where a buffer is not in the memory of the communicator.
void Group::check_places(const CollectiveOf& what, const void* input, void* output) {
  if (!gpu_ || what.count == 0) return;
  if (communicator_.failure()) throw *communicator_.failure();  // CUDA may say nothing any more
  breaking([&] {
    const auto [in, out] = buffers_of(what, input, output);
    is_reached(gpu_->index, in, "the input");
    is_reached(gpu_->index, out, "the output");
  });
}

/// Before anything else is done.
void Group::agree(const Called& own) {
  if (!check_) return;
  std::vector<Called> all(index(communicator_.size()));
  run_small({Collective::allgather, kWords * communicator_.size(), ElementKind::int64},
            std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  compare(all);
}

void Group::agree(const CollectiveOf& what, int root) {
  agree({static_cast<std::int64_t>(what.collective), what.count, static_cast<std::int64_t>(what.kind),
         static_cast<std::int64_t>(what.op), root});
}

/// What was enqueued uses the same memory and words of the transport.
void Group::run_now(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  finish_enqueued();
  finish(started(what, input, output));
}

/// Waits for it.
void Group::finish(Started now) {
  now.operation.wait();
  if (now.finish) breaking(now.finish);
}

/// Memory of the GPU that other ranks do not reach takes part by a copy.
Group::Started Group::started(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  if (!gpu_) return {communicator_.start(what, input, output)};
  if (communicator_.failure()) throw *communicator_.failure();
  std::shared_ptr<GpuBuffers> buffers;
  breaking([&] {
    const auto [in, out] = buffers_of(what, input, output);
    buffers = std::make_shared<GpuBuffers>(communicator_, gpu_->index, in, out);
  });
  return {communicator_.start(what, buffers->input(), buffers->output()), [buffers] { buffers->finish(); }};
}

/// What this rank alone lacks breaks the communicator: the others wait for it.
template <typename Action>
void Group::breaking(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) communicator_.give_up(error);
    throw;
  }
}

/// From and to host memory.
void Group::run_small(const CollectiveOf& what, std::span<const std::byte> input,
                      std::span<std::byte> output) {
  Transport& transport = communicator_.transport();
  if (!transport.on_device()) return run_now(what, input.data(), output.data());
  Memory from;
  Memory to;
  breaking([&] {
    from = communicator_.allocate({input.size()});
    to = communicator_.allocate({output.size()});
    transport.upload(from.get(), input);
  });
  run_now(what, from.get(), to.get());
  transport.download(output, to.get());
}

Group::Request Group::start(CollectiveOf what, const void* input, void* output) {
  const std::lock_guard lock(mutex_);
  check(what, input, output);
  check_places(what, input, output);
  agree(what, -1);
  if (what.count == 0) return ++last_;  // is over
  finish_enqueued();
  Started now = started(what, static_cast<const std::byte*>(input), static_cast<std::byte*>(output));
  const auto [in, out] = buffers_of(what, input, output);
  now.buffers = {in, out};
  return keep(std::move(now));
}

void Group::run(CollectiveOf what, const void* input, void* output) {
  const std::lock_guard lock(mutex_);
  check(what, input, output);
  check_places(what, input, output);
  agree(what, -1);
  if (what.count == 0) return;
  run_now(what, static_cast<const std::byte*>(input), static_cast<std::byte*>(output));
}

Group::Request Group::keep(Started started) {
  operations_.emplace(++last_, std::move(started));
  return last_;
}

Group::Request Group::start_broadcast(void* buffer, Count count, ElementKind kind, int root) {
  const std::lock_guard lock(mutex_);
  if (root < 0 || root >= communicator_.size())
    usage_error("there is no root {} of {} ranks; ranks count from 0", root, communicator_.size());
  const CollectiveOf what{Collective::allreduce, count, kind};
  check(what, buffer, buffer);
  check_places(what, buffer, buffer);
  agree(what, root);
  if (count == 0) return ++last_;  // is over
  if (communicator_.failure()) throw *communicator_.failure();
  finish_enqueued();  // it may use the buffer
  const std::span data(static_cast<std::byte*>(buffer), bytes_of(count, kind).value);
  Started now;
  breaking([&] { now = started_broadcast(data.data(), data.size(), communicator_.rank() == root); });
  now.buffers[0] = data;
  return keep(std::move(now));
}

/// A sum of whole numbers has the root's bits, whatever they mean.
Group::Started Group::started_broadcast(std::byte* data, std::size_t bytes, bool sends) {
  constexpr std::size_t kWord = sizeof(std::int32_t);
  const std::size_t words = (bytes + kWord - 1) / kWord;
  const CollectiveOf what{Collective::allreduce, static_cast<Count>(words), ElementKind::int32};
  if (bytes % kWord == 0 && reinterpret_cast<std::uintptr_t>(data) % kWord == 0) {
    if (!sends) set_to_zero({data, bytes});
    return started(what, data, data);
  }
  // Padded to whole words, in other memory.
  Transport& transport = communicator_.transport();
  std::vector<std::byte> padded(words * kWord);
  const std::span<std::byte> filled = std::span(padded).first(bytes);
  if (sends) transport.download(filled, data);
  const auto memory = std::make_shared<Memory>(communicator_.allocate({padded.size()}));
  transport.upload(memory->get(), padded);
  return {communicator_.start(what, memory->get(), memory->get()), [&transport, memory, data, bytes, sends] {
            if (sends) return;
            std::vector<std::byte> received(bytes);
            transport.download(received, memory->get());
            transport.upload(data, received);
          }};
}

void Group::set_to_zero(std::span<std::byte> data) const {
  Transport& transport = communicator_.transport();
  if (!transport.on_device()) return void(std::memset(data.data(), 0, data.size()));
  const std::vector<std::byte> zeros(std::min(data.size(), std::size_t{16} << 20));
  for (std::size_t done = 0; done < data.size(); done += zeros.size())
    transport.upload(data.data() + done, std::span(zeros).first(std::min(zeros.size(), data.size() - done)));
}

void Group::barrier() {
  const std::lock_guard lock(mutex_);
  agree(Called{.collective = kBarrier});
  meet();
}

/// Nobody has the sum before all have given their number.
Group::Request Group::start_barrier() {
  const std::lock_guard lock(mutex_);
  agree(Called{.collective = kBarrier});
  finish_enqueued();
  if (communicator_.failure()) throw *communicator_.failure();
  const auto word = std::make_shared<Memory>();
  breaking([&] { *word = communicator_.allocate({sizeof(std::int32_t)}); });
  const CollectiveOf what{Collective::allreduce, 1, ElementKind::int32};
  return keep({communicator_.start(what, word->get(), word->get()), [word] {}});
}

void Group::meet() {
  std::int32_t word = 0;
  std::int32_t sum = 0;
  run_small({Collective::allreduce, 1, ElementKind::int32}, std::as_bytes(std::span(&word, 1)),
            std::as_writable_bytes(std::span(&sum, 1)));
}

/// Made when it is first called for.
GpuCollective& Group::enqueued(const CollectiveOf& what) {
  const auto known = on_stream_.find(what);
  if (known != on_stream_.end()) return *known->second;
  std::string why_not;
  std::unique_ptr<GpuCollective> collective = need_gpu_plugin().make_collective(
      communicator_.transport(), communicator_.plan(what).plan, what, why_not);
  if (!collective) {
    throw Error(ExitCode::not_available, fmt::format("{} cannot be enqueued: {}; run it instead",
                                                     polyring::to_text(what.collective), why_not));
  }
  return *on_stream_.emplace(what, std::move(collective)).first->second;
}

void Group::enqueue(const CollectiveOf& what, const void* input, void* output, void* stream) {
  const std::lock_guard lock(mutex_);
  if (!gpu_)
    usage_error("this communicator's buffers are in host memory, and no stream's; create it with a GPU");
  check(what, input, output);
  if (what.count != 0) {
    const auto [in, out] = buffers_of(what, input, output);
    check_allocated(in);
    check_allocated(out);
  }
  agree(what, -1);
  if (what.count == 0) return;
  if (communicator_.failure()) throw *communicator_.failure();
  for (auto& [request, started] : operations_) started.operation.wait();
  attempt_enqueued([&] {
    enqueued(what).start_on(stream, static_cast<const std::byte*>(input), static_cast<std::byte*>(output));
  });
}

void Group::wait_for_enqueued() {
  const std::lock_guard lock(mutex_);
  if (communicator_.failure()) throw *communicator_.failure();
  finish_enqueued();
}

void Group::wait_for_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  if (!gpu_)
    usage_error("this communicator's buffers are in host memory, and no stream's; create it with a GPU");
  if (communicator_.failure()) throw *communicator_.failure();
  try {
    need_gpu_plugin().finish(communicator_.transport(), stream);
  } catch (const Error& error) {
    if (error.code() != ExitCode::timeout) communicator_.give_up(error);  // the program's work may be long
    throw;
  }
}

void Group::finish_enqueued() {
  for (auto& enqueued : on_stream_) attempt_enqueued([&] { enqueued.second->wait(); });
}

/// What fails on a stream has broken the transport.
template <typename Action>
void Group::attempt_enqueued(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage && error.code() != ExitCode::not_available)
      communicator_.give_up(error);
    throw;
  }
}

bool Group::test(Request request) {
  const std::lock_guard lock(mutex_);
  const auto found = operations_.find(request);
  if (found == operations_.end()) return true;
  try {
    if (!found->second.operation.test()) return false;
  } catch (...) {
    operations_.erase(found);
    throw;
  }
  const auto over = operations_.extract(found);
  if (over.mapped().finish) breaking(over.mapped().finish);
  return true;
}

void Group::wait(Request request) {
  const std::lock_guard lock(mutex_);
  const auto found = operations_.find(request);
  if (found == operations_.end()) return;
  finish(std::move(operations_.extract(found).mapped()));  // it is over, or has failed, on return
}

}  // namespace polyring::library
