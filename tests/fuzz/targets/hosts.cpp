// Lists of hosts as people, hostfiles and Slurm have them.
#include "bench/launch/hosts.hpp"

#include <fmt/format.h>

#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace polyring;

std::string written(const std::vector<ListedHost>& hosts) {
  std::string text;
  for (const ListedHost& host : hosts) {
    text += text.empty() ? "" : ",";
    text += host.ranks == 0 ? host.name : fmt::format("{}:{}", host.name, host.ranks);
  }
  return text;
}

/// Ranks that several lines add up to may be more than one line may say.
bool can_be_written(const std::vector<ListedHost>& hosts) {
  constexpr int kMostOfALine = 100'000;
  for (const ListedHost& host : hosts)
    if (host.ranks > kMostOfALine) return false;
  return true;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (text.find('\n') == std::string_view::npos) {  // it is quoted in errors
    const std::string_view line = text.substr(0, 500);
    fuzz::may_refuse([&] {
      const std::vector<ListedHost> hosts = parse_host_list(line);
      fuzz::expect(!hosts.empty(), "a list of no hosts");
      if (can_be_written(hosts) && hosts.size() < 1000)
        fuzz::expect(parse_host_list(written(hosts)) == hosts, "hosts that are not read as written");
    });
    fuzz::may_refuse([&] { expand_nodelist(line); });
    fuzz::may_refuse([&] { expand_tasks_per_node(line); });
  }
  fuzz::may_refuse([&] { fuzz::expect(!parse_hostfile(text, "hosts").empty(), "a hostfile of no hosts"); });
  return 0;
}
