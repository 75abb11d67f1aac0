#include "collectives/cuda/stream_runner.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "collectives/cuda/check.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/poll.hpp"
#include "collectives/cuda/queue.hpp"
#include "collectives/cuda/stream_words.hpp"
#include "collectives/runtime/executor.hpp"

namespace polyring::cuda {
namespace {

/// Events behind batches of what is computed.
constexpr std::size_t kMarks = 8;

int place_on_gpu(const RankGpu& gpu) {
  const std::vector<Rank>& ranks = gpu.peers().on_own_gpu;
  return static_cast<int>(std::ranges::find(ranks, gpu.rank()) - ranks.begin());
}

void use(int device) { check(cudaSetDevice(device), "use a GPU (cudaSetDevice)"); }

/// Also loads the kernels: later, CUDA would wait for those that wait.
int fewest_blocks(const StreamPlan& plan) {
  int fewest = std::min(exchange_copy_blocks(), message_blocks());
  for (const StreamStep& step : plan.steps) {
    if (const auto* reduce = std::get_if<ReduceStep>(&step)) exchange_blocks(reduce->reduction);
    if (const auto* exchange = std::get_if<ExchangeStep>(&step))
      fewest = std::min(fewest, exchange_blocks(exchange->reduction));
  }
  return fewest;
}

/// What a step of the plan is too large for.
std::string why_not_by_kernels(const StreamPlan& plan) {
  for (const StreamStep& step : plan.steps) {
    const auto* const reduce = std::get_if<ReduceStep>(&step);
    const auto* const exchange = std::get_if<ExchangeStep>(&step);
    const std::size_t operands = reduce != nullptr     ? reduce->operands.size()
                                 : exchange != nullptr ? exchange->partners.size() + 1
                                                       : 0;
    if (operands > kMostOperands)
      return fmt::format("a step combines {} operands, and a kernel at most {}", operands, kMostOperands);
  }
  return {};
}

/// Whom messages go to or come from, whom kernels do not reach.
std::optional<Rank> unreached(const RankGpu& gpu, const StreamPlan& plan) {
  for (const StreamStep& step : plan.steps) {
    const auto* const group = std::get_if<GroupStep>(&step);
    if (group == nullptr) continue;
    for (const auto* messages : {&group->sends, &group->receives}) {
      for (const GroupStep::Message& message : *messages)
        if (!gpu.peers().reaches(message.peer)) return message.peer;
    }
  }
  return std::nullopt;
}

bool has_messages(const StreamPlan& plan) {
  return std::ranges::any_of(plan.steps,
                             [](const StreamStep& step) { return std::holds_alternative<GroupStep>(step); });
}

StreamPlan plan_of(const StreamSchedule& what) {
  return make_stream_plan(what.schedule, what.order, what.kind, what.op, what.partials);
}

}  // namespace

std::string why_not_on_stream(const RankGpu& gpu, const StreamSchedule& what, bool by_nccl) {
  use(gpu.device());
  const StreamPlan plan = plan_of(what);
  if (!gpu.peers().share_gpu.empty())
    return fmt::format("{} share a GPU in different processes", gpu.peers().share_gpu);
  if (std::string why_not = why_not_by_kernels(plan); !why_not.empty()) return why_not;
  const std::size_t neighbors = gpu.hosts().neighbors(gpu.rank()).size();
  if (neighbors > kMostMessages)
    return fmt::format("{} ranks are on one host, and kernels know at most {}", neighbors, kMostMessages);
  if (!by_nccl) {
    if (const std::optional<Rank> peer = unreached(gpu, plan))
      return fmt::format("rank {} does not reach the GPU memory of rank {}, and there is no NCCL{}",
                         gpu.rank(), *peer,
                         gpu.peers().why_not.empty() ? "" : fmt::format(" ({})", gpu.peers().why_not));
  }
  const std::size_t ranks = gpu.peers().on_own_gpu.size();
  if (Residency(gpu.device(), ranks).share(fewest_blocks(plan)) < 1)
    return fmt::format("GPU {} cannot run the kernels of {} ranks at once", gpu.device(), ranks);
  return {};
}

StreamCollective::StreamCollective(RankGpu& gpu, NcclCommunicator* nccl, StreamSchedule what)
    : gpu_(gpu),
      nccl_(nccl),
      what_(std::move(what)),
      plan_(plan_of(what_)),
      residency_(gpu.device(), gpu.peers().on_own_gpu.size()),
      queue_(SpinQueue::of(gpu.device(), place_on_gpu(gpu))),
      most_blocks_(multiprocessors(gpu.device()) * kBusyBlocks) {
  use(gpu.device());
  if (!has_messages(plan_)) nccl_ = nullptr;
  gpu.words();
  if (plan_.slots.value > 0) slots_ = gpu.allocate(plan_.slots);
  ended_ = make_timed_event();
  const auto forks = [](const StreamStep& step) { return std::holds_alternative<ForkStep>(step); };
  if (std::ranges::none_of(plan_.steps, forks)) return;
  computing_ = make_stream();
  forked_ = make_event();
  for (std::size_t i = 0; i < kMarks; ++i) marks_.push_back(make_event());
}

StreamCollective::~StreamCollective() {
  if (!launched_ || failure_) return;
  try {
    wait(gpu_.rules().timeout);
  } catch (const Error&) {
    // The launches that follow say so.
  }
}

std::string StreamCollective::way() const {
  const bool exchanges = std::ranges::any_of(
      plan_.steps, [](const StreamStep& step) { return std::holds_alternative<ExchangeStep>(step); });
  std::vector<std::string> ways;
  if (exchanges || (has_messages(plan_) && nccl_ == nullptr)) ways.emplace_back("peer memory");
  if (nccl_ != nullptr) ways.push_back("NCCL " + NcclLibrary::of_process().version());
  return fmt::format("{}", fmt::join(ways, " and "));
}

void StreamCollective::launch(const std::byte* input, std::byte* output, cudaStream_t stream) {
  use(gpu_.device());
  if (!failure_ && gpu_.words().failure()) failure_ = gpu_.words().failure();
  if (failure_) throw Error(*failure_);
  const Schedule& schedule = what_.schedule;
  check_buffers(schedule.collective, schedule.ranks, gpu_.rank(), schedule.count, size_of(what_.kind), input,
                output);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &capture), "tell whether a stream is captured (cudaStreamIsCapturing)");
  const bool capturing = capture != cudaStreamCaptureStatusNone;
  const StreamBinding& binding = bound(input, output, capturing);
  if (capturing) return enqueue(binding, stream);
  launched_ = true;
  try {
    queue_.add(stream, ended_, [&] { enqueue(binding, stream); });
  } catch (const Error& error) {
    cudaEventRecord(ended_.get(), stream);
    fail(ended_.get(), error);
  }
}

