#include "collectives/cuda/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/host_name.hpp"
#include "collectives/cuda/nccl_calls.hpp"
#include "collectives/cuda/nccl_ranks.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/cause.hpp"

namespace polyring {
namespace {

// The first versions with memory that can be registered, and with symmetric memory.
constexpr int kWithRegistered = 21900;
constexpr int kWithSymmetric = 22700;

ncclDataType_t type_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::float32:
      return ncclFloat32;
    case ElementKind::float64:
      return ncclFloat64;
    case ElementKind::float16:
      return ncclFloat16;
    case ElementKind::bfloat16:
      return ncclBfloat16;
    case ElementKind::int32:
      return ncclInt32;
    case ElementKind::int64:
      return ncclInt64;
  }
  return ncclFloat32;
}

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::prod:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::avg:
      return ncclAvg;
  }
  return ncclSum;
}

/// What a thread of its own finds out about a start that blocks.
struct BlockingStart {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<ncclResult_t> result;
  ncclComm_t communicator = nullptr;
};

}  // namespace

/// The calls of NcclCommunicator. The mutex is held during each call of NCCL, and not while waiting, so that
/// abort() never frees what another thread's call uses.
class NcclCommunicator::State {
 public:
  State(const NcclLibrary& library, const Bootstrap& bootstrap, const NcclDevice& device,
        const NcclOptions& options)
      : library_(library),
        calls_(library.calls()),
        rank_(bootstrap.rank()),
        size_(bootstrap.size()),
        device_(device.index),
        who_(fmt::format("rank {} on {} (GPU {})", rank_, own_host_name(), device_)),
        limit_(options.limit),
        yields_(options.yields),
        blocking_(options.blocking || calls_.ncclCommInitRankConfig == nullptr) {}

  Rank rank() const { return rank_; }
  int size() const { return size_; }

  void start(const ncclUniqueId& id) { blocking_ ? start_and_wait(id) : start_without_blocking(id); }

  /// Waits for the others' ends.
  void finish();

  /// An operation on the communicator: notes it, and calls it.
  template <typename Call>
  void operate(const char* name, Count count, ElementKind kind, ReduceOp op, Call&& call) {
    if (!library_.reduces(kind, op)) refuse(kind, op);
    last_ = {name, last_.number + 1, count, kind};
    run(name, [&](ncclComm_t communicator) { return call(calls_, communicator); });
  }

  void group(const std::function<void()>& calls);
  Memory allocate(Bytes bytes, NcclMemory kind, const std::shared_ptr<State>& self);
  void check();
  void wait(const std::function<bool()>& done, int operations);
  void abort(const std::string& why);
  int add_graph(std::function<void()> destroy);
  void forget_graph(int number);

 private:
  struct Operation {
    const char* name = "none";
    std::uint64_t number = 0;
    Count count = 0;
    ElementKind kind = ElementKind::float32;
  };

  template <typename Call>
  void run(const char* name, Call&& call) {
    std::unique_lock lock(mutex_);
    need_communicator();
    const ncclResult_t result = call(communicator_.load());
    if (in_group_ && result == ncclInProgress) return;  // the group's end waits
    lock.unlock();
    settle(name, result);
  }

  void start_without_blocking(const ncclUniqueId& id);
  void start_and_wait(const ncclUniqueId& id);
  void need_communicator() const;
  ncclResult_t progress();
  void settle(const char* name, ncclResult_t result);
  std::string explain(ncclResult_t result);
  void end_group_after_failure();
  [[noreturn]] void refuse(ElementKind kind, ReduceOp op) const;
  [[noreturn]] void time_out(const std::string& what, Seconds limit);
  [[noreturn]] void fail(const Error& error);

  struct Registered {
    void* handle = nullptr;  // null: NCCL does not take it
    std::function<ncclResult_t(ncclComm_t, void*)> deregister;
  };
  Registered register_locally(void* memory, Bytes bytes);
  Registered register_window(void* memory, Bytes bytes);
  void deregister(const std::byte* memory);

  const NcclLibrary& library_;
  const NcclCalls& calls_;
  const Rank rank_;
  const int size_;
  const int device_;
  const std::string who_;
  const Seconds limit_;
  const bool yields_;
  const bool blocking_;

  std::recursive_mutex mutex_;
  std::atomic<ncclComm_t> communicator_{nullptr};
  std::map<const std::byte*, Registered> registered_;
  std::optional<Error> failure_;  // the first
  bool in_group_ = false;
  Operation last_;

