#include "bench/cli/assume.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/port_rates.hpp"

namespace polyring {
namespace {

struct Key {
  std::string_view name;
  RateOf what;
  std::string_view one;  // what the rate is of
  std::string_view several;
  double most;  // GB/s: above it units were probably confused
};
constexpr std::array kKeys{
    Key{"nic", RateOf::nic_port, "NIC port", "NIC ports", kMostOfPort.value / 1e9},
    Key{"pcie", RateOf::pcie_link, "PCIe link", "PCIe links", 500},
    Key{"nvlink", RateOf::nvlink, "NVLink", "NVLinks", 500},
    Key{"xgmi", RateOf::xgmi_link, "xGMI link", "xGMI links", 500},
    Key{"c2c", RateOf::c2c, "NVLink-C2C", "NVLink-C2Cs", 5000},
    Key{"socket", RateOf::socket_bus, "bus between processors", "buses between processors", 5000},
};

const Key& key_of(RateOf what) { return *std::ranges::find(kKeys, what, &Key::what); }

constexpr std::array kTransfers{"2.5", "5", "8", "16", "32", "64"};  // GT/s, by generation of PCIe

/// Without white space around it, in lower case.
std::string plain(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return lower_case(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

/// The number that the text begins with, if `rest` follows it; else 0.
int number_before(std::string_view text, std::string_view rest) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && std::string_view(end, text.data() + text.size()) == rest ? value : 0;
}

/// Of `ndr` or `100gbe`.
std::optional<Bandwidth> named_port(const std::string& name) {
  if (const auto known = infiniband_rate(name)) return known->payload();
  return ethernet_rate(name);
}

/// Of `gen5x16`.
std::optional<Bandwidth> named_pcie(std::string_view name) {
  if (!name.starts_with("gen")) return std::nullopt;
  const auto x = std::min(name.find('x'), name.size() - 1);
  const int generation = number_before(name.substr(3), name.substr(x));
  const int lanes = number_before(name.substr(x + 1), "");
  constexpr std::array kLanes{1, 2, 4, 8, 16};
  if (generation < 1 || generation > std::ssize(kTransfers) ||
      std::ranges::find(kLanes, lanes) == kLanes.end())
    usage_error("--assume pcie={} is no PCIe link; write gen1 to gen6 and 1, 2, 4, 8 or 16 lanes: gen5x16",
                name);
  return probe::pcie_bandwidth(kTransfers[static_cast<std::size_t>(generation - 1)], lanes);
}

Bandwidth rate_of(const Key& key, const std::string& text) {
  const std::string name = plain(text);
  if (key.what == RateOf::nic_port) {
    if (const auto rate = named_port(name)) return *rate;
    std::vector<std::string> known;
    for (const InfinibandRate& rate : infiniband_rates()) known.emplace_back(rate.name);
    if (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0)
      usage_error("--assume nic: {}, or write it as 400Gb/s or 100GbE", unknown_name("rate", name, known));
  }
  if (key.what == RateOf::pcie_link) {
    if (const auto rate = named_pcie(name)) return *rate;
  }
  return parse_bandwidth(text, fmt::format("--assume {}", key.name));
}

AssumedRate parse(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos)
    usage_error("--assume '{}' is not KEY=RATE; write it as nic=400Gb/s or pcie=gen5x16", text);
  const std::string name = plain(std::string_view(text).substr(0, equals));
  const auto key = std::ranges::find(kKeys, name, &Key::name);
  if (key == kKeys.end()) {
    std::vector<std::string> known;
    for (const Key& one : kKeys) known.emplace_back(one.name);
    throw Error(ExitCode::usage, unknown_name("key of --assume", name, known));
  }
  const Bandwidth rate = rate_of(*key, text.substr(equals + 1));
  if (rate > gigabytes_per_second(key->most)) {
    usage_error("--assume {} is {}, more than any {} carries; 1 GB/s is 8 Gb/s", text, to_text(rate),
                key->one);
  }
  return {text, name, key->what, rate};
}

/// A rate that fills nothing in is a mistake: somebody believes that it counts.
[[noreturn]] void refuse(const AssumedRate& rate, const FilledRates& all) {
  const Key& key = key_of(rate.what);
  if (!all.uncounted.empty()) {
    usage_error(
        "--assume {} is of one {}, and nothing tells how many there are in {}; fill it in in the JSON of "
        "polyring probe",
        rate.text, key.one, all.uncounted);
  }
  if (all.known > 0)
    usage_error("the rate of every {} is known; leave {}= out of --assume", key.one, rate.key);
  usage_error("no {} is known here; leave {}= out of --assume", key.one, rate.key);
}

}  // namespace

std::string assume_help() {
  return "Rates for what the files leave open, and for nothing else: nic, of a port (400Gb/s as such, ndr, "
         "hdr "
         "or edr as a probe counts InfiniBand, 100GbE); pcie (gen5x16, or 64GB/s); nvlink and xgmi, of one "
         "link, "
         "times their number; c2c; socket, between two processors";
}

std::vector<AssumedRate> parse_assumed(const std::vector<std::string>& texts) {
  std::vector<AssumedRate> rates;
  for (const std::string& text : texts) {
    AssumedRate rate = parse(text);
    if (std::ranges::find(rates, rate.key, &AssumedRate::key) != rates.end())
      usage_error("--assume has {} twice; give it once", rate.key);
    rates.push_back(std::move(rate));
  }
  return rates;
}

void assume_rates(Inventory& hosts, const std::vector<AssumedRate>& rates) {
  std::vector<FilledRates> all(rates.size());
  std::map<const Machine*, std::vector<std::string>> facts;
  for (HostGroup& group : hosts.cluster.groups) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const AssumedRate& rate = rates[i];
      const FilledRates filled = fill_unknown(group.machine, rate.what, rate.rate);
      all[i].filled += filled.filled;
      all[i].known += filled.known;
      if (!filled.uncounted.empty()) all[i].uncounted = filled.uncounted;
      if (filled.filled == 0) continue;
      const Key& key = key_of(rate.what);
      const std::string fact = filled.filled == 1 ? fmt::format("{} of the {}", to_text(rate.rate), key.one)
                                                  : fmt::format("{} of each of {} {}", to_text(rate.rate),
                                                                filled.filled, key.several);
      group.machine.citations.push_back({fact, "assumed by --assume " + rate.text});
      facts[&group.machine].push_back(fact);
    }
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (all[i].filled == 0) refuse(rates[i], all[i]);
  }
  add_asked(hosts, [&](const Machine& machine) {
    const auto of_machine = facts.find(&machine);
    return of_machine == facts.end() ? std::string()
                                     : fmt::format("assumed: {}", fmt::join(of_machine->second, ", "));
  });
}

}  // namespace polyring
