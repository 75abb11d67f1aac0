#include "bench/launch/hosts.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"

namespace polyring {
namespace {

constexpr int kMost = 100'000;  // hosts of a list, and ranks of a host
// Characters of a host's name (RFC 1035, with dots and without the root).
constexpr std::size_t kLongest = 253;

/// Nothing unless the text is a whole number from `least` to kMost.
std::optional<int> number(std::string_view text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > kMost)
    return std::nullopt;
  return value;
}

/// The parts between commas that are not in brackets.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return text.size() <= kShown ? std::string(text) : fmt::format("{}…", text.substr(0, kShown));
}

[[noreturn]] void not_a_list(std::string_view text) {
  usage_error("'{}' is not a list of hosts such as node[01-04,7],login; correct it", shown(text));
}

/// Before thousands of names have it.
void check_length(std::string_view front, std::size_t more) {
  if (front.size() + more > kLongest) {
    usage_error("the host's name '{}' has {} characters, and {} are allowed; correct it", shown(front),
                front.size() + more, kLongest);
  }
}

/// `01-04`: the names that begin with `front` and end in 01, 02, 03 and 04.
void expand_range(std::string_view range, const std::string& front, std::string_view text,
                  std::vector<std::string>& names) {
  const std::size_t dash = std::min(range.find('-'), range.size());
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == range.size() ? from : range.substr(dash + 1);
  const auto first = number(from, 0);
  const auto last = number(to, 0);
  if (!first || !last || *first > *last || names.size() > kMost) not_a_list(text);
  check_length(front, from.size());
  for (int i = *first; i <= *last; ++i) names.push_back(fmt::format("{}{:0{}}", front, i, from.size()));
}

/// Each bracket multiplies the names.
std::vector<std::string> expand_name(std::string_view name, std::string_view text) {
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const std::size_t open = std::min(name.find('['), name.size());
    check_length(names.front(), open);
    for (std::string& front : names) front += name.substr(0, open);
    name.remove_prefix(open);
    if (name.empty()) break;
    const std::size_t close = name.find(']');
    if (close == std::string_view::npos) not_a_list(text);
    std::vector<std::string> longer;
    for (const std::string& front : names) {
      for (const std::string_view range : split_list(name.substr(1, close - 1)))
        expand_range(range, front, text, longer);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return names;
}

/// Names go into files and command lines of others: no option, no user, nothing that a shell would read.
void check_name(std::string_view name, std::string_view where) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (name.find('@') != std::string_view::npos)
    usage_error("{} names a user in '{}'; name the host alone, and the user in ~/.ssh/config", where,
                shown(name));
  if (name.empty() || name.front() == '-' || !std::ranges::all_of(name, plain))
    usage_error("{} has '{}' in the place of a host's name; correct it", where, shown(name));
}

[[noreturn]] void too_many() {
  usage_error("more than {} hosts are named; no cluster has so many, so correct the list", kMost);
}

/// In the order in which they are first named.
class HostList {
 public:
  /// A host that is named again adds to its ranks; where no number was said, each time counts for one.
  void add(const std::string& name, int ranks) {
    if (++named_ > kMost) too_many();
    check_total(all_ranks_ += std::max(1, ranks));
    const auto [at, is_new] = at_.try_emplace(name, hosts_.size());
    if (is_new) {
      hosts_.push_back({name, ranks});
    } else {
      ListedHost& known = hosts_[at->second];
      known.ranks = std::max(1, known.ranks) + std::max(1, ranks);
    }
  }

  std::vector<ListedHost> take() { return std::move(hosts_); }

 private:
  std::vector<ListedHost> hosts_;
  std::unordered_map<std::string, std::size_t> at_;
  int named_ = 0;
  std::int64_t all_ranks_ = 0;
};

