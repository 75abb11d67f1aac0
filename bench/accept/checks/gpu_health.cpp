// gpu.health: what NVML says of each GPU: clocks, heat, ECC errors and Xid events, and how it differs from
// GPUs of its model.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "base/index.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_watch.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "gpu.health";
/// NVIDIA, «Dynamic Page Retirement»: a GPU can retire 64 pages, and one with 60 or more is to be replaced.
constexpr unsigned kMostRetiredPages = 59;
/// Of the highest clock that half of the GPUs of its model were seen with.
constexpr double kLeastClock = 0.9;
/// NVML's limits of power are rounded differently by drivers.
constexpr double kSamePower = 0.99;

std::string answer(const std::string&) { return own_gpu_states(); }

struct Fault {
  std::string what;    // half a sentence
  std::string remedy;  // half a sentence
};

/// What is wrong with a GPU by itself, the worst first.
std::vector<Fault> own_faults(const GpuState& gpu) {
  if (gpu.error != 0)
    return {{fmt::format("NVML cannot open it (error {}{})", gpu.error,
                         gpu.error == 15 ? ": it has fallen off the bus" : ""),
             "see dmesg for what the driver says of it, and reset it or reboot the host"}};
  std::vector<Fault> faults;
  const auto add = [&](std::string what, std::string remedy) {
    faults.push_back({std::move(what), std::move(remedy)});
  };
  if (!gpu.xids.empty())
    add(fmt::format("Xid {} came while this ran", fmt::join(gpu.xids, ", ")),
        "see dmesg, and NVIDIA's «XID Errors» for what the number means");
  if (gpu.remapping_failed) add("it could not remap a faulty row of its memory", "have the GPU replaced");
  if (gpu.retired_pages > kMostRetiredPages)
    add(fmt::format("it has retired {} pages of its memory, of the 64 that it can", gpu.retired_pages),
        "have the GPU replaced");
  if (gpu.uncorrected > 0) {
    const std::uint64_t now = gpu.uncorrected - std::min(gpu.uncorrected, gpu.uncorrected_before);
    add(fmt::format("it has had {} since its driver was loaded, {} of these while this ran",
                    counted(static_cast<std::int64_t>(gpu.uncorrected), "uncorrected ECC error"), now),
        "reset the GPU or reboot the host, and have it replaced if such errors come again");
  }
  if (gpu.waits_for_reset)
    add("it waits for a reset to take faulty memory out of use", "reset the GPU or reboot the host");
  if (!gpu.slowdown.empty())
    add(fmt::format("its clocks were held down while this ran: {}", fmt::join(gpu.slowdown, ", ")),
        "check its cooling and its power supply (nvidia-smi -q -d PERFORMANCE,TEMPERATURE)");
  if (gpu.slowdown_celsius > 0 && gpu.celsius >= gpu.slowdown_celsius)
    add(fmt::format("it was at {} °C, and slows itself down from {} on", gpu.celsius, gpu.slowdown_celsius),
        "check its cooling");
  if (gpu.watts > 0 && gpu.watts < kSamePower * gpu.default_watts)
    add(fmt::format("its power is limited to {:.0f} of {:.0f} W", gpu.watts, gpu.default_watts),
        fmt::format("lift the limit (nvidia-smi -pl {:.0f})", gpu.default_watts));
  if (gpu.set_MHz > 0 && gpu.set_MHz < gpu.default_set_MHz)
    add(fmt::format("its clock is set to {} MHz, and it comes with {}", gpu.set_MHz, gpu.default_set_MHz),
        "set it back (nvidia-smi -rac)");
  return faults;
}

/// The value that more than half have; nothing where there is none.
template <typename Value>
std::optional<Value> usual(const std::vector<Value>& values) {
  std::map<Value, std::size_t> count;
  for (const Value& value : values) ++count[value];
  const auto most = std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
  return most != count.end() && 2 * most->second > values.size() ? std::optional(most->first) : std::nullopt;
}

/// What is usual among the GPUs of one model. Nothing: it is unknown, or nothing is usual.
struct Usual {
  std::optional<std::string> driver;
  std::optional<unsigned> most_MHz;
  std::optional<unsigned> memory_MHz;
  std::optional<double> watts;
  std::optional<int> ecc;
  std::optional<double> seen_MHz;
};

using OfModels = std::map<std::string, Usual>;