  std::mutex graphs_mutex_;
  std::map<int, std::function<void()>> graphs_;  // by their numbers: how to destroy them
  int next_graph_ = 0;
};

void NcclCommunicator::State::start_without_blocking(const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t communicator = nullptr;
  const ncclResult_t result = calls_.ncclCommInitRankConfig(&communicator, size_, id, rank_, &config);
  communicator_ = communicator;
  settle("ncclCommInitRankConfig", result);
}

void NcclCommunicator::State::start_and_wait(const ncclUniqueId& id) {
  const auto start = std::make_shared<BlockingStart>();
  std::thread([start, id, size = size_, rank = rank_, device = device_, init = calls_.ncclCommInitRank] {
    ncclComm_t communicator = nullptr;
    const ncclResult_t result =
        cudaSetDevice(device) == cudaSuccess ? init(&communicator, size, id, rank) : ncclUnhandledCudaError;
    const std::lock_guard lock(start->mutex);
    start->communicator = communicator;
    start->result = result;
    start->changed.notify_all();
  }).detach();
  std::unique_lock lock(start->mutex);
  const std::chrono::duration<double> limit(limit_.value);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(limit);
  if (!start->changed.wait_until(lock, deadline, [&] { return start->result.has_value(); })) {
    time_out("ncclCommInitRank", limit_);
  }
  communicator_ = *start->result == ncclSuccess ? start->communicator : nullptr;
  settle("ncclCommInitRank", *start->result);
}

void NcclCommunicator::State::finish() {
  if (communicator_.load() == nullptr) return;
  if (calls_.ncclCommFinalize != nullptr) run("ncclCommFinalize", calls_.ncclCommFinalize);
  const std::lock_guard lock(mutex_);
  if (ncclComm_t const communicator = communicator_.exchange(nullptr)) calls_.ncclCommDestroy(communicator);
}

void NcclCommunicator::State::need_communicator() const {
  if (communicator_.load() != nullptr) return;
  if (failure_) throw Error(*failure_);
  throw Error(ExitCode::nccl,
              fmt::format("{}: the communicator of NCCL {} was aborted", who_, library_.version()));
}

/// ncclInProgress while the last call is not complete.
ncclResult_t NcclCommunicator::State::progress() {
  const std::lock_guard lock(mutex_);
  need_communicator();
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = calls_.ncclCommGetAsyncError(communicator_.load(), &state);
  return result == ncclSuccess ? state : result;
}

/// Waits for a call's end; then what it returned, or came to, must be a success.
void NcclCommunicator::State::settle(const char* name, ncclResult_t result) {
  Backoff backoff(limit_, true);
  while (result == ncclInProgress) {
    result = progress();
    if (result == ncclInProgress && !backoff.again()) time_out(name, limit_);
  }
  if (result == ncclSuccess) return;
  if (result == ncclRemoteError) let_the_cause_be_said();
  fail(Error(ExitCode::nccl, fmt::format("{}: {} of NCCL {} failed: {}; NCCL_DEBUG=WARN makes NCCL say more",
                                         who_, name, library_.version(), explain(result))));
}

std::string NcclCommunicator::State::explain(ncclResult_t result) {
  std::string text = calls_.ncclGetErrorString(result);
  const std::lock_guard lock(mutex_);
  const char* const last =
      calls_.ncclGetLastError == nullptr ? nullptr : calls_.ncclGetLastError(communicator_.load());
  if (last != nullptr && *last != 0) text += fmt::format(" ({})", last);
  return text;
}

void NcclCommunicator::State::refuse(ElementKind kind, ReduceOp op) const {
  throw Error(ExitCode::not_available,
              fmt::format("NCCL {} has no {}; use NCCL 2.10 or later", library_.version(),
                          kind == ElementKind::bfloat16 ? to_text(kind) : to_text(op)));
}

void NcclCommunicator::State::time_out(const std::string& what, Seconds limit) {
  fail(Error(
      ExitCode::timeout,
      fmt::format("{}: {} of NCCL {} has not ended within {}; NCCL_DEBUG=INFO shows what NCCL waits for",
                  who_, what, library_.version(), to_text(limit))));
}

void NcclCommunicator::State::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
  }
  if (!in_group_) abort("");  // else the group's end does, since NCCL must leave the group first
  throw Error(*failure_);
}

