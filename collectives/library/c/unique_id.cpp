#include "collectives/library/c/unique_id.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "collectives/runtime/net/address.hpp"

namespace polyring::library {
namespace {

constexpr std::string_view kKind = "polyring1";

/// Those of ids whose group this process has not made yet, by their secret.
class Listeners {
 public:
  void add(const std::string& secret, std::shared_ptr<Listener> listener) {
    const std::lock_guard lock(mutex_);
    of_.emplace(secret, std::move(listener));
  }
  /// Null where another process has it.
  std::shared_ptr<Listener> take(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    const auto found = of_.find(secret);
    if (found == of_.end()) return nullptr;
    std::shared_ptr<Listener> listener = std::move(found->second);
    of_.erase(found);
    return listener;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Listener>> of_;
};

Listeners& listeners() {
  static auto* const all = new Listeners;  // other libraries' destructors may still use it
  return *all;
}

std::string own_address() {
  const std::vector<NetworkInterface> interfaces = network_interfaces();
  const char* const wanted = std::getenv("POLYRING_INTERFACE");
  const bool has_network = std::any_of(interfaces.begin(), interfaces.end(),
                                       [](const NetworkInterface& one) { return !one.loopback; });
  return choose_address(interfaces, wanted == nullptr ? "" : wanted, default_interface(), has_network);
}

std::string random_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

polyring_unique_id packed(const Endpoint& root, const std::string& secret) {
  const std::string text = fmt::format("{} {} {}", kKind, to_text(root), secret);
  polyring_unique_id id{};
  if (text.size() >= sizeof(id.bytes))
    usage_error("the address {} is too long for an id; give a shorter name, or its number", to_text(root));
  std::memcpy(id.bytes, text.data(), text.size());
  return id;
}

}  // namespace

polyring_unique_id unique_id_at(const std::string& address, const std::string& secret) {
  constexpr std::size_t kLongestSecret = 32;
  const auto is_letter = [](char letter) { return letter > ' ' && letter <= '~'; };
  if (secret.size() > kLongestSecret || !std::all_of(secret.begin(), secret.end(), is_letter))
    usage_error("a secret has up to {} letters and digits, without blanks", kLongestSecret);
  return packed(parse_endpoint(address), secret);
}

polyring_unique_id make_unique_id() {
  const std::string secret = random_secret();
  std::shared_ptr<Listener> listener = listen_for(secret);
  const polyring_unique_id id = packed({own_address(), listener->port()}, secret);
  listeners().add(secret, std::move(listener));
  return id;
}

TcpGroup group_of(const polyring_unique_id& id, int rank, int ranks, Seconds timeout) {
  const std::string_view text(id.bytes, strnlen(id.bytes, sizeof(id.bytes)));
  const std::size_t first = text.find(' ');
  const std::size_t last = text.rfind(' ');
  if (text.substr(0, first) != kKind || first == last)
    usage_error("these bytes are no id of polyring_get_unique_id(); see how rank 0 sends it to the others");
  TcpGroup group;
  group.root = parse_endpoint(std::string(text.substr(first + 1, last - first - 1)));
  group.secret = text.substr(last + 1);
  group.rank = rank;
  group.size = ranks;
  group.timeout = timeout;
  if (rank == 0) group.listener = listeners().take(group.secret);
  return group;
}

}  // namespace polyring::library
