#include "bench/gather_probes.hpp"

#include <exception>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/error.hpp"
#include "topology/formats/probe_json.hpp"
#include "topology/printable.hpp"
#include "topology/probe/trial.hpp"

namespace polyring {
namespace {

// The first letter of a message says what the rest is; a rank that did not probe sends nothing.
constexpr char kHost = 'h';    // its JSON
constexpr char kReason = 'r';  // why there is none
constexpr std::size_t kMostWords = 600;

Inventory part_of(std::string_view message, const std::string& host) {
  std::string why = message.empty()
                        ? "its launcher started no process as the first one there; run polyring probe there"
                        : printable_line(message.substr(1), kMostWords);
  if (message.starts_with(kHost)) {
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

// In a child process, not in a thread: one that hangs, as in a driver, would be left alone with libraries
// that read the environment while MPI_Init writes it.
std::string probe_own_host(const std::function<Machine()>& probe, Seconds limit) {
  if (launched_local_rank() != 0) return {};
  const auto message = [&probe]() -> std::string {
    try {
      return kHost + probe_json(inventory_of(probe()));
    } catch (const std::exception& error) {
      return kReason + std::string(error.what());
    }
  };
  const probe::TriedAnswer answer = probe::try_answer(message, limit);
  if (answer.ending == probe::Ending::by_itself) return answer.text;
  if (answer.ending == probe::Ending::crashed)
    return kReason + std::string("its probe crashed; run polyring probe there, and see what crashes");
  return kReason +
         fmt::format("its probe did not end within {}; see whether a driver hangs, or raise --timeout",
                     to_text(limit));
}

Inventory gather_probes(const MpiWorld& world, const std::string& own) {
  const auto all = world.allgather(std::as_bytes(std::span(own)));
  if (world.rank() != 0) return {};
  std::vector<std::string> hosts;  // in the order of their first ranks
  std::map<std::string, std::string_view> messages;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    const std::string& host = world.host(rank);
    const std::vector<std::byte>& bytes = all[static_cast<std::size_t>(rank)];
    const auto [entry, is_new] = messages.try_emplace(host);
    if (is_new) hosts.push_back(host);
    if (entry->second.empty()) entry->second = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<Inventory> parts;
  for (const std::string& host : hosts) parts.push_back(part_of(messages[host], host));
  return merged(std::move(parts));
}

}  // namespace polyring
