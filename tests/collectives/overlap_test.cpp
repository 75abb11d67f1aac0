// While a chunk crosses the network, the next one is reduced inside the host: shown by a network that
// delivers nothing of a chunk before that has been done.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/fabric.hpp"

namespace polyring {
namespace {

constexpr int kChunks = 8;

/// A transport whose messages, which go between hosts, stay under way until this rank has been through its
/// first exchange of the chunk after theirs. A tag is the number of a chunk, as there is one lane.
class SlowNetwork final : public PollingTransport {
 public:
  explicit SlowNetwork(Transport& inner)
      : PollingTransport({Seconds{10}, true,
                          [](const std::string& what, const std::vector<Rank>&) {
                            throw Error(ExitCode::timeout, "in vain for " + what);
                          }}),
        inner_(inner) {}

  Rank rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Memory allocate(Bytes size) override { return inner_.allocate(size); }
  bool reaches(Rank peer) const override { return inner_.reaches(peer); }
  std::vector<Rank> awaited() const override { return inner_.awaited(); }

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    inner_.send(to, tag, data, started({ticket, tag, true}));
  }
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    inner_.receive(from, tag, data, started({ticket, tag, true}));
  }
  void exchange(const Exchange& exchange, Ticket ticket) override {
    inner_.exchange(exchange, started({ticket, exchange.tag, false}));
  }

  bool poll(std::vector<Ticket>& done) override {
    const std::size_t before = done.size();
    take_local(done);
    std::vector<Ticket> finished;
    if (in_flight_ > 0) inner_.poll(finished);
    in_flight_ -= finished.size();
    for (const Ticket number : finished) {
      const Operation& operation = operations_[number];
      if (operation.message) {
        delivered_.push_back(operation);
      } else {
        ++meetings_[operation.chunk];
        done.push_back(operation.ticket);
      }
    }
    std::erase_if(delivered_, [&](const Operation& message) {
      if (message.chunk + 1 < kChunks && !meetings_.contains(message.chunk + 1)) return false;
      done.push_back(message.ticket);
      ++messages_;
      return true;
    });
    return done.size() > before;
  }

  int messages() const { return messages_; }

 protected:
  void stop() override { inner_.abandon(); }

 private:
  struct Operation {
    Ticket ticket = 0;
    int chunk = 0;
    bool message = false;
  };

  Ticket started(Operation operation) {
    ++in_flight_;
    operations_.push_back(operation);
    return operations_.size() - 1;
  }

  Transport& inner_;
  std::vector<Operation> operations_;  // all that were ever started
  std::size_t in_flight_ = 0;
  std::vector<Operation> delivered_;  // by the inner network, but not here
  std::map<int, int> meetings_;       // of each chunk, as far as they are over
  int messages_ = 0;
};

TEST(Overlap, AChunkIsReducedInsideTheHostWhileTheOneBeforeCrossesTheNetwork) {
  constexpr Count kCount = kChunks * 4096;
  for (const char* between : {"ring", "halving", "doubling"}) {
    const Plan plan{"multi-ring", {2, 2}, {"direct", between}, 1, {kCount / kChunks * sizeof(float)}};
    testing::run_over(
        {testing::Fabric::Kind::composed, testing::Placement::halves}, 4, [&](Transport& transport) {
          SlowNetwork network(transport);
          const Payload payload(ElementKind::float32, ReduceOp::sum, 4);
          const Memory data = network.allocate({kCount * sizeof(float)});
          payload.fill(network.rank(), data.get(), kCount);
          Executor executor(make_schedule(plan, 4, kCount, sizeof(float)), ElementKind::float32,
                            ReduceOp::sum, network);
          executor.run(data.get(), data.get());
          EXPECT_EQ(payload.wrong(data.get(), kCount), 0) << between;
          EXPECT_GE(network.messages(), 2 * kChunks) << "a send and a receive of each chunk, at least";
        });
  }
}

}  // namespace
}  // namespace polyring
