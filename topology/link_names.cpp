#include "topology/link_names.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/port_rates.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

const Link& link_at(const Machine& machine, int index) {
  return machine.links[static_cast<std::size_t>(index)];
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string socket_bus_name(const Machine& machine, const Link& link) {
  const std::string& model = machine.packages[static_cast<std::size_t>(link.from.index)].model;
  if (contains(model, "POWER")) return "X-bus";
  if (contains(model, "AMD")) return "Infinity Fabric";
  if (contains(model, "Intel")) return "UPI or QPI";
  return "socket bus";
}

/// "EDR InfiniBand" where the model names the rate and the port runs at it, else "InfiniBand of 12.1 GB/s".
std::string port_name(const Nic& nic, Bandwidth bandwidth) {
  const char* kind = nic.kind == NicKind::infiniband ? "InfiniBand"
                     : nic.kind == NicKind::ethernet ? "Ethernet"
                                                     : "ports";
  if (nic.kind == NicKind::infiniband) {
    for (const InfinibandRate& rate : infiniband_rates()) {
      const std::string name = upper_case(rate.name);
      const double part = bandwidth.value / rate.payload().value;
      if (contains(nic.model, name) && std::abs(part - 1) < 0.01) return fmt::format("{} {}", name, kind);
    }
  }
  return fmt::format("{} of {}", kind, speed_text(bandwidth));
}

/// Things of one name: how many, and what to call a single one.
struct Item {
  std::string name;  // with its speed
  int count = 0;
  std::string single;   // what one alone is called, without its speed; empty: as several are
  Bandwidth bandwidth;  // all together
};

void add(std::vector<Item>& items, Item item) {
  const auto same = std::ranges::find(items, item.name, &Item::name);
  if (same == items.end()) {
    items.push_back(std::move(item));
  } else {
    same->count += item.count;
    same->bandwidth = same->bandwidth + item.bandwidth;
    same->single.clear();
  }
}

Item item_of(const Machine& machine, const Link& link, bool ends) {
  const std::string kind = kind_name(machine, link);
  const int bonded = nvlinks_in(machine, link);
  if (bonded > 0) {
    const Bandwidth each{link.bandwidth.value / bonded};
    return {fmt::format("{} of {}", kind, speed_text(each)), bonded, {}, link.bandwidth};
  }
  return {fmt::format("{} of {}", kind, speed_text(link.bandwidth)), 1,
          ends ? link_name(machine, link) : kind, link.bandwidth};
}

}  // namespace

std::string kind_name(const Machine& machine, const Link& link) {
  switch (link.kind) {
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::xgmi:
      return "xGMI";
    case LinkKind::c2c:
      return "NVLink-C2C";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::socket_bus:
      return socket_bus_name(machine, link);
    case LinkKind::memory:
      return "memory";
  }
  return "?";
}

std::string first_end(const Machine& machine, const Link& link) {
  std::vector<std::string_view> names;
  for (const int nic : nics_of(machine, link))
    names.push_back(machine.nics[static_cast<std::size_t>(nic)].name);
  return names.empty() ? machine.device_name(link.from) : fmt::format("{}", fmt::join(names, " + "));
}

std::string link_name(const Machine& machine, const Link& link) {
  return fmt::format("{} {} - {}", kind_name(machine, link), first_end(machine, link),
                     machine.device_name(link.to));
}

Bandwidth one_nvlink(const Gpu& gpu) {
  return nvlink_rate(identity_of(gpu.model).compute_capability).bandwidth;
}

int nvlinks_in(const Machine& machine, const Link& link) {
  const DeviceId gpu = link.from.kind == DeviceKind::gpu ? link.from : link.to;
  if (link.kind != LinkKind::nvlink || gpu.kind != DeviceKind::gpu) return 0;
  if (link.count > 0) return link.count;
  const Bandwidth each = one_nvlink(machine.gpus[static_cast<std::size_t>(gpu.index)]);
  const double count = each.known() ? link.bandwidth.value / each.value : 0;
  const double whole = std::round(count);
  return whole >= 1 && std::abs(count - whole) < 1e-6 * whole ? static_cast<int>(whole) : 0;
}

std::string speed_or_count(const Link& link) {
  const std::string speed = to_text(link.bandwidth);
  return link.bandwidth.known() || link.count == 0 ? speed : fmt::format("{} x {}", link.count, speed);
}

std::string speed_text(Bandwidth bandwidth) {
  return bandwidth.known() ? to_text(bandwidth) : "unknown speed";
}

std::string names_of(const Machine& machine, std::span<const int> links, std::span<const int> nics,
                     bool ends) {
  std::vector<Item> items;
  for (const int link : links) add(items, item_of(machine, link_at(machine, link), ends));
  for (const int index : nics) {
    const Nic& nic = machine.nics[static_cast<std::size_t>(index)];
    for (const Port& port : nic.ports) {
      if (port.up) add(items, {port_name(nic, port.bandwidth), 1, {}, port.bandwidth});
    }
  }
  std::ranges::stable_sort(items, std::ranges::greater{}, &Item::bandwidth);
  std::vector<std::string> texts;
  for (const Item& item : items) {
    if (item.single.empty()) {
      texts.push_back(fmt::format("{} x {}", item.count, item.name));
    } else if (items.size() == 1) {
      texts.push_back(item.single);
    } else {
      texts.push_back(fmt::format("{} of {}", item.single, speed_text(item.bandwidth)));
    }
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

}  // namespace polyring
