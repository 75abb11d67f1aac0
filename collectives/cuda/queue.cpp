#include "collectives/cuda/queue.hpp"

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

}  // namespace polyring::cuda
