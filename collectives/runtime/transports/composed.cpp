#include "collectives/runtime/transports/composed.hpp"

#include <algorithm>
#include <utility>

namespace polyring {
namespace {

class Composed final : public PollingTransport {
 public:
  Composed(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far, WaitRules rules)
      : PollingTransport(std::move(rules)), near_(std::move(near)), far_(std::move(far)) {}

  Rank rank() const override { return near_->rank(); }
  int size() const override { return near_->size(); }
  int tags() const override { return std::min(near_->tags(), far_->tags()); }
  Memory allocate(Bytes size) override { return near_->allocate(size); }
  Memory scratch(Bytes size) override { return near_->scratch(size); }
  void register_memory(std::span<std::byte> memory) override { near_->register_memory(memory); }
  void deregister_memory(std::byte* begin) override { near_->deregister_memory(begin); }

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    by(to).send(to, tag, data, ticket);
  }
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    by(from).receive(from, tag, data, ticket);
  }
  bool reaches(Rank peer) const override { return near_->reaches(peer); }
  void exchange(const Exchange& exchange, Ticket ticket) override { near_->exchange(exchange, ticket); }

  bool poll(std::vector<Ticket>& done) override {
    const bool local = take_local(done);
    const bool near = near_->poll(done);
    const bool far = far_->poll(done);
    return local || near || far;
  }

  std::vector<Rank> awaited() const override {
    std::vector<Rank> ranks = near_->awaited();
    for (const Rank rank : far_->awaited()) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

 protected:
  void stop() override {
    near_->abandon();
    far_->abandon();
  }

 private:
  Transport& by(Rank peer) { return near_->reaches(peer) ? *near_ : *far_; }

  std::unique_ptr<Transport> near_;
  std::unique_ptr<Transport> far_;
};

}  // namespace

std::unique_ptr<Transport> compose(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far,
                                   WaitRules rules) {
  return std::make_unique<Composed>(std::move(near), std::move(far), std::move(rules));
}

}  // namespace polyring
