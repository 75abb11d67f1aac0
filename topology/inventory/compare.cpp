#include "topology/inventory/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topology/host_names.hpp"
#include "topology/inventory/compare_links.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

std::string plural(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string known(const std::string& text) { return text.empty() ? "unknown" : text; }

/// Compares device after device; what it finds is in found.
class Comparison {
 public:
  Comparison(const Machine& usual, const Machine& other, double tolerance)
      : usual_(usual), other_(other), tolerance_(tolerance) {}

  std::vector<Difference> run() {
    if (usual_.model != other_.model) own("model is {}, not {}", known(other_.model), known(usual_.model));
    compare_packages();
    match_gpus();
    compare_gpus();
    match_nics();
    if (usual_.nvswitches != other_.nvswitches) {
      has("{} NVSwitch{}, not {}", other_.nvswitches, other_.nvswitches == 1 ? "" : "es", usual_.nvswitches);
    }
    for (int i = 0; i < std::min(usual_.nvswitches, other_.nvswitches); ++i)
      match({DeviceKind::nvswitch, i}, {DeviceKind::nvswitch, i});
    compare_links(usual_, other_, counterparts_, tolerance_, found_);
    return std::move(found_);
  }

 private:
  template <typename... Args>
  void has(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back({Difference::Kind::has, fmt::format(text, std::forward<Args>(args)...)});
  }

  template <typename... Args>
  void own(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back({Difference::Kind::own, fmt::format(text, std::forward<Args>(args)...)});
  }

  void match(DeviceId in_other, DeviceId in_usual) { counterparts_[in_other] = in_usual; }

  void compare_memory(const std::string& name, Bytes should, Bytes is) {
    const auto usual = static_cast<double>(should.value);
    const auto other = static_cast<double>(is.value);
    if (nearly(usual, other, tolerance_)) return;
    if (nearly(usual, other, kUsualTolerance)) {
      const Bytes difference{should > is ? should.value - is.value : is.value - should.value};
      own("{} has {} {} memory", name, to_text(difference), should > is ? "less" : "more");
    } else {
      own("{} has {} of memory, not {}", name, gibibytes(is), gibibytes(should));
    }
  }

  static std::string gibibytes(Bytes bytes) {
    return bytes.value == 0 ? "an unknown size"
                            : significant(static_cast<double>(bytes.value) / kGibibyte, 4) + " GiB";
  }

  void compare_speed(const std::string& what, Bandwidth should, Bandwidth is) {
    if (nearly(should.value, is.value, tolerance_)) return;
    const auto text = [](Bandwidth speed) { return speed.known() ? to_text(speed) : "an unknown speed"; };
    own("{} runs at {}, not {}", what, text(is), text(should));
  }

  void compare_numa(const std::string& name, int should, int is) {
    const auto text = [](int node) {
      return node < 0 ? std::string("an unknown one") : fmt::format("{}", node);
    };
    if (should != is) own("{} is near NUMA node {}, not {}", name, text(is), text(should));
  }

  static std::string cores_text(const Package& package) {
    return package.cores == 0 ? "an unknown number of cores"
                              : plural(static_cast<std::size_t>(package.cores), "core");
  }

  void compare_packages() {
    if (usual_.packages.size() != other_.packages.size())
      has("{}, not {}", plural(other_.packages.size(), "CPU socket"), usual_.packages.size());
    const std::size_t common = std::min(usual_.packages.size(), other_.packages.size());
    for (std::size_t i = 0; i < common; ++i) {
      const Package& should = usual_.packages[i];
      const Package& is = other_.packages[i];
      match({DeviceKind::package, static_cast<int>(i)}, {DeviceKind::package, static_cast<int>(i)});
      if (should.model != is.model)
        own("{} is {}, not {}", should.name, known(is.model), known(should.model));
      if (should.cores != is.cores) own("{} has {}, not {}", should.name, cores_text(is), cores_text(should));
      compare_memory(should.name, should.memory, is.memory);
      compare_speed(should.name + "'s memory", should.memory_bandwidth, is.memory_bandwidth);
      if (should.numa_nodes != is.numa_nodes) own("{} has other NUMA nodes", should.name);
    }
  }

  /// Equally many GPUs are the same ones, in their order; else their addresses tell which are there.
  void match_gpus() {
    const std::size_t expected = usual_.gpus.size();
    const std::size_t found = other_.gpus.size();
    if (expected == found) {
      for (int i = 0; i < static_cast<int>(found); ++i) match({DeviceKind::gpu, i}, {DeviceKind::gpu, i});
      return;
    }
    std::set<std::string> missing;
    for (const Gpu& gpu : usual_.gpus) missing.insert(gpu.name);
    for (int i = 0; i < static_cast<int>(found); ++i) {
      const Gpu& gpu = other_.gpus[static_cast<std::size_t>(i)];
      const auto same = std::ranges::find_if(
          usual_.gpus, [&](const Gpu& candidate) { return !gpu.pci.empty() && candidate.pci == gpu.pci; });
      if (same == usual_.gpus.end()) continue;
      missing.erase(same->name);
      match({DeviceKind::gpu, i}, {DeviceKind::gpu, static_cast<int>(same - usual_.gpus.begin())});
    }
    const bool all_known = found < expected && missing.size() == expected - found;
    const std::vector<std::string> names(missing.begin(), missing.end());
    has("{}, not {}{}", plural(found, "GPU"), expected,
        all_known && found > 0 ? fmt::format(": {} is missing", names_text(names)) : "");
    if (found < expected) found_.back().link_of = "GPUs";
  }

  void compare_gpus() {
    const auto is_model = [](const Machine& machine, const std::string& model) {
      return std::ranges::all_of(machine.gpus, [&](const Gpu& gpu) { return gpu.model == model; });
    };
    if (usual_.gpus.empty() || other_.gpus.empty()) return;
    const std::string& should = usual_.gpus.front().model;
    const std::string& is = other_.gpus.front().model;
    const bool all_others = should != is && is_model(usual_, should) && is_model(other_, is);
    if (all_others) own("GPUs are {}, not {}", known(is), known(should));
    for (const auto& [in_other, in_usual] : counterparts_) {
      if (in_usual.kind != DeviceKind::gpu) continue;
      const Gpu& expected = usual_.gpus[static_cast<std::size_t>(in_usual.index)];
      const Gpu& found = other_.gpus[static_cast<std::size_t>(in_other.index)];
      if (expected.model != found.model && !all_others)
        own("{} is {}, not {}", expected.name, known(found.model), known(expected.model));
      compare_memory(expected.name, expected.memory, found.memory);
      compare_speed(expected.name + "'s memory", expected.memory_bandwidth, found.memory_bandwidth);
      compare_numa(expected.name, expected.numa, found.numa);
    }
    if (usual_.gpu_driver != other_.gpu_driver)
      own("GPUs have driver {}, not {}", known(other_.gpu_driver), known(usual_.gpu_driver));
  }

  /// NICs are the same when they have the same name.
  void match_nics() {
    for (int i = 0; i < static_cast<int>(usual_.nics.size()); ++i) {
      const Nic& should = usual_.nics[static_cast<std::size_t>(i)];
      const auto is = std::ranges::find(other_.nics, should.name, &Nic::name);
      if (is == other_.nics.end()) {
        has("no {}", should.name);
        found_.back().link_of = should.name;
        continue;
      }
      match({DeviceKind::nic, static_cast<int>(is - other_.nics.begin())}, {DeviceKind::nic, i});
      compare_nic(should, *is);
    }
    for (const Nic& nic : other_.nics) {
      if (std::ranges::find(usual_.nics, nic.name, &Nic::name) == usual_.nics.end())
        has("{} too, which others have not", nic.name);
    }
  }

  void compare_nic(const Nic& should, const Nic& is) {
    if (should.model != is.model) own("{} is {}, not {}", should.name, known(is.model), known(should.model));
    if (should.kind != is.kind)
      own("{} is of kind {}, not {}", should.name, to_text(is.kind), to_text(should.kind));
    compare_numa(should.name, should.numa, is.numa);
    if (should.up() != is.up()) {
      own("{} is {}", should.name, is.up() ? "up, where others are down" : "down");
      if (should.up()) found_.back().link_of = should.name;
      return;
    }
    if (should.ports.size() != is.ports.size()) {
      own("{} has {}, not {}", should.name, plural(is.ports.size(), "port"), should.ports.size());
      return;
    }
    for (std::size_t i = 0; i < is.ports.size(); ++i) compare_port(should, should.ports[i], is.ports[i]);
  }

  void compare_port(const Nic& nic, const Port& should, const Port& is) {
    const std::string name =
        nic.ports.size() == 1 ? nic.name : fmt::format("{} port {}", nic.name, should.number);
    if (should.up != is.up) {
      own("{} is {}", name, is.up ? "up, where others are down" : "down");
      if (should.up) found_.back().link_of = nic.name;
    } else if (is.up && !nearly(should.bandwidth.value, is.bandwidth.value, tolerance_)) {
      compare_speed(name, should.bandwidth, is.bandwidth);
      if (is_less(should.bandwidth, is.bandwidth)) found_.back().link_of = nic.name;
    }
  }

  const Machine& usual_;
  const Machine& other_;
  double tolerance_;
  DeviceMap counterparts_;
  std::vector<Difference> found_;
};

}  // namespace