OfModels usual_of_models(std::span<const GpuStates> hosts) {
  struct All {
    std::vector<std::string> driver;
    std::vector<unsigned> most_MHz, memory_MHz;
    std::vector<double> watts, seen_MHz;
    std::vector<int> ecc;
  };
  std::map<std::string, All> all;
  for (const GpuStates& host : hosts) {
    for (const GpuState& gpu : host.gpus) {
      if (gpu.error != 0) continue;
      All& of = all[gpu.name];
      if (!host.driver.empty()) of.driver.push_back(host.driver);
      if (gpu.most_MHz > 0) of.most_MHz.push_back(gpu.most_MHz);
      if (gpu.memory_MHz > 0) of.memory_MHz.push_back(gpu.memory_MHz);
      if (gpu.watts > 0) of.watts.push_back(gpu.watts);
      if (gpu.seen_MHz > 0) of.seen_MHz.push_back(gpu.seen_MHz);
      if (gpu.ecc >= 0) of.ecc.push_back(gpu.ecc);
    }
  }
  OfModels models;
  for (auto& [model, of] : all)
    models[model] = {usual(of.driver), usual(of.most_MHz), usual(of.memory_MHz),
                     usual(of.watts),  usual(of.ecc),      OfOthers(of.seen_MHz).median(std::nullopt)};
  return models;
}

/// How it differs from most of its model.
std::vector<Fault> differences_of(const GpuState& gpu, const std::string& driver, const Usual& most) {
  std::vector<Fault> faults;
  const auto differs = [&](std::string_view what, std::string_view unit, auto own, const auto& others,
                           std::string_view remedy) {
    if (others && own > 0 && own != *others)
      faults.push_back(
          {fmt::format("its {} is {}{}, and that of most GPUs of its model {}", what, own, unit, *others),
           std::string(remedy)});
  };
  if (most.driver && !driver.empty() && driver != *most.driver)
    faults.push_back(
        {fmt::format("its driver is {}, and that of most GPUs of its model {}", driver, *most.driver),
         "install the same driver on all hosts"});
  constexpr std::string_view kClocks = "see nvidia-smi -q -d CLOCK, and its firmware";
  differs("highest clock", " MHz", gpu.most_MHz, most.most_MHz, kClocks);
  differs("memory's highest clock", " MHz", gpu.memory_MHz, most.memory_MHz, kClocks);
  if (gpu.watts >= kSamePower * gpu.default_watts)  // otherwise that is said already
    differs("power limit", " W", gpu.watts, most.watts, "set the same limit on all GPUs (nvidia-smi -pl)");
  if (most.ecc && gpu.ecc >= 0 && gpu.ecc != *most.ecc)
    faults.push_back({fmt::format("its ECC is {}, and that of most GPUs of its model {}",
                                  gpu.ecc == 1 ? "on" : "off", *most.ecc == 1 ? "on" : "off"),
                      fmt::format("switch it {} (nvidia-smi -e {}), and reboot the host",
                                  *most.ecc == 1 ? "on" : "off", *most.ecc)});
  if (most.seen_MHz && gpu.seen_MHz > 0 && gpu.seen_MHz < kLeastClock * *most.seen_MHz)
    faults.push_back(
        {fmt::format("its clock was {} MHz at most while this ran, and that of half of its model {:.0f}",
                     gpu.seen_MHz, *most.seen_MHz),
         "see whether it is limited (nvidia-smi -rgc lifts that), or slowed down"});
  return faults;
}

class HostOfGpus {
 public:
  HostOfGpus(const Checking& checking, std::size_t host, const GpuStates& states)
      : checking_(checking), host_(static_cast<int>(host)), states_(states) {}

  std::vector<CheckRow> rows(const OfModels& models) const {
    std::vector<CheckRow> rows;
    std::vector<std::string> good;
    for (std::size_t i = 0; i < states_.gpus.size(); ++i) {
      const GpuState& gpu = states_.gpus[i];
      std::vector<Fault> faults = own_faults(gpu);
      if (gpu.error == 0)
        std::ranges::move(differences_of(gpu, states_.driver, models.at(gpu.name)),
                          std::back_inserter(faults));
      if (!faults.empty()) {
        rows.push_back(faulty(i, faults));
      } else if (!gpu.slowdown_known && gpu.ecc < 0) {
        CheckRow& row = rows.emplace_back(row_of_gpu(i));
        row.verdict = Verdict::missing;
        row.why = "NVML tells this user neither of slowdowns nor of ECC errors.";
        row.remedy = "See what nvidia-smi -q says, as root, too.";
      } else {
        good.push_back(name_of(i));
      }
    }
    if (!good.empty()) rows.push_back(passed(static_cast<std::int64_t>(good.size())));
    return rows;
  }