void StreamCollective::launch(const CapturedGraph& graph, cudaEvent_t ended, cudaStream_t stream) {
  use(gpu_.device());
  if (failure_) throw Error(*failure_);
  try {
    graph.launch(stream);
    check(cudaEventRecord(ended, stream), "record an event (cudaEventRecord)");
  } catch (const Error& error) {
    cudaEventRecord(ended, stream);
    fail(ended, error);
  }
}

const StreamBinding& StreamCollective::bound(const std::byte* input, std::byte* output, bool capturing) {
  const Buffers key{input, output};
  auto found = bindings_.find(key);
  if (found != bindings_.end()) return found->second;
  if (capturing)
    usage_error(
        "a collective cannot be captured on buffers that it has not had before; launch it once, then "
        "capture");
  // Its addresses are read and written as commands say.
  const BindingOptions options{.input = const_cast<std::byte*>(input),
                               .output = output,
                               .slots = slots_.get(),
                               .by_nccl = nccl_ != nullptr,
                               .number = gpu_.words().next_binding()};
  return bindings_.emplace(key, bind(gpu_, gpu_.words(), plan_, residency_, options)).first->second;
}

void StreamCollective::enqueue(const StreamBinding& binding, cudaStream_t stream) {
  for (const StreamCommand& command : binding.commands)
    std::visit([&](const auto& each) { run(each, stream); }, command);
}

void StreamCollective::run(const CopyCommand& command, cudaStream_t stream) const {
  check(cudaMemcpyAsync(command.to, command.from, command.bytes, cudaMemcpyDeviceToDevice, stream),
        "copy (cudaMemcpyAsync)");
}

void StreamCollective::run(const ReduceCommand& command, cudaStream_t stream) const {
  launch_reduce(command.reduction, std::span(&command.result, 1), command.operands, command.count,
                most_blocks_, command.aside ? computing_.get() : stream);
}

