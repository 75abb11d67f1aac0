// HostMessages: messages on host memory that call back when they are through.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "collectives/runtime/transport.hpp"

namespace polyring::cuda {

class HostMessages {
 public:
  /// What the tags of one kind are for; each has its own.
  enum class Use { piece, message, exchange, over, letter };

  explicit HostMessages(std::unique_ptr<Transport> host) : host_(std::move(host)) {}

  Transport& transport() const { return *host_; }
  int tags() const { return host_->tags() / kUses; }

  /// The data are not copied. `done` is called by poll().
  void send(Rank to, Use use, int tag, std::span<const std::byte> data, std::function<void()> done);
  void receive(Rank from, Use use, int tag, std::span<std::byte> data, std::function<void()> done);

  bool poll();
  void forget();

 private:
  static constexpr int kUses = 5;

  Ticket add(std::function<void()> done);
  static int tag_of(Use use, int tag) { return tag * kUses + static_cast<int>(use); }

  std::unique_ptr<Transport> host_;
  Ticket next_ = 0;
  std::unordered_map<Ticket, std::function<void()>> under_way_;
  std::vector<Ticket> through_;
};

}  // namespace polyring::cuda
