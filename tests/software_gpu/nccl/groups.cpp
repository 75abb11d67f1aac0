#include "tests/software_gpu/nccl/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/software_gpu/software_gpu.hpp"

namespace polyring::software_nccl {
namespace {

struct Handles {
  std::mutex mutex;
  std::uintptr_t next = 0x1000;
  std::map<ncclComm_t, CommunicatorPointer> living;
  std::map<ncclComm_t, std::string> ended;

  /// Never freed, since streams may run to the end of the process.
  static Handles& of_process() {
    static auto* const handles = new Handles;
    return *handles;
  }
};

struct Range {
  const std::byte* begin;
  std::size_t bytes;

  bool overlaps(Range other) const {
    return bytes > 0 && other.bytes > 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

Range input_of(const Issued& issued) {
  return {static_cast<const std::byte*>(issued.input), issued.operation.input_bytes};
}

Range output_of(const Issued& issued) {
  return {static_cast<const std::byte*>(issued.output), issued.operation.output_bytes};
}

/// Whether the operation's input and output lie as NCCL permits: apart, or one in the other's own place.
bool lie_well(const Issued& issued, int rank) {
  const Range input = input_of(issued);
  const Range output = output_of(issued);
  if (!input.overlaps(output)) return true;
  const auto place = static_cast<std::size_t>(rank) * std::min(input.bytes, output.bytes);
  if (input.bytes == output.bytes) return input.begin == output.begin;
  return input.bytes < output.bytes ? input.begin == output.begin + place
                                    : output.begin == input.begin + place;
}

/// Whether one writes what the other reads or writes.
bool collide(const Issued& a, const Issued& b) {
  return output_of(a).overlaps(output_of(b)) || output_of(a).overlaps(input_of(b)) ||
         input_of(a).overlaps(output_of(b));
}

bool is_on_device(Range range, int device) {
  return range.bytes == 0 || (polyring_software_gpu_device_of(range.begin) == device &&
                              polyring_software_gpu_bytes_at(range.begin) >= range.bytes);
}

}  // namespace

ncclComm_t add_handle(CommunicatorPointer communicator) {
  Handles& handles = Handles::of_process();
  const std::lock_guard lock(handles.mutex);
  handles.next += 0x10;
  const auto handle = reinterpret_cast<ncclComm_t>(handles.next);  // NOLINT(performance-no-int-to-ptr)
  handles.living.emplace(handle, std::move(communicator));
  return handle;
}

CommunicatorPointer find_handle(ncclComm_t handle, const char* call) {
  Handles& handles = Handles::of_process();
  std::unique_lock lock(handles.mutex);
  const auto found = handles.living.find(handle);
  if (found != handles.living.end()) return found->second;
  const auto ended = handles.ended.find(handle);
  const std::string what = ended == handles.ended.end()
                               ? "what is no communicator"
                               : fmt::format("a communicator after {}", ended->second);
  lock.unlock();
  refuse(ncclInvalidArgument, fmt::format("{} on {}", call, what));
  return nullptr;
}

CommunicatorPointer take_handle(ncclComm_t handle, const char* call, const char* how_it_ended) {
  CommunicatorPointer found = find_handle(handle, call);
  Handles& handles = Handles::of_process();
  const std::lock_guard lock(handles.mutex);
  if (handles.living.erase(handle) > 0) handles.ended.emplace(handle, how_it_ended);
  return found;
}

ncclResult_t refuse(ncclResult_t code, const std::string& sentence) {
  say(sentence);
  return code;
}

Groups& Groups::of_thread() {
  thread_local Groups groups;
  return groups;
}

ncclResult_t Groups::fail(ncclResult_t code) {
  if (failure_ == ncclSuccess) failure_ = code;
  return code;
}

void Groups::add_start(const CommunicatorPointer& communicator) { starts_.push_back(communicator); }

ncclResult_t Groups::add(const CommunicatorPointer& communicator, Issued issued, cudaStream_t stream) {
  const auto refused = [&](ncclResult_t code) {
    if (!communicator->blocks()) communicator->end_with({code, last_said()});
    return fail(code);
  };
  if (const ncclResult_t ready = communicator->may_issue(); ready != ncclSuccess) return refused(ready);
  if (const ncclResult_t code = communicator->number(issued.operation); code != ncclSuccess) {
    return refused(refuse(code, fmt::format("rank {}: {} is refused, as the plan says", communicator->rank(),
                                            to_text(issued.operation))));
  }
  if (const ncclResult_t code = check(*communicator, issued, stream); code != ncclSuccess)
    return refused(code);
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& each) { return each.communicator == communicator; });
  if (part == parts_.end()) part = parts_.insert(part, Part{communicator, Work{{}, stream}});
  if (part->work.stream != stream)
    fail_loudly("a group uses two streams with one communicator: not done here");
  for (const Issued& other : part->work.operations) {
    if (!collide(issued, other)) continue;
    return refused(
        refuse(ncclInvalidUsage,
               fmt::format("rank {}: {} and {} are in one group and one writes the other's memory",
                           communicator->rank(), to_text(other.operation), to_text(issued.operation))));
  }
  part->work.operations.push_back(std::move(issued));
  return ncclSuccess;
}

ncclResult_t Groups::check(const Communicator& communicator, const Issued& issued,
                           cudaStream_t stream) const {
  const Operation& operation = issued.operation;
  const auto wrong = [&](const std::string& what) {
    return refuse(ncclInvalidArgument,
                  fmt::format("rank {}: {}: {}", communicator.rank(), to_text(operation), what));
  };
  if (size_of(operation.type) == 0) return wrong("there is no such type");
  const bool reduces = operation.what == What::all_reduce || operation.what == What::reduce_scatter;
  if (reduces && !can_reduce(operation.type, operation.reduction)) return wrong("not reduced here");
  if (!is_collective(operation.what) && (operation.peer < 0 || operation.peer >= communicator.size())) {
    return wrong("there is no such rank");
  }
  if (!is_on_device(input_of(issued), communicator.device()))
    return wrong("the input is no memory of its device");
  if (!is_on_device(output_of(issued), communicator.device()))
    return wrong("the output is no memory of its device");
  if (!lie_well(issued, communicator.rank())) return wrong("input and output overlap");
  if (polyring_software_gpu_device_of_stream(stream) != communicator.device()) {
    return wrong("the stream is another device's");
  }
  return ncclSuccess;
}

ncclResult_t Groups::end() {
  if (depth_ == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth_ > 0) return ncclSuccess;
  const ncclResult_t result = failure_ == ncclSuccess ? launch() : failure_;
  failure_ = ncclSuccess;
  starts_.clear();
  parts_.clear();
  return result;
}

ncclResult_t Groups::launch() {
  ncclResult_t result = ncclSuccess;
  for (const CommunicatorPointer& start : starts_) start->start();
  for (const CommunicatorPointer& start : starts_) {
    const ncclResult_t started = start->blocks() ? start->wait_until_ready() : ncclInProgress;
    if (started != ncclSuccess) result = started;
  }
  for (Part& part : parts_) {
    std::int32_t collectives = 0;
    for (Issued& issued : part.work.operations) {
      if (is_collective(issued.operation.what)) issued.operation.place = collectives++;
    }
    for (Issued& issued : part.work.operations) {
      if (is_collective(issued.operation.what)) issued.operation.collectives = collectives;
    }
    part.communicator->launch(std::move(part.work));
    if (!part.communicator->blocks()) result = ncclInProgress;
  }
  return result;
}

}  // namespace polyring::software_nccl