/// `node0`, `node0:4` or `node[0-3]:4`.
void add_entry(HostList& hosts, std::string_view entry, std::string_view where) {
  std::string_view names = entry;
  int ranks = 0;
  const std::size_t colon = entry.rfind(':');
  if (colon != std::string_view::npos) {
    const auto count = number(entry.substr(colon + 1), 1);
    if (!count)
      usage_error("{} has '{}', but behind the colon belongs a number of ranks such as 4", where,
                  shown(entry));
    ranks = *count;
    names = entry.substr(0, colon);
  }
  for (const std::string& name : expand_name(names, names)) {
    check_name(name, where);
    hosts.add(name, ranks);
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// The number of ranks that `slots=4 max_slots=8` allows; 0 when nothing is said.
int slots_of(const std::vector<std::string_view>& words, std::string_view where) {
  int slots = 0;
  int most = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals);
    const bool limit = key == "max_slots" || key == "max-slots";
    if (equals == std::string_view::npos || (!limit && key != "slots"))
      usage_error("{} has '{}', which is neither slots=N nor max_slots=N; correct it, or leave it out", where,
                  shown(words[i]));
    const auto value = number(words[i].substr(equals + 1), 1);
    if (!value) usage_error("{} has '{}', which is not a number of ranks above 0", where, shown(words[i]));
    (limit ? most : slots) = *value;
  }
  return slots != 0 ? slots : most;
}

}  // namespace

void check_total(std::int64_t ranks) {
  if (ranks > kMostRanks)
    usage_error("more than {} ranks are asked for in all; ask for fewer on each host", kMostRanks);
}

std::vector<ListedHost> parse_host_list(std::string_view text) {
  HostList hosts;
  for (const std::string_view entry : split_list(text)) add_entry(hosts, entry, "the list of hosts");
  return hosts.take();
}

std::vector<ListedHost> parse_hostfile(std::string_view text, std::string_view origin) {
  HostList list;
  int number_of_line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number_of_line;
    if (words.empty()) continue;
    const std::string where = fmt::format("line {} of '{}'", number_of_line, origin);
    const int slots = slots_of(words, where);
    add_entry(list, slots == 0 ? std::string(words[0]) : fmt::format("{}:{}", words[0], slots), where);
  }
  std::vector<ListedHost> hosts = list.take();
  if (hosts.empty()) usage_error("'{}' names no host; write one on each line", origin);
  return hosts;
}

std::vector<std::string> expand_nodelist(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split_list(text)) {
    if (part.empty()) not_a_list(text);
    for (std::string& name : expand_name(part, text)) names.push_back(std::move(name));
    if (names.size() > kMost) too_many();
  }
  return names;
}

std::vector<int> expand_tasks_per_node(std::string_view text) {
  std::vector<int> counts;
  std::int64_t all_ranks = 0;
  for (std::string_view part : split_list(text)) {
    int times = 1;
    const std::size_t open = part.find("(x");
    if (open != std::string_view::npos && part.ends_with(')')) {
      times = number(part.substr(open + 2, part.size() - open - 3), 1).value_or(0);
      part = part.substr(0, open);
    }
    const auto tasks = number(part, 1);
    if (!tasks || times == 0)
      usage_error("SLURM_TASKS_PER_NODE '{}' is not a list such as 4(x2),3; start again with srun or salloc",
                  shown(text));
    check_total(all_ranks += std::int64_t{times} * *tasks);
    counts.insert(counts.end(), static_cast<std::size_t>(times), *tasks);
    if (counts.size() > kMost) too_many();
  }
  return counts;
}

std::vector<ListedHost> slurm_hosts(const Environment& environment) {
  const auto nodes = environment("SLURM_JOB_NODELIST");
  if (!nodes || nodes->empty()) return {};
  std::vector<ListedHost> hosts;
  for (const std::string& name : expand_nodelist(*nodes)) {
    check_name(name, "SLURM_JOB_NODELIST");
    hosts.push_back({name, 0});
  }
  const auto tasks = environment("SLURM_TASKS_PER_NODE");
  // Where the job asked for no tasks, their number is that of the processors.
  if (!tasks || !environment("SLURM_NTASKS")) return hosts;
  const std::vector<int> counts = expand_tasks_per_node(*tasks);
  if (counts.size() != hosts.size())
    usage_error(
        "SLURM_JOB_NODELIST '{}' has {} hosts, but SLURM_TASKS_PER_NODE '{}' has {}; name them with -H",
        shown(*nodes), hosts.size(), shown(*tasks), counts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].ranks = counts[i];
  return hosts;
}

}  // namespace polyring