std::string sentence(const Difference& difference, std::span<const std::string> hosts) {
  const std::string names = names_text(hosts);
  if (difference.kind == Difference::Kind::has)
    return fmt::format("{} {} {}", names, hosts.size() == 1 ? "has" : "have", difference.text);
  return hosts.size() == 1 ? fmt::format("{}'s {}", names, difference.text)
                           : fmt::format("on {} {}", names, difference.text);
}

std::vector<Difference> differences(const Machine& usual, const Machine& other, double tolerance) {
  return Comparison(usual, other, tolerance).run();
}

std::string normal_form(const Machine& machine) {
  std::string text = fmt::format("{}\n{}\n", machine.model, machine.gpu_driver);
  for (const Package& package : machine.packages) {
    text += fmt::format("{} {} {} {} {}", package.name, package.model, package.cores, package.memory.value,
                        package.memory_bandwidth.value);
    for (const int node : package.numa_nodes) text += fmt::format(" {}", node);
    text += '\n';
  }
  text += fmt::format("{} switches, {} NVSwitches\n", machine.switches.size(), machine.nvswitches);
  for (const Gpu& gpu : machine.gpus) {
    text += fmt::format("{} {} {} {} {}\n", gpu.name, gpu.model, gpu.numa, gpu.memory.value,
                        gpu.memory_bandwidth.value);
  }
  for (const Nic& nic : machine.nics) {
    text += fmt::format("{} {} {} {}", nic.name, nic.model, nic.numa, to_text(nic.kind));
    for (const Port& port : nic.ports)
      text += fmt::format(", {} {} {}", port.number, port.up, port.bandwidth.value);
    text += '\n';
  }
  const std::vector<int> physical = physical_links(machine);
  for (std::size_t i = 0; i < physical.size(); ++i) {
    const Link& link = machine.links[i];
    text += fmt::format("{} {} {} {} {} {}\n", machine.device_name(link.from), machine.device_name(link.to),
                        to_text(link.kind), link.bandwidth.value, link.count, physical[i]);
  }
  return text;
}

}  // namespace polyring
