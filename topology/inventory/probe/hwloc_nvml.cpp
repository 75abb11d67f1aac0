#include "topology/inventory/probe/hwloc_nvml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "topology/gpu_links.hpp"
#include "topology/inventory/probe/files.hpp"
#include "topology/inventory/probe/hwloc_pci.hpp"

namespace polyring::probe {
namespace {

constexpr HwlocVersion kCounts25{2, 9, 1};      // the first release after issue 574
constexpr HwlocVersion kKnowsHopper{2, 12, 0};  // "Update NVLink bandwidth ... up to NVIDIA Blackwell"

bool is_told_by_nvml(hwloc_obj_t pci) {
  for (hwloc_obj_t child = pci->io_first_child; child != nullptr; child = child->next_sibling) {
    if (info(child, "Backend") == "NVML") return true;
  }
  return false;
}

/// Of the port right above the device, whose link it is as well; 0 when unknown.
Bandwidth speed_of_port(hwloc_obj_t object) {
  const hwloc_obj_t above = object->parent;
  const bool is_port =
      above->type == HWLOC_OBJ_BRIDGE && above->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
  return is_port ? recorded_speed(above) : Bandwidth{};
}

/// Of generation 1 or 2, whose line code leaves 0.25 or 0.5 GB/s of a lane; that of later ones leaves no
/// such number, of up to 32 lanes.
bool is_turned_down(Bandwidth bandwidth) {
  const double quarters = 4 * bandwidth.gigabytes_per_second();
  return bandwidth.known() && quarters <= 64 && std::abs(quarters - std::round(quarters)) < 1e-3;
}

const Gpu& gpu_of(const Machine& machine, DeviceId id) {
  return machine.gpus[static_cast<std::size_t>(id.index)];
}

void note(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

template <typename... Args>
void add(Machine& machine, fmt::format_string<Args...> sentence, Args&&... args) {
  machine.remarks.push_back(fmt::format(sentence, std::forward<Args>(args)...));
}

Bandwidth all_nvlinks(const Machine& machine, DeviceId gpu) {
  Bandwidth sum;
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::nvlink && (link.from == gpu || link.to == gpu)) sum = sum + link.bandwidth;
  }
  return sum;
}

}  // namespace

NvmlCorrections::NvmlCorrections(const HwlocTopology& topology) {
  const std::string text = info(hwloc_get_root_obj(topology.get()), "hwlocVersion");
  name_ = text.empty() ? "hwloc" : "hwloc " + text;
  std::size_t at = 0;
  for (int* part : {&version_.major, &version_.minor, &version_.patch}) {
    *part = static_cast<int>(std::clamp(whole_number(text.substr(at)).value_or(0), 0L, 1000L));
    const std::size_t dot = text.find('.', at);
    if (dot == std::string::npos) break;
    at = dot + 1;
  }
}

bool NvmlCorrections::is_before(HwlocVersion other) const {
  return version_ != HwlocVersion{} && version_ < other;
}

void NvmlCorrections::correct_pcie(hwloc_obj_t object, const Gpu& gpu, Link& link) {
  const bool is_nvml = is_told_by_nvml(object);
  has_nvml_ |= is_nvml;
  const Bandwidth own = recorded_speed(object);
  const Bandwidth port = speed_of_port(object);
  const int capability = compute_capability_of(gpu.model);
  if (is_nvml && link.bandwidth == own && own.known()) {
    constexpr int kAmpere = 80;  // the first with PCIe of the fourth generation
    if (port > own) {
      link.bandwidth = port;
      capped_.push_back(gpu.name);
    } else if (!port.known() && is_before(kKnowsHopper) && capability >= kAmpere) {
      link.bandwidth = {};
      unknown_.push_back(gpu.name);
    }
  }
  // All with NVLink are of the third generation at least, and so is what NVML says that can be more.
  const bool can_do_more = capability > 0 || (is_nvml && !is_turned_down(own));
  const bool ends_are_turned_down = is_turned_down(own) || is_turned_down(port);
  const bool left_open = !link.bandwidth.known() && ends_are_turned_down;
  if (left_open || (can_do_more && (ends_are_turned_down || is_turned_down(link.bandwidth)))) {
    link.bandwidth = {};
    idle_.push_back(gpu.name);
  }
}

Bandwidth NvmlCorrections::counted_for_a_link(const Machine& machine, DeviceId gpu) const {
  const std::string& model = gpu_of(machine, gpu).model;
  const int capability = compute_capability_of(model);
  if (capability == 60) return gigabytes_per_second(20);
  const Bandwidth twice = gigabytes_per_second(50);
  if (capability >= 100 || (capability >= 75 && is_before(kCounts25))) return twice;
  // Whatever the release, a GPU cannot have more links than it has.
  const Bandwidth once = gigabytes_per_second(25);
  return all_nvlinks(machine, gpu) > most_nvlinks_of(model) * once ? twice : once;
}

void NvmlCorrections::correct_nvlinks(Machine& machine) {
  std::vector<Bandwidth> corrected;
  for (const Link& link : machine.links) {
    corrected.push_back(link.bandwidth);
    if (link.kind != LinkKind::nvlink || link.from.kind != DeviceKind::gpu || !link.bandwidth.known())
      continue;
    const Gpu& gpu = gpu_of(machine, link.from);
    const Bandwidth carried = nvlink_rate(compute_capability_of(gpu.model)).bandwidth;
    const Bandwidth counted =
        carried.known() ? counted_for_a_link(machine, link.from) : gigabytes_per_second(50);
    const double links = link.bandwidth.value / counted.value;
    if (links != std::round(links)) continue;  // not what hwloc makes of such links
    if (!carried.known() && is_before(kCounts25)) {
      corrected.back() = {};
      note(in_doubt_, gpu.name);
    } else if (carried.known() && carried != counted) {
      corrected.back() = links * carried;
      note(miscounted_, gpu.name);
    }
  }
  for (std::size_t i = 0; i < corrected.size(); ++i) machine.links[i].bandwidth = corrected[i];
}

void NvmlCorrections::remark(Machine& machine) const {
  if (!miscounted_.empty())
    add(machine, "{} wrote more for an NVLink of {} than it carries: it is corrected by the GPUs' models",
        name_, fmt::join(miscounted_, ", "));
  if (!in_doubt_.empty())
    add(machine,
        "{} may have written twice what the NVLinks of {} carry, and their models are not known: they count "
        "as unknown; write the file again with hwloc 2.12",
        name_, fmt::join(in_doubt_, ", "));
  if (has_nvml_ && is_before(kKnowsHopper) && misses_gpu_links(machine))
    add(machine, "{} leaves NVLinks out that are newer than it: write the file again with hwloc 2.12", name_);
  if (!capped_.empty())
    add(machine, "{} wrote less than the port above has for the PCIe link of {}: the port's speed is taken",
        name_, fmt::join(capped_, ", "));
  if (!unknown_.empty())
    add(machine,
        "{} writes no PCIe speed above generation 3 for GPUs: that of {} counts as unknown; write the file "
        "again with hwloc 2.12",
        name_, fmt::join(unknown_, ", "));
  if (!idle_.empty())
    add(machine,
        "the PCIe link of {} was turned down to generation 1 or 2 when the file was written, as of an idle "
        "GPU, and counts as unknown: write it while the GPUs work, or run polyring probe there",
        fmt::join(idle_, ", "));
}

}  // namespace polyring::probe
