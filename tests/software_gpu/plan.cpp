#include "tests/software_gpu/plan.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <tuple>

#include "tests/software_gpu/errors.hpp"

namespace polyring::software_gpu {
namespace {

constexpr int kMostDevices = 64;

class Line {
 public:
  Line(const std::string& text, std::string place) : place_(std::move(place)) {
    std::istringstream words(text);
    for (std::string word; words >> word;) words_.push_back(word);
  }

  [[noreturn]] void refuse(const std::string& why) const { fail_loudly(place_ + ": " + why); }

  bool at_end() const { return next_ == words_.size(); }
  std::string word() {
    if (at_end()) refuse("a word is missing at the end");
    return words_[next_++];
  }
  void expect(const std::string& wanted) {
    if (const std::string found = word(); found != wanted)
      refuse("expected \"" + wanted + "\", not " + found);
  }
  /// Whether the next word is this one, which is then taken.
  bool has(const std::string& wanted) {
    const bool found = !at_end() && words_[next_] == wanted;
    if (found) ++next_;
    return found;
  }
  std::string rest() {
    std::string text;
    while (!at_end()) text += (text.empty() ? "" : " ") + words_[next_++];
    return text;
  }
  std::uint64_t number() { return number_of(word()); }
  std::uint64_t number_of(const std::string& text) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse(text + " is no number");
    return value;
  }
  /// Such as 64MiB or 300us: a number and one of the units.
  std::uint64_t quantity(std::initializer_list<std::pair<const char*, std::uint64_t>> units) {
    const std::string text = word();
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    for (const auto& [unit, factor] : units)
      if (text.substr(digits) == unit) return number_of(text.substr(0, digits)) * factor;
    refuse(text + " has no unit that is known here");
  }
  std::uint64_t bytes() {
    return quantity({{"", 1}, {"B", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}});
  }
  std::uint64_t nanoseconds() { return quantity({{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}}); }
  /// Such as 12.4.
  std::pair<int, int> version() {
    const std::string text = word();
    const std::size_t dot = text.find('.');
    if (dot == std::string::npos) refuse(text + " is no version such as 12.4");
    return {static_cast<int>(number_of(text.substr(0, dot))),
            static_cast<int>(number_of(text.substr(dot + 1)))};
  }

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  std::string place_;
};

std::size_t device_index(Line& line, const Plan& plan) {
  const std::uint64_t index = line.number();
  if (index >= plan.devices.size()) line.refuse("there is no device " + std::to_string(index));
  return index;
}

void set_peers(Plan& plan, std::size_t left, std::size_t right, bool peers) {
  if (left == right) return;
  plan.devices[left].peers[right] = peers;
  plan.devices[right].peers[left] = peers;
}

void set_all_peers(Plan& plan, bool peers) {
  for (std::size_t left = 0; left < plan.devices.size(); ++left)
    for (std::size_t right = 0; right < left; ++right) set_peers(plan, left, right, peers);
}

void make_devices(Plan& plan, std::size_t count) {
  plan.devices.assign(count, DevicePlan{});
  for (std::size_t index = 0; index < count; ++index) {
    plan.devices[index].peers.assign(count, false);
    plan.devices[index].pci_bus = static_cast<int>(0x10 + index);
  }
  set_all_peers(plan, true);
}

void set_pci(DevicePlan& device, Line& line) {
  const std::string text = line.word();
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
    line.refuse(text + " is no PCI address such as 0000:1b:00.0");
  device.pci_domain = static_cast<int>(domain);
  device.pci_bus = static_cast<int>(bus);
  device.pci_device = static_cast<int>(slot);
}

void read_device(Plan& plan, Line& line) {
  const bool all = line.has("*");
  const std::size_t first = all ? 0 : device_index(line, plan);
  const std::size_t last = all ? plan.devices.size() : first + 1;
  DevicePlan read;
  const std::string what = line.word();
  if (what == "name")
    read.name = line.rest();
  else if (what == "memory")
    read.memory = line.bytes();
  else if (what == "capability")
    std::tie(read.capability_major, read.capability_minor) = line.version();
  else if (what == "multiprocessors")
    read.multiprocessors = static_cast<int>(line.number());
  else if (what == "pci")
    set_pci(read, line);
  else if (what == "mig")
    read.mig = line.word();
  else
    line.refuse("a device has no " + what);

  for (std::size_t index = first; index < last; ++index) {
    DevicePlan& device = plan.devices[index];
    if (what == "name") device.name = read.name;
    if (what == "memory") device.memory = read.memory;
    if (what == "multiprocessors") device.multiprocessors = read.multiprocessors;
    if (what == "capability") {
      device.capability_major = read.capability_major;
      device.capability_minor = read.capability_minor;
    }
    if (what == "pci") {
      device.pci_domain = read.pci_domain;
      device.pci_bus = read.pci_bus;
      device.pci_device = read.pci_device;
    }
    if (what == "mig") {
      device.mig = read.mig;
      for (std::size_t other = 0; other < plan.devices.size(); ++other) set_peers(plan, index, other, false);
    }
  }
}

void read_peers(Plan& plan, Line& line, bool peers) {
  if (peers && line.has("all")) return set_all_peers(plan, true);
  if (peers && line.has("none")) return set_all_peers(plan, false);
  const std::size_t left = device_index(line, plan);
  set_peers(plan, left, device_index(line, plan), peers);
}

void read_driver(Plan& plan, Line& line) {
  if (line.has("none")) {
    plan.driver_version = 0;
    return;
  }
  const auto [major, minor] = line.version();
  plan.driver_version = major * 1000 + minor * 10;
}

void read_delays(Plan& plan, Line& line) {
  while (!line.at_end()) {
    if (line.has("seed"))
      plan.delays.seed = line.number();
    else if (line.has("up-to"))
      plan.delays.up_to_ns = static_cast<std::int64_t>(line.nanoseconds());
    else if (line.has("one-in"))
      plan.delays.one_in = std::max(1u, static_cast<unsigned>(line.number()));
    else
      line.refuse("delays have no " + line.word());
  }
}

std::uint64_t operation_number(Line& line) {
  line.expect("at");
  line.expect("operation");
  const std::uint64_t number = line.number();
  if (number == 0) line.refuse("operations count from 1");
  return number;
}

int optional_device(const Plan& plan, Line& line) {
  if (!line.has("on")) return -1;
  line.expect("device");
  return static_cast<int>(device_index(line, plan));
}

Fault read_fault(const Plan& plan, Line& line, const std::string& word) {
  Fault fault{};
  if (word == "lost") {
    fault.kind = Fault::Kind::lost;
    line.expect("device");
    fault.device = static_cast<int>(device_index(line, plan));
    fault.at = operation_number(line);
    if (line.has("as")) {
      const std::string name = line.word();
      const auto code = error_of_name(name);
      if (!code) line.refuse("the software GPU knows no error " + name);
      fault.as = *code;
    }
  } else if (word == "hung") {
    fault.kind = Fault::Kind::hung;
    line.expect("stream");
    fault.device = optional_device(plan, line);
    fault.at = operation_number(line);
  } else if (word == "killed") {
    fault.kind = Fault::Kind::killed;
    fault.at = operation_number(line);
    fault.device = optional_device(plan, line);
  } else {
    fault.kind = Fault::Kind::failed_allocation;
    line.expect("allocation");
    if (line.has("above"))
      fault.above = line.bytes();
    else
      fault.at = line.number();
    fault.device = optional_device(plan, line);
  }
  return fault;
}

bool is_fault(const std::string& word) {
  return word == "lost" || word == "hung" || word == "killed" || word == "failed";
}

void read_line(Plan& plan, Line& line, const std::string& text) {
  bool ours = true;
  if (line.has("rank")) ours = static_cast<int>(line.number()) == plan.rank;
  const std::string word = line.word();
  Plan nobodys = plan;
  Plan& to = ours ? plan : nobodys;  // what is another rank's is still checked
  if (word == "devices") {
    const std::uint64_t count = line.number();
    if (count > kMostDevices) line.refuse("at most " + std::to_string(kMostDevices) + " devices");
    make_devices(to, count);
  } else if (word == "device")
    read_device(to, line);
  else if (word == "peers")
    read_peers(to, line, true);
  else if (word == "no-peers")
    read_peers(to, line, false);
  else if (word == "driver")
    read_driver(to, line);
  else if (word == "oldest-capability") {
    const auto [major, minor] = line.version();
    to.oldest_capability = major * 10 + minor;
  } else if (word == "delays")
    read_delays(to, line);
  else if (is_fault(word))
    to.faults.push_back(read_fault(to, line, word));
  else if (word == "nccl" || word == "cublas")
    to.others.push_back(word + " " + line.rest());
  else
    line.refuse("\"" + text + "\" says nothing that is known here");
  if (!line.at_end()) line.refuse("\"" + line.rest() + "\" at the end says nothing");
}

int rank_of_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return -1;
}

}  // namespace