void NcclCommunicator::State::group(const std::function<void()>& calls) {
  std::unique_lock lock(mutex_);
  need_communicator();
  const char* name = "ncclGroupStart";
  ncclResult_t result = calls_.ncclGroupStart();
  if (result == ncclSuccess) {
    in_group_ = true;
    try {
      calls();
    } catch (...) {
      end_group_after_failure();
      throw;
    }
    in_group_ = false;
    name = "ncclGroupEnd";
    result = calls_.ncclGroupEnd();
  }
  lock.unlock();
  settle(name, result);
}

void NcclCommunicator::State::end_group_after_failure() {
  in_group_ = false;
  calls_.ncclGroupEnd();
  abort("a call within a group failed");
}

Memory NcclCommunicator::State::allocate(Bytes bytes, NcclMemory kind, const std::shared_ptr<State>& self) {
  const bool symmetric = kind == NcclMemory::symmetric;
  const std::string_view name = symmetric ? "symmetric" : "registered";
  const auto refusal = [&](std::string_view what, std::string_view remedy) -> Error {
    return {ExitCode::not_available,
            fmt::format("{}: NCCL {} {}; {}", who_, library_.version(), what, remedy)};
  };
  if (library_.version_code() < (symmetric ? kWithSymmetric : kWithRegistered))
    throw refusal(fmt::format("has no {} memory", name),
                  fmt::format("use NCCL {} or later, or leave -R out", symmetric ? "2.27" : "2.19"));
  void* made = nullptr;
  if (calls_.ncclMemAlloc(&made, std::max<std::size_t>(bytes.value, 1)) != ncclSuccess)
    throw refusal(fmt::format("has no {} of GPU memory left", to_text(bytes)), "use smaller sizes");
  Memory memory(static_cast<std::byte*>(made), [self](std::byte* owned) {
    self->deregister(owned);
    self->calls_.ncclMemFree(owned);
  });
  const Registered registered = symmetric ? register_window(made, bytes) : register_locally(made, bytes);
  if (registered.handle == nullptr)
    throw refusal(fmt::format("takes no {} memory here", name), "NCCL_DEBUG=INFO says why; or leave -R out");
  const std::lock_guard lock(mutex_);
  registered_.emplace(memory.get(), registered);
  return memory;
}

NcclCommunicator::State::Registered NcclCommunicator::State::register_locally(void* memory, Bytes bytes) {
  Registered registered{nullptr, calls_.ncclCommDeregister};
  run("ncclCommRegister", [&](ncclComm_t communicator) {
    return calls_.ncclCommRegister(communicator, memory, bytes.value, &registered.handle);
  });
  return registered;
}

NcclCommunicator::State::Registered NcclCommunicator::State::register_window(void* memory, Bytes bytes) {
#if NCCL_VERSION_CODE >= 22700
  ncclWindow_t window = nullptr;
  run("ncclCommWindowRegister", [&](ncclComm_t communicator) {
    return calls_.ncclCommWindowRegister(communicator, memory, bytes.value, &window, NCCL_WIN_COLL_SYMMETRIC);
  });
  return {window, [deregister = calls_.ncclCommWindowDeregister](ncclComm_t communicator, void* handle) {
            return deregister(communicator, static_cast<ncclWindow_t>(handle));
          }};
#else
  (void)memory, (void)bytes;
  return {};  // unknown to the header that this was built with
#endif
}

void NcclCommunicator::State::deregister(const std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto registered = registered_.extract(memory);
  ncclComm_t const communicator = communicator_.load();
  if (communicator != nullptr && registered)
    registered.mapped().deregister(communicator, registered.mapped().handle);
}

void NcclCommunicator::State::check() {
  const ncclResult_t result = progress();
  if (result != ncclInProgress) settle(last_.name, result);
}

void NcclCommunicator::State::wait(const std::function<bool()>& done, int operations) {
  const Seconds limit = operations * limit_;
  Backoff backoff(limit, yields_);
  while (!done()) {
    check();
    if (backoff.again()) continue;
    time_out(fmt::format("what runs on the stream up to operation {}, {} of {} {},", last_.number, last_.name,
                         last_.count, to_text(last_.kind)),
             limit);
  }
}

void NcclCommunicator::State::abort(const std::string& why) {
  // A call that blocks holds the mutex: this is what ends it.
  constexpr int kPolls = 1000;
  std::unique_lock lock(mutex_, std::defer_lock);
  for (int poll = 0; !lock.try_lock() && (!blocking_ || poll < kPolls); ++poll) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (lock.owns_lock() && !failure_) {
    failure_ = Error(ExitCode::nccl, fmt::format("{}: the communicator of NCCL {} was aborted: {}", who_,
                                                 library_.version(), why));
  }
  ncclComm_t const communicator = communicator_.exchange(nullptr);
  if (communicator == nullptr) return;
  std::map<int, std::function<void()>> graphs;
  {
    const std::lock_guard graphs_lock(graphs_mutex_);
    graphs.swap(graphs_);
  }
  for (const auto& [number, destroy] : graphs) destroy();
  calls_.ncclCommAbort(communicator);
}

