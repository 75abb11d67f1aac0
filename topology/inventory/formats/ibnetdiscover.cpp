#include "topology/inventory/formats/ibnetdiscover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "topology/inventory/probe/sysfs.hpp"

namespace polyring {
namespace {

/// A subnet has fewer than 48 K unicast addresses.
constexpr std::size_t kMostNodes = 49'152;
constexpr std::size_t kMostQuoted = 60;

/// One port, as in its own node's lines.
struct Claim {
  FabricEnd own;
  std::string peer;  // "S-2c5eab0300b87b40"
  int peer_port = 0;
  std::string rate;
};

/// Takes one line apart from its start. Each call says whether it found what it asked for.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<int> number() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  /// "[3]", and the "[ext 7]" that may follow it.
  std::optional<int> port() {
    if (!take("[")) return std::nullopt;
    const std::optional<int> value = number();
    if (!value || !take("]")) return std::nullopt;
    if (rest_.starts_with("[ext ")) between('[', ']');
    return value;
  }

  /// What stands between these two, which begin here.
  std::optional<std::string_view> between(char open, char close) {
    if (rest_.empty() || rest_.front() != open) return std::nullopt;
    const auto end = rest_.find(close, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }

  /// The description in quotes, which may itself have quotes in it, and what comes after.
  std::pair<std::string, std::string_view> comment() const {
    const auto first = rest_.find('"');
    const auto last = rest_.rfind('"');
    if (first == std::string_view::npos || last == first) return {{}, rest_};
    return {printable_line(rest_.substr(first + 1, last - first - 1)), rest_.substr(last + 1)};
  }

 private:
  std::string_view rest_;
};

/// "4xNDR" among the words after a description.
std::string rate_in(std::string_view words) {
  while (!words.empty()) {
    const auto begin = words.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    words.remove_prefix(begin);
    const std::string_view word = words.substr(0, words.find_first_of(" \t"));
    words.remove_prefix(word.size());
    const auto x = word.find('x');
    const bool is_width = x != std::string_view::npos && x > 0 && x + 1 < word.size() &&
                          word.find_first_not_of("0123456789") == x;
    if (is_width) return std::string(word);
  }
  return {};
}

/// As a probe of a host counts the rate that Linux has in /sys/class/infiniband/*/ports/*/rate.
Bandwidth bandwidth_of(std::string_view rate) {
  struct Speed {
    std::string_view name;
    double gigabits;  // of one lane
  };
  constexpr std::array kSpeeds{Speed{"SDR", 2.5},  Speed{"DDR", 5},   Speed{"QDR", 10},
                               Speed{"FDR10", 10}, Speed{"FDR", 14},  Speed{"EDR", 25},
                               Speed{"HDR", 50},   Speed{"NDR", 100}, Speed{"XDR", 200}};
  Line line(rate);
  const std::optional<int> width = line.number();
  if (!width || !line.take("x")) return {};
  const std::string_view name = rate.substr(rate.find('x') + 1);
  const auto speed = std::ranges::find(kSpeeds, name, &Speed::name);
  if (speed == kSpeeds.end()) return {};
  return probe::openfabrics_rate(fmt::format("{} Gb/sec ({})", *width * speed->gigabits, rate),
                                 NicKind::infiniband);
}

/// "mlx5_0", "hfi1_0", "HCA-1"; not "ConnectX7".
bool is_device(std::string_view word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.back())) != 0 &&
         (word.starts_with("HCA-") || std::islower(static_cast<unsigned char>(word.front())) != 0);
}

/// Linux describes an adapter by two words, its host's name and its own. Firmware knows only product and
/// vendor.
void name_adapter(FabricAdapter& adapter) {
  const std::string& name = adapter.name;
  if (name.find("Aggregation Node") != std::string::npos) {
    adapter.kind = AdapterKind::aggregation;
    return;
  }
  const auto blank = name.find(' ');
  if (blank == 0 || blank == std::string::npos) return;
  const std::string device = name.substr(std::min(name.find_first_not_of(' ', blank), name.size()));
  if (!is_device(device) || device.find(' ') != std::string::npos) return;
  adapter.host = name.substr(0, blank);
  adapter.device = device;
}

/// Of Mellanox' "MF0;leaf07:MQM9701/U1" the part that tells it apart: "leaf07", or "core1/L02/U1" of one of
/// several chips.
std::string switch_name(const std::string& description, const std::string& guid) {
  if (description.empty()) return guid;
  const auto begin = description.find(';');
  const auto colon = description.find(':', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || colon == std::string::npos || colon == begin + 1) return description;
  const std::string system = description.substr(begin + 1, colon - begin - 1);
  const auto chip = description.find('/', colon);
  if (chip == std::string::npos || description.substr(chip) == "/U1") return system;
  return system + description.substr(chip);
}

