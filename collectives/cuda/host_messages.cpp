#include "collectives/cuda/host_messages.hpp"

#include <utility>

namespace polyring::cuda {

Ticket HostMessages::add(std::function<void()> done) {
  under_way_.emplace(next_, std::move(done));
  return next_++;
}

void HostMessages::send(Rank to, Use use, int tag, std::span<const std::byte> data,
                        std::function<void()> done) {
  host_->send(to, tag_of(use, tag), data, add(std::move(done)));
}

void HostMessages::receive(Rank from, Use use, int tag, std::span<std::byte> data,
                           std::function<void()> done) {
  host_->receive(from, tag_of(use, tag), data, add(std::move(done)));
}

bool HostMessages::poll() {
  through_.clear();
  bool progress = host_->poll(through_);
  for (const Ticket ticket : std::exchange(through_, {})) {
    const auto found = under_way_.find(ticket);
    const std::function<void()> done = std::move(found->second);
    under_way_.erase(found);
    done();
    progress = true;
  }
  return progress;
}

void HostMessages::forget() { under_way_.clear(); }

}  // namespace polyring::cuda
