// A transport that hands everything on to another: for tests that change one thing.
#pragma once

#include <span>
#include <vector>

#include "collectives/runtime/transport.hpp"

namespace polyring::testing {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}

  Rank rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int tags() const override { return inner_.tags(); }
  Memory allocate(Bytes size) override { return inner_.allocate(size); }
  void upload(std::byte* to, std::span<const std::byte> from) override { inner_.upload(to, from); }
  void download(std::span<std::byte> to, const std::byte* from) override { inner_.download(to, from); }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    inner_.send(to, tag, data, ticket);
  }
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    inner_.receive(from, tag, data, ticket);
  }
  void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) override {
    inner_.copy(to, from, ticket);
  }
  void combine(const Reduction& reduction, std::byte* result, std::span<const std::byte* const> operands,
               Count count, Ticket ticket) override {
    inner_.combine(reduction, result, operands, count, ticket);
  }
  bool poll(std::vector<Ticket>& done) override { return inner_.poll(done); }
  std::vector<Rank> awaited() const override { return inner_.awaited(); }
  void wait(std::vector<Ticket>& done) override { inner_.wait(done); }
  void abandon() override { inner_.abandon(); }

 private:
  Transport& inner_;
};

}  // namespace polyring::testing
