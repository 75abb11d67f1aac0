#include "bench/gather_probes.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "topology/error.hpp"
#include "topology/formats/probe_json.hpp"

namespace polyring {
namespace {

// The first letter of a message says what the rest is; a rank that did not probe sends nothing.
constexpr char kHost = 'h';    // its JSON
constexpr char kReason = 'r';  // why there is none

/// What the probe finds within the limit. One that hangs, as in a driver, is left alone in its thread.
std::string message_of(const std::function<Machine()>& probe, Seconds limit) {
  const auto task = std::make_shared<std::packaged_task<std::string()>>(
      [probe] { return kHost + probe_json(inventory_of(probe())); });
  std::future<std::string> message = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (message.wait_for(std::chrono::duration<double>(limit.value)) != std::future_status::ready) {
    return kReason +
           fmt::format("its probe did not end within {}; see whether a driver hangs, or raise --timeout",
                       to_text(limit));
  }
  try {
    return message.get();
  } catch (const std::exception& error) {
    return kReason + std::string(error.what());
  }
}

bool is_first_of_host(const MpiWorld& world) {
  for (Rank rank = 0; rank < world.rank(); ++rank) {
    if (world.host(rank) == world.host()) return false;
  }
  return true;
}

Inventory part_of(std::string_view message, const std::string& host) {
  std::string why(message.substr(1));
  if (message.front() == kHost) {
    try {
      return parse_inventory_json(message.substr(1), host);
    } catch (const Error& error) {
      why = error.what();
    }
  }
  Inventory part;
  part.unprobed.push_back({host, why});
  return part;
}

}  // namespace

Inventory gather_probes(const MpiWorld& world, const std::function<Machine()>& probe, Seconds limit) {
  const std::string own = is_first_of_host(world) ? message_of(probe, limit) : std::string();
  const auto all = world.allgather(std::as_bytes(std::span(own)));
  std::vector<Inventory> parts;
  for (Rank rank = 0; rank < world.size() && world.rank() == 0; ++rank) {
    const std::vector<std::byte>& message = all[static_cast<std::size_t>(rank)];
    if (message.empty()) continue;
    parts.push_back(
        part_of({reinterpret_cast<const char*>(message.data()), message.size()}, world.host(rank)));
  }
  return parts.empty() ? Inventory() : merged(std::move(parts));
}

}  // namespace polyring
