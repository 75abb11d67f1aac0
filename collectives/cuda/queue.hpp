// Queue: a stream whose operations report when they are done.
#pragma once

#include <deque>
#include <functional>
#include <string_view>
#include <utility>

#include "collectives/cuda/owners.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring::cuda {

class Queue {
 public:
  /// On the current device. Keeps the pool, which several queues of one device may share.
  explicit Queue(EventPool& events) : events_(events), stream_(make_stream()) {}

  cudaStream_t stream() const { return stream_.get(); }

  /// `done` is called by poll() once all is done that the stream has been given so far.
  void then(std::function<void()> done);
  /// Calls what is due, in order. True when there was any.
  bool poll();
  bool is_idle() const { return pending_.empty(); }
  /// Forgets what was to be called. The stream may still be busy.
  void forget() { pending_.clear(); }

 private:
  struct Pending {
    Event event;
    std::function<void()> done;
  };

  EventPool& events_;
  Stream stream_;
  std::deque<Pending> pending_;
};

/// Until the stream has done what it was given. Throws, behind rules.failed, what check() does, and
/// Error(ExitCode::timeout) that names the GPU and what was not done: "finish a copy". To free memory then
/// may take for ever.
void finish(cudaStream_t stream, const WaitRules& rules, std::string_view doing);

/// For a GPU that does not come to the end of this work, and cannot be stopped: rules.failed ends the job, or
/// this the process.
[[noreturn]] void end_job(int device, std::string_view work, const WaitRules& rules);

}  // namespace polyring::cuda
