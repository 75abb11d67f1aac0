#include "bench/record/gather_probes.hpp"

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/probe/trial.hpp"

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

/// As tell_apart() has it. Each part is one host.
void tell_hosts_apart(std::vector<Inventory>& parts) {
  std::vector<std::string> names;
  for (const Inventory& part : parts)
    names.push_back(part.unprobed.empty() ? part.cluster.host(0).name : part.unprobed.front().name);
  tell_apart(names);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].unprobed.empty()) continue;
    Machine& machine = parts[i].cluster.groups.front().machine;
    machine.name = names[i];
    parts[i].members = {{identity_of(machine)}};
  }
}

}  // namespace

std::string probe_message(const std::function<Machine()>& probe) {
  try {
    return kHost + probe_json(inventory_of(probe()));
  } catch (const std::exception& error) {
    return kReason + std::string(error.what());
  }
}

// In a child process, not in a thread: one that hangs, as in a driver, would be left alone with libraries
// that read the environment while MPI_Init writes it.
std::string probe_own_host(const std::function<Machine()>& probe, Seconds limit) {
  if (launched_local_rank() != 0) return {};
  const probe::TriedAnswer answer = probe::try_answer([&probe] { return probe_message(probe); }, limit);
  if (answer.ending == probe::Ending::by_itself) return answer.text;
  if (answer.ending == probe::Ending::crashed)
    return kReason + std::string("its probe crashed; run polyring probe there, and see what crashes");
  return kReason +
         fmt::format("its probe did not end within {}; see whether a driver hangs, or raise --timeout",
                     to_text(limit));
}

Inventory gather_probes(const World& world, const std::string& own) {
  const auto all = world.gather(std::as_bytes(std::span(own)));
  if (world.rank() != 0) return {};
  struct Answer {
    std::string host;
    std::string_view message;
  };
  std::vector<Answer> answers(static_cast<std::size_t>(world.nodes()));
  for (Rank rank = 0; rank < world.size(); ++rank) {
    Answer& answer = answers[static_cast<std::size_t>(world.host_number(rank))];
    const std::vector<std::byte>& bytes = all[static_cast<std::size_t>(rank)];
    answer.host = world.host(rank);
    if (answer.message.empty()) answer.message = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<Inventory> parts;
  for (const Answer& answer : answers) parts.push_back(part_of(answer.message, answer.host));
  tell_hosts_apart(parts);
  return merged(std::move(parts));
}

}  // namespace polyring
