// One device or link less: a cable that is pulled, a GPU that fell off its bus.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/link_names.hpp"
#include "topology/rank_gpus.hpp"
#include "topology/rank_nics.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

std::vector<DeviceId> devices_of(const Machine& machine) {
  std::vector<DeviceId> devices;
  const auto add = [&](DeviceKind kind, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) devices.push_back({kind, static_cast<int>(i)});
  };
  add(DeviceKind::gpu, machine.gpus.size());
  add(DeviceKind::nic, machine.nics.size());
  add(DeviceKind::nvswitch, index(machine.nvswitches));
  add(DeviceKind::package, machine.packages.size());
  add(DeviceKind::pci_switch, machine.switches.size());
  return devices;
}

std::optional<DeviceId> find_device(const Machine& machine, std::string_view name) {
  const std::string wanted = lower_case(name);
  for (const DeviceId id : devices_of(machine)) {
    if (lower_case(machine.device_name(id)) == wanted) return id;
  }
  return std::nullopt;
}

struct Ends {
  DeviceId from;
  DeviceId to;
};

/// Of "gpu0-gpu1"; names may have dashes, too.
std::optional<Ends> find_ends(const Machine& machine, std::string_view what) {
  for (std::size_t at = what.find('-'); at != std::string_view::npos; at = what.find('-', at + 1)) {
    const auto from = find_device(machine, what.substr(0, at));
    const auto to = find_device(machine, what.substr(at + 1));
    if (from && to) return Ends{*from, *to};
  }
  return std::nullopt;
}

int bonded_in(const Machine& machine, const Link& link) {
  return link.kind == LinkKind::xgmi ? link.count : nvlinks_in(machine, link);
}

/// The index of the NVLink or xGMI link between these devices.
std::size_t gpu_link_between(const Machine& machine, Ends ends) {
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    const bool same =
        (link.from == ends.from && link.to == ends.to) || (link.from == ends.to && link.to == ends.from);
    if (same && (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi)) return i;
  }
  const char* hint = machine.nvswitches > 0 ? "; GPUs meet over NVSwitches here: name gpu0-nvswitch0"
                                            : "; name two that NVLink or xGMI joins";
  usage_error("no NVLink or xGMI link joins {} and {} of machine '{}'{}", machine.device_name(ends.from),
              machine.device_name(ends.to), machine.name, hint);
}

Machine without_link(Machine machine, Ends ends) {
  const std::size_t at = gpu_link_between(machine, ends);
  Link& link = machine.links[at];
  const int count = bonded_in(machine, link);
  if (count == 0) {
    usage_error(
        "how many links are bonded between {} and {} of machine '{}' is unknown, so one of them is no "
        "number; "
        "leave it there",
        machine.device_name(ends.from), machine.device_name(ends.to), machine.name);
  }
  if (count == 1) {
    machine.links.erase(machine.links.begin() + static_cast<std::ptrdiff_t>(at));
    return machine;
  }
  link.bandwidth = ((count - 1.0) / count) * link.bandwidth;
  link.count = count - 1;
  return machine;
}

Machine without_gpu(const Machine& machine, int gpu) {
  if (machine.gpus.size() == 1) {
    usage_error("machine '{}' has {} alone, and without it no GPU; leave it there", machine.name,
                machine.gpus.front().name);
  }
  std::vector<int> rest(machine.gpus.size());
  std::iota(rest.begin(), rest.end(), 0);
  std::erase(rest, gpu);
  return with_gpus(machine, rest);
}

Machine without_nic(Machine machine, int nic) {
  Nic& one = machine.nics[index(nic)];
  if (one.ports.empty()) {
    usage_error("no port of {} of machine '{}' is known, nor whether it is up; say what the NICs carry first",
                one.name, machine.name);
  }
  if (!one.up()) usage_error("{} of machine '{}' is down already; name another NIC", one.name, machine.name);
  for (Port& port : one.ports) port.up = false;
  return machine;
}

std::string what_remains(const Machine& machine, std::optional<DeviceId> device, std::optional<Ends> ends,
                         const Machine& rest) {
  if (!device) {
    const int count = bonded_in(machine, machine.links[gpu_link_between(machine, *ends)]);
    return fmt::format("one link of {} - {}, {} of {} remain{}", machine.device_name(ends->from),
                       machine.device_name(ends->to), count - 1, count, count == 2 ? "s" : "");
  }
  const bool gpu = device->kind == DeviceKind::gpu;
  const auto before = gpu ? machine.gpus.size() : usable_nics(machine).size();
  const auto after = gpu ? rest.gpus.size() : usable_nics(rest).size();
  return fmt::format("{}, {} of {} {}s remain{}", machine.device_name(*device), after, before,
                     gpu ? "GPU" : "NIC", after == 1 ? "s" : "");
}

}  // namespace

Machine without(const Machine& machine, std::string_view what) {
  const auto device = find_device(machine, what);
  const auto ends = find_ends(machine, what);
  if (!device && !ends) {
    std::vector<std::string> known;
    for (const Gpu& gpu : machine.gpus) known.push_back(gpu.name);
    for (const Nic& nic : machine.nics) known.push_back(nic.name);
    throw Error(ExitCode::usage, fmt::format("{}, or two of them as in gpu0-gpu1, or leaf-uplink",
                                             unknown_name("device", what.substr(0, 64), known)));
  }
  if (device && device->kind != DeviceKind::gpu && device->kind != DeviceKind::nic) {
    usage_error(
        "machine '{}' without {} would fall apart; name a GPU, a NIC, or two devices that NVLink joins",
        machine.name, machine.device_name(*device));
  }
  Machine rest = !device                           ? without_link(machine, *ends)
                 : device->kind == DeviceKind::gpu ? without_gpu(machine, device->index)
                                                   : without_nic(machine, device->index);
  rest.validate();
  rest.citations.push_back({"left out: " + what_remains(machine, device, ends, rest), std::string(kAsAsked)});
  return rest;
}

}  // namespace polyring