class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  FabricMap read(std::string_view text) {
    map_.source = std::filesystem::path(origin_).filename().string();
    map_.planes = {map_.source};
    text = without_byte_order_mark(text);
    while (!text.empty()) {
      ++line_;
      const auto end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      read_line(line);
    }
    if (nodes_.empty()) {
      usage_error("'{}' names no switch and no adapter; write it with: ibnetdiscover > FILE", origin_);
    }
    tell_switches_apart();
    if (passed_over_ > 0) {
      map_.remarks.push_back(fmt::format("{} line{} not ibnetdiscover's, such as '{}', passed over",
                                         passed_over_, passed_over_ == 1 ? " is" : "s are",
                                         first_passed_over_));
    }
    join();
    forget_shared_names();
    assign_levels(map_);
    return std::move(map_);
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    usage_error("'{}', line {}: {}; write it again with: ibnetdiscover > FILE", origin_, line_, what);
  }

  void read_line(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos || text[begin] == '#') return;
    if (text[begin] == '[') return read_port(Line(text.substr(begin)));
    for (const std::string_view kind : {"Switch", "Ca", "Rt"}) {
      Line line(text.substr(begin));
      if (line.take(kind) && text.substr(begin + kind.size()).find_first_of(" \t") == 0)
        return read_node(kind, line);
    }
    // Identifiers, and the titles of chassis.
    for (const std::string_view start : {"vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=",
                                         "rtguid=", "Chassis ", "Non-Chassis Nodes", "Hostname: "}) {
      if (text.substr(begin).starts_with(start)) return;
    }
    if (is_noise(text.substr(begin))) {
      if (passed_over_++ == 0) first_passed_over_ = printable_line(text.substr(begin), kMostQuoted);
      return;
    }
    wrong(fmt::format("this is none of ibnetdiscover's lines: '{}'",
                      printable_line(text.substr(begin), kMostQuoted)));
  }

  /// A shell's prompt with the command, and what the tool and its libraries say on the standard error.
  static bool is_noise(std::string_view text) {
    const bool is_command = text.ends_with("ibnetdiscover") ||
                            text.find("ibnetdiscover -") != std::string_view::npos ||
                            text.find("ibnetdiscover 2>") != std::string_view::npos;
    const auto last = text.find_last_not_of(" \t");
    const bool is_prompt =
        text.find('@') != std::string_view::npos && (text[last] == '$' || text[last] == '#');
    const auto source = text.find(".c:");
    return is_command || is_prompt || text.starts_with("ibwarn:") || text.starts_with("ibpanic:") ||
           text.starts_with("ibdebug:") ||
           (source != std::string_view::npos && source < text.find_first_of(" \t\""));
  }

  /// Firmware describes switches by product and vendor: to those that share a name, the ends of their GUIDs
  /// are added, as much as it takes.
  void tell_switches_apart() {
    std::map<std::string, std::vector<FabricSwitch*>> of_name;
    for (FabricSwitch& at : map_.switches) of_name[at.name].push_back(&at);
    for (const auto& [name, same] : of_name) {
      if (same.size() == 1) continue;
      std::size_t digits = 4;
      for (std::set<std::string> ends; digits < 16; ++digits, ends.clear()) {
        for (const FabricSwitch* at : same) ends.insert(at->guid.substr(at->guid.size() - digits));
        if (ends.size() == same.size()) break;
      }
      for (FabricSwitch* at : same)
        at->name = fmt::format("{} {}", name, at->guid.substr(at->guid.size() - digits));
    }
  }

  void read_node(std::string_view kind, Line line) {
    line.skip_blanks();
    const std::optional<int> ports = line.number();
    line.skip_blanks();
    const auto id = line.between('"', '"');
    if (!ports || !id || id->size() < 3) wrong("a node has a number of ports and an identifier in quotes");
    const std::string guid = normal_guid(id->substr(2));
    if (guid.empty()) wrong(fmt::format("{} is not followed by a GUID", id->substr(0, 2)));
    if (nodes_.size() >= kMostNodes) wrong("there are more nodes than a subnet can have");
    const bool is_switch = kind == "Switch";
    own_ = {is_switch, static_cast<int>(is_switch ? map_.switches.size() : map_.adapters.size()), 0};
    const auto [known, is_new] = nodes_.try_emplace(std::string(*id), own_);
    if (!is_new) wrong(fmt::format("{} is described for the second time", *id));
    is_known_ = true;
    const std::string description = line.comment().first;
    if (is_switch) {
      map_.switches.push_back({guid, switch_name(description, guid), 0});
      return;
    }
    FabricAdapter adapter{guid, description.empty() ? guid : description, AdapterKind::host, {}, {}, {}};
    if (kind == "Rt") {
      adapter.kind = AdapterKind::router;
    } else {
      name_adapter(adapter);
    }
    map_.adapters.push_back(std::move(adapter));
  }

  void read_port(Line line) {
    if (!is_known_) wrong("there is a port before the first node");
    Claim claim;
    const std::optional<int> number = line.port();
    const auto own_guid = line.between('(', ')');
    line.skip_blanks();
    const auto peer = line.between('"', '"');
    const std::optional<int> peer_port = peer ? line.port() : std::nullopt;
    if (!number || !peer_port)
      wrong("a port has its number, the node at its other end in quotes, and a port there");
    own_.port = *number;
    claim = {own_, std::string(*peer), *peer_port, rate_in(line.comment().second)};
    if (own_guid && !own_.is_switch) {
      const std::string guid = normal_guid(*own_guid);
      if (!guid.empty()) map_.adapters[static_cast<std::size_t>(own_.index)].port_guids.push_back(guid);
    }
    if (!claims_.try_emplace(own_, std::move(claim)).second)
      wrong(fmt::format("port {} of this node is described for the second time", own_.port));
  }

  /// Makes links of what the two ends of each cable say.
  void join() {
    int to_strangers = 0;
    int one_sided = 0;
    int contradicted = 0;
    int two_rates = 0;
    std::optional<FabricEnd> stranger, silent, contradiction, two_rated;
    for (const auto& [end, claim] : claims_) {
      const auto peer = nodes_.find(claim.peer);
      if (peer == nodes_.end()) {
        if (to_strangers++ == 0) stranger = end;
        continue;
      }
      FabricEnd other = peer->second;
      other.port = claim.peer_port;
      const auto answer = claims_.find(other);
      if (other == end) continue;  // a plug that leads back, as testers use
      if (answer == claims_.end()) {
        if (one_sided++ == 0) silent = end;
      } else if (!leads_to(answer->second, end)) {
        if (contradicted++ == 0) contradiction = end;
        continue;
      } else if (other < end) {
        continue;  // this link is made from its other end
      }
      FabricLink link{end, other, claim.rate, bandwidth_of(claim.rate)};
      if (answer != claims_.end() && answer->second.rate != claim.rate) {
        const Bandwidth back = bandwidth_of(answer->second.rate);
        const bool both = link.bandwidth.known() && back.known();
        if (both && two_rates++ == 0) two_rated = end;
        if (!link.bandwidth.known() || (both && back < link.bandwidth)) {
          link.rate = answer->second.rate;
          link.bandwidth = back;
        }
      }
      map_.links.push_back(std::move(link));
    }
    remark(to_strangers, stranger, "to a node that the file does not describe; is it complete?");
    remark(one_sided, silent, "to a port that the file does not have; the link is counted");
    remark(contradicted, contradiction, "to a port that says it leads elsewhere; the link is left out");
    remark(two_rates, two_rated, "to a port that has another rate; the lesser counts");
    const auto unknown =
        std::ranges::count_if(map_.links, [](const FabricLink& link) { return !link.bandwidth.known(); });
    if (unknown > 0) map_.remarks.push_back(fmt::format("the rate of {} links is unknown", unknown));
  }

  /// Where hosts have not been named yet, each calls itself "localhost": no name of one.
  void forget_shared_names() {
    constexpr int kMostAdapters = 64;  // more than any host has
    std::map<std::string, int> adapters;
    for (const FabricAdapter& adapter : map_.adapters) {
      if (!adapter.host.empty()) ++adapters[adapter.host];
    }
    for (const auto& [name, count] : adapters) {
      if (count <= kMostAdapters) continue;
      map_.remarks.push_back(
          fmt::format("{} adapters say that their host is {}, more than a host has: the name is passed over",
                      count, name));
    }
    for (FabricAdapter& adapter : map_.adapters) {
      if (!adapter.host.empty() && adapters[adapter.host] > kMostAdapters) adapter.host.clear();
    }
  }

  bool leads_to(const Claim& claim, FabricEnd end) const {
    const auto peer = nodes_.find(claim.peer);
    if (peer == nodes_.end()) return false;
    FabricEnd other = peer->second;
    other.port = claim.peer_port;
    return other == end;
  }

  void remark(int count, const std::optional<FabricEnd>& example, std::string_view what) {
    if (!example) return;
    map_.remarks.push_back(fmt::format("{} port{} {}, such as port {} of {}", count,
                                       count == 1 ? " leads" : "s lead", what, example->port,
                                       map_.name(*example)));
  }

  std::string_view origin_;
  int line_ = 0;
  FabricMap map_;
  std::map<std::string, FabricEnd> nodes_;  // by identifier, port 0
  std::map<FabricEnd, Claim> claims_;
  int passed_over_ = 0;
  std::string first_passed_over_;
  FabricEnd own_;  // of the node whose lines are being read
  bool is_known_ = false;
};

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  return text.starts_with("vendid=") || text.find("\nvendid=") != std::string_view::npos;
}

FabricMap parse_ibnetdiscover(std::string_view text, std::string_view origin) {
  return Reader(origin).read(text);
}

FabricMap read_fabric(std::span<const std::string> files) {
  std::vector<FabricMap> planes;
  for (const std::string& file : files) planes.push_back(parse_ibnetdiscover(read_text_file(file), file));
  return merged(std::move(planes));
}

}  // namespace polyring