int NcclCommunicator::State::add_graph(std::function<void()> destroy) {
  const std::lock_guard lock(graphs_mutex_);
  graphs_.emplace(next_graph_, std::move(destroy));
  return next_graph_++;
}

void NcclCommunicator::State::forget_graph(int number) {
  const std::lock_guard lock(graphs_mutex_);
  graphs_.erase(number);
}

NcclCommunicator::NcclCommunicator(const NcclLibrary& library, const Bootstrap& bootstrap,
                                   const NcclDevice& device, const NcclOptions& options) {
  const ncclUniqueId id = agree_on_nccl(library, bootstrap, device);
  state_ = std::make_shared<State>(library, bootstrap, device, options);
  state_->start(id);
}

NcclCommunicator::~NcclCommunicator() {
  if (std::uncaught_exceptions() > 0) {  // the others may never come to their ends
    state_->abort("this rank failed");
    return;
  }
  try {
    state_->finish();
  } catch (const Error&) {
    // It was aborted, and whoever cares for the results has seen an error or will see the other ranks'.
  }
}

Rank NcclCommunicator::rank() const { return state_->rank(); }
int NcclCommunicator::size() const { return state_->size(); }

void NcclCommunicator::all_reduce(const void* from, void* to, Count count, ElementKind kind, ReduceOp op,
                                  cudaStream_t stream) {
  state_->operate("ncclAllReduce", count, kind, op, [&](const NcclCalls& calls, ncclComm_t communicator) {
    return calls.ncclAllReduce(from, to, static_cast<std::size_t>(count), type_of(kind), operation_of(op),
                               communicator, stream);
  });
}

void NcclCommunicator::reduce_scatter(const void* from, void* to, Count count, ElementKind kind, ReduceOp op,
                                      cudaStream_t stream) {
  state_->operate("ncclReduceScatter", count, kind, op, [&](const NcclCalls& calls, ncclComm_t communicator) {
    return calls.ncclReduceScatter(from, to, static_cast<std::size_t>(count), type_of(kind), operation_of(op),
                                   communicator, stream);
  });
}

void NcclCommunicator::all_gather(const void* from, void* to, Count count, ElementKind kind,
                                  cudaStream_t stream) {
  state_->operate("ncclAllGather", count, kind, ReduceOp::sum,
                  [&](const NcclCalls& calls, ncclComm_t communicator) {
                    return calls.ncclAllGather(from, to, static_cast<std::size_t>(count), type_of(kind),
                                               communicator, stream);
                  });
}

void NcclCommunicator::send(const void* from, Count count, ElementKind kind, Rank to, cudaStream_t stream) {
  state_->operate(
      "ncclSend", count, kind, ReduceOp::sum, [&](const NcclCalls& calls, ncclComm_t communicator) {
        return calls.ncclSend(from, static_cast<std::size_t>(count), type_of(kind), to, communicator, stream);
      });
}

void NcclCommunicator::receive(void* to, Count count, ElementKind kind, Rank from, cudaStream_t stream) {
  state_->operate(
      "ncclRecv", count, kind, ReduceOp::sum, [&](const NcclCalls& calls, ncclComm_t communicator) {
        return calls.ncclRecv(to, static_cast<std::size_t>(count), type_of(kind), from, communicator, stream);
      });
}

void NcclCommunicator::group(const std::function<void()>& calls) { state_->group(calls); }

Memory NcclCommunicator::allocate(Bytes bytes, NcclMemory kind) {
  return state_->allocate(bytes, kind, state_);
}

void NcclCommunicator::check() { state_->check(); }
std::shared_ptr<void> NcclCommunicator::before_abort(std::function<void()> destroy_graph) {
  const int number = state_->add_graph(std::move(destroy_graph));
  return {state_.get(), [state = state_, number](void*) { state->forget_graph(number); }};
}
void NcclCommunicator::wait(const std::function<bool()>& done, int operations) {
  state_->wait(done, operations);
}
void NcclCommunicator::abort() { state_->abort("abort() was called"); }

}  // namespace polyring