 private:
  CheckRow row_of_host() const { return row_of(checking_, kName, {host_}); }

  /// As the probe calls it; otherwise by where it is.
  std::string name_of(std::size_t gpu) const {
    const std::string& pci = states_.gpus[gpu].pci;
    const Inventory& inventory = checking_.site.inventory;
    if (inventory.unprobed.empty() && host_ < inventory.cluster.host_count() && !pci.empty())
      for (const Gpu& known : inventory.cluster.host(host_).gpus)
        if (known.pci == pci) return known.name;
    return pci.empty() ? fmt::format("NVML's GPU {}", gpu) : fmt::format("GPU {}", pci);
  }

  CheckRow row_of_gpu(std::size_t gpu) const {
    CheckRow row = row_of_host();
    row.subject = fmt::format("{} of {}", name_of(gpu), row.subject);
    return row;
  }

  CheckRow faulty(std::size_t gpu, const std::vector<Fault>& faults) const {
    CheckRow row = row_of_gpu(gpu);
    row.verdict = Verdict::fail;
    std::vector<std::string> what;
    for (const Fault& fault : faults) what.push_back(fault.what);
    row.why = as_sentence(fmt::format("{}", fmt::join(what, "; ")));
    row.remedy = as_sentence(faults.front().remedy);
    return row;
  }

  CheckRow passed(std::int64_t gpus) const {
    unsigned hottest = 0;
    bool xids_known = true;
    std::string clocks;
    for (const GpuState& gpu : states_.gpus) {
      hottest = std::max(hottest, gpu.celsius);
      xids_known = xids_known && (gpu.xids_known || gpu.error != 0);
      if (clocks.empty() && gpu.most_MHz > 0)
        clocks = fmt::format(", the first one's clock now {} of {} MHz", gpu.clock_MHz, gpu.most_MHz);
    }
    CheckRow row = row_of_host();
    row.verdict = Verdict::pass;
    row.why =
        fmt::format("{}: no slowdown, uncorrected ECC error{} while this ran; {} °C at most{}, driver {}.{}",
                    counted(gpus, "GPU"), xids_known ? " or Xid" : "", hottest, clocks, states_.driver,
                    xids_known ? "" : " NVML tells of no Xid events here.");
    return row;
  }

  const Checking& checking_;
  int host_;
  const GpuStates& states_;
};

std::vector<CheckRow> run(const Checking& checking) {
  const std::vector<HostReply> replies = checking.measurer.ask(std::string(kName), "");
  std::vector<CheckRow> rows;
  std::vector<GpuStates> hosts;
  for (std::size_t host = 0; host < replies.size(); ++host) {
    GpuStates& states = hosts.emplace_back(gpu_states_of(replies[host].text));
    const std::string& why = replies[host].error.empty() ? states.why_not : replies[host].error;
    if (why.empty()) continue;
    CheckRow& row = rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)}));
    row.verdict = Verdict::error;
    row.why = fmt::format("NVML says nothing of its GPUs: {}.", why);
    row.remedy = "See what nvidia-smi says on this host.";
  }
  const OfModels models = usual_of_models(hosts);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const Inventory& inventory = checking.site.inventory;
    const int number = static_cast<int>(host);
    const bool has_gpus = inventory.unprobed.empty() && number < inventory.cluster.host_count() &&
                          !inventory.cluster.host(number).gpus.empty();
    if (has_gpus && !models.empty() && replies[host].text.empty() && replies[host].error.empty()) {
      CheckRow& row = rows.emplace_back(row_of(checking, kName, {number}));
      row.verdict = Verdict::missing;
      row.why = "It has GPUs, and no driver of NVIDIA's is loaded there, as on other hosts.";
      row.remedy = "Load it with: modprobe nvidia (as root).";
      continue;
    }
    const std::vector<CheckRow> more = HostOfGpus(checking, host, hosts[host]).rows(models);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  if (!rows.empty()) return rows;
  CheckRow& row = rows.emplace_back(row_of(checking, kName, {}));
  row.subject.clear();
  row.verdict = Verdict::skipped;
  row.why = "No host shows a driver of NVIDIA's GPUs.";
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kGpuHealth{
    kName,
    "heat, slowdowns, ECC errors and Xid events of GPUs, and GPUs that differ from others of their model",
    turns,
    {},
    run,
    answer};

}  // namespace polyring
