#include "collectives/cuda/activity.hpp"

#include <utility>

namespace polyring::cuda {

void ActivityLog::begin(GpuActivity::Kind kind, cudaStream_t stream) {
  Entry entry{kind, make_timed_event(), make_timed_event()};
  check(cudaEventRecord(entry.begin.get(), stream), "record an event (cudaEventRecord)");
  entries_.push_back(std::move(entry));
}

void ActivityLog::end(cudaStream_t stream) {
  check(cudaEventRecord(entries_.back().end.get(), stream), "record an event (cudaEventRecord)");
}

std::vector<GpuActivity> ActivityLog::take(cudaEvent_t since) {
  std::vector<GpuActivity> activities;
  for (const Entry& entry : entries_) {
    const auto after = [&](const Event& event) {
      return Seconds{1e-6 * microseconds_between(since, event.get())};
    };
    activities.push_back({entry.kind, after(entry.begin), after(entry.end)});
  }
  clear();
  return activities;
}

}  // namespace polyring::cuda