Plan parse_plan(const std::string& text, const std::string& name, int rank) {
  Plan plan;
  plan.rank = rank;
  make_devices(plan, 8);
  std::istringstream lines(text);
  int number = 0;
  for (std::string content; std::getline(lines, content);) {
    ++number;
    content = content.substr(0, content.find('#'));
    Line line(content, name + ":" + std::to_string(number));
    if (!line.at_end()) read_line(plan, line, content);
  }
  if (const char* seed = std::getenv("POLYRING_SOFTWARE_GPU_SEED")) {
    plan.delays.seed = Line("", "POLYRING_SOFTWARE_GPU_SEED").number_of(seed);
  }
  return plan;
}

Plan read_plan() {
  const char* name = std::getenv("POLYRING_SOFTWARE_GPU");
  if (name == nullptr || *name == '\0') return parse_plan("", "no plan", rank_of_process());
  std::ifstream file(name);
  if (!file) fail_loudly(std::string("cannot read the plan ") + name + " (POLYRING_SOFTWARE_GPU)");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_plan(text, name, rank_of_process());
}

void say(const std::string& sentence) { std::fprintf(stderr, "software GPU: %s\n", sentence.c_str()); }

void fail_loudly(const std::string& sentence) {
  say(sentence);
  std::abort();
}

}  // namespace polyring::software_gpu
