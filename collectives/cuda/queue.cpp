#include "collectives/cuda/queue.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "collectives/cuda/poll.hpp"

namespace polyring::cuda {

void Queue::then(std::function<void()> done) {
  Event event = events_.take();
  check(cudaEventRecord(event.get(), stream_.get()), "record an event (cudaEventRecord)");
  pending_.push_back({std::move(event), std::move(done)});
}

bool Queue::poll() {
  bool any = false;
  while (!pending_.empty()) {
    if (!is_over(cudaEventQuery(pending_.front().event.get()), "finish what it was given (cudaEventQuery)"))
      break;
    Pending over = std::move(pending_.front());
    pending_.pop_front();
    events_.give_back(std::move(over.event));
    over.done();
    any = true;
  }
  return any;
}

void finish(cudaStream_t stream, const WaitRules& rules, std::string_view doing) {
  const std::string query = fmt::format("{} (cudaStreamQuery)", doing);
  try {
    if (over_within(rules.timeout, rules.yields, [&] { return is_over(cudaStreamQuery(stream), query); }))
      return;
    int device = -1;
    cudaGetDevice(&device);
    throw Error(ExitCode::timeout,
                fmt::format("GPU {} did not {} within {}; nvidia-smi and dmesg show its state", device, doing,
                            to_text(rules.timeout)));
  } catch (const Error&) {
    if (rules.failed) rules.failed();
    throw;
  }
}

void end_job(int device, std::string_view work, const WaitRules& rules) {
  const std::string sentence =
      fmt::format("GPU {} does not finish {}; nvidia-smi and dmesg show its state", device, work);
  try {
    throw Error(ExitCode::timeout, sentence);
  } catch (const Error&) {
    if (rules.failed) rules.failed();
  }
  fmt::print(stderr, "polyring: {}\n", sentence);
  std::_Exit(static_cast<int>(ExitCode::timeout));
}

}  // namespace polyring::cuda