void StreamCollective::run(const ForkStep&, cudaStream_t stream) const {
  check(cudaEventRecord(forked_.get(), stream), "record an event (cudaEventRecord)");
  check(cudaStreamWaitEvent(computing_.get(), forked_.get(), 0),
        "wait for another stream (cudaStreamWaitEvent)");
}

void StreamCollective::run(const MarkStep& mark, cudaStream_t) const {
  check(cudaEventRecord(marks_[mark.batch % kMarks].get(), computing_.get()),
        "record an event (cudaEventRecord)");
}

void StreamCollective::run(const JoinStep& join, cudaStream_t stream) const {
  check(cudaStreamWaitEvent(stream, marks_[join.batch % kMarks].get(), 0),
        "wait for another stream (cudaStreamWaitEvent)");
}

void StreamCollective::run(const ExchangeCommand& command, cudaStream_t stream) const {
  if (command.copies) {
    launch_exchange_copy(*command.arguments, command.most_blocks, stream);
  } else {
    launch_exchange(command.reduction, *command.arguments, command.most_blocks, stream);
  }
}

void StreamCollective::run(const MessageCommand& command, cudaStream_t stream) const {
  launch_messages(*command.arguments, command.most_blocks, stream);
}

void StreamCollective::run(const NcclCommand& command, cudaStream_t stream) const {
  nccl_->group([&] {
    for (const NcclCommand::Message& message : command.receives)
      nccl_->receive(message.data, message.count, message.kind, message.peer, stream);
    for (const NcclCommand::Message& message : command.sends)
      nccl_->send(message.data, message.count, message.kind, message.peer, stream);
  });
}

void StreamCollective::wait(Seconds limit) {
  if (failure_) throw Error(*failure_);
  if (launched_) wait(ended_.get(), limit);
}

void StreamCollective::wait(cudaEvent_t event, Seconds limit) {
  use(gpu_.device());
  if (failure_) throw Error(*failure_);
  try {
    if (ends(event, limit)) return;
    end_now(event);
    throw Error(ExitCode::timeout, sentence(limit));
  } catch (const Error& error) {
    fail(event, error);
  }
}

/// False at the limit.
bool StreamCollective::ends(cudaEvent_t event, Seconds limit) const {
  return over_within(limit, gpu_.rules().yields, [&] {
    if (is_over(cudaEventQuery(event), "finish what it was given (cudaEventQuery)")) return true;
    if (nccl_ != nullptr) nccl_->check();
    return false;
  });
}

/// A GPU that does not come to its end cannot be stopped: then the job ends.
void StreamCollective::end_now(cudaEvent_t event) const {
  gpu_.words().abort();
  if (nccl_ != nullptr) nccl_->abort();
  const auto over = [event] {
    const cudaError_t answer = cudaEventQuery(event);
    cudaGetLastError();
    return answer != cudaErrorNotReady;
  };
  if (!over_within(gpu_.rules().timeout, true, over))
    end_job(gpu_.device(), "a collective on a stream (cudaEventQuery)", gpu_.rules());
}

void StreamCollective::fail(cudaEvent_t event, const Error& error) {
  end_now(event);
  failure_ = error;
  gpu_.words().set_failure(error);
  gpu_.break_off();
  throw Error(*failure_);
}

std::string StreamCollective::sentence(Seconds limit) const {
  std::vector<Rank> absent;
  std::vector<Rank> unfinished;
  for (const Missed& missed : gpu_.words().missed())
    (missed.done ? unfinished : absent).push_back(missed.rank);
  std::string whom;
  if (!absent.empty()) whom += fmt::format(": {} did not come to a step", ranks_text(absent, gpu_.hosts()));
  if (!unfinished.empty()) {
    whom += fmt::format("{} {} did not finish a step", whom.empty() ? ":" : ", and",
                        ranks_text(unfinished, gpu_.hosts()));
  }
  if (whom.empty() && nccl_ != nullptr) whom = ", waiting for NCCL's messages from other ranks";
  return fmt::format(
      "GPU {} of rank {} has not finished the {} by {} within {}{}; see whether they still run, or raise the "
      "time limit",
      gpu_.device(), gpu_.rank(), to_text(what_.schedule.collective), what_.schedule.algorithm,
      to_text(limit), whom);
}

}  // namespace polyring::cuda
