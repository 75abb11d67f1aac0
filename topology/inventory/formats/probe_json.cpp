#include "topology/inventory/formats/probe_json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "topology/inventory/formats/probe_json_keys.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

using Json = nlohmann::ordered_json;

Json gigabytes(Bandwidth bandwidth) {
  return bandwidth.known() ? Json(rounded(bandwidth.gigabytes_per_second())) : Json(nullptr);
}

Json microseconds_of(Seconds seconds) { return rounded(seconds.value * 1e6); }
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json or_null(int index) { return index < 0 ? Json(nullptr) : Json(index); }
Json count_or_null(int count) { return count == 0 ? Json(nullptr) : Json(count); }
Json or_null(Bytes bytes) { return bytes.value == 0 ? Json(nullptr) : Json(bytes.value); }

/// An array with `convert` of each element.
template <typename Range, typename Convert>
Json array_of(const Range& range, Convert convert) {
  Json array = Json::array();
  for (const auto& element : range) array.push_back(convert(element));
  return array;
}

Json to_json(const Citation& citation) { return {{"fact", citation.fact}, {"source", citation.source}}; }

Json to_json(const CpuIdentity& cpu) {
  if (cpu.architecture.empty() && cpu.vendor.empty()) return nullptr;
  return {{"architecture", or_null(cpu.architecture)},
          {"vendor", or_null(cpu.vendor)},
          {"family", or_null(cpu.family)},
          {"model", or_null(cpu.model)}};
}

Json to_json(const Package& package) {
  return {{"name", package.name},
          {"model", or_null(package.model)},
          {"cpu", to_json(package.cpu)},
          {"cores", count_or_null(package.cores)},
          {"memory_bytes", or_null(package.memory)},
          {"memory_GBps", gigabytes(package.memory_bandwidth)},
          {"numa", package.numa_nodes}};
}

Json to_json(const PciSwitch& pci_switch) {
  return {{"name", pci_switch.name}, {"pci", or_null(pci_switch.pci)}};
}

Json to_json(const Gpu& gpu) {
  Json json{{"name", gpu.name},
            {"model", or_null(gpu.model)},
            {"pci", or_null(gpu.pci)},
            {"numa", or_null(gpu.numa)},
            {"host_bridge", or_null(gpu.host_bridge)},
            {"memory_bytes", or_null(gpu.memory)},
            {"memory_GBps", gigabytes(gpu.memory_bandwidth)}};
  if (!gpu.package_known) json["package_known"] = false;
  return json;
}

Json to_json(const Port& port) {
  Json json{{"number", port.number}, {"up", port.up}, {"GBps", gigabytes(port.bandwidth)}};
  if (!port.guid.empty()) json["guid"] = port.guid;
  if (port.assumed) json["assumed"] = true;
  return json;
}

Json to_json(const Nic& nic) {
  Json json{{"name", nic.name},
            {"model", or_null(nic.model)},
            {"pci", or_null(nic.pci)},
            {"numa", or_null(nic.numa)},
            {"host_bridge", or_null(nic.host_bridge)},
            {"kind", to_text(nic.kind)},
            {"ports", array_of(nic.ports, [](const Port& port) { return to_json(port); })}};
  if (!nic.system_guid.empty()) json["system_guid"] = nic.system_guid;
  if (!nic.package_known) json["package_known"] = false;
  return json;
}

Json to_json(const Machine& machine, const Link& link) {
  Json json{{"from", machine.device_name(link.from)},
            {"to", machine.device_name(link.to)},
            {"kind", to_text(link.kind)},
            {"GBps", gigabytes(link.bandwidth)},
            {"latency_us", microseconds_of(link.latency)}};
  if (link.count > 0) json["count"] = link.count;
  if (link.assumed) json["assumed"] = true;
  // For those who read it: the addresses of the NICs say so too.
  const std::vector<std::string> others = shared_with(machine, link);
  if (!others.empty()) json["shared_with"] = others;
  return json;
}

Json to_json(const ProbeSource& source) {
  return {{"name", source.name}, {"read", source.read}, {"detail", source.detail}};
}

Json to_json(const LinkFault& fault) {
  Json json{{"device", fault.device}, {"remark", fault.remark}};
  if (fault.is_port) json["port"] = true;
  return json;
}

Json to_json(const HostGroup& group) {
  const Machine& machine = group.machine;
  const auto convert = [](const auto& element) { return to_json(element); };
  Json json{{"name", machine.name},
            {"model", or_null(machine.model)},
            {"count", group.count},
            {"packages", array_of(machine.packages, convert)},
            {"switches", array_of(machine.switches, convert)},
            {"nvswitches", machine.nvswitches},
            {"gpus", array_of(machine.gpus, convert)},
            {"nics", array_of(machine.nics, convert)},
            {"links", array_of(machine.links, [&](const Link& link) { return to_json(machine, link); })},
            {"citations", array_of(machine.citations, convert)}};
  if (!machine.gpu_driver.empty()) json["gpu_driver"] = machine.gpu_driver;
  if (!machine.sources.empty()) json["sources"] = array_of(machine.sources, convert);
  if (!machine.gpu_links_known) json["gpu_links_known"] = false;
  if (!machine.remarks.empty()) json["remarks"] = machine.remarks;
  if (!machine.link_faults.empty()) json["link_faults"] = array_of(machine.link_faults, convert);
  return json;
}

Json to_json(const Fabric& fabric) {
  Json json{
      {"hosts_per_leaf", fabric.hosts_per_leaf},
      {"leaf_uplink_GBps", gigabytes(fabric.leaf_uplink)},
      {"latency_us", microseconds_of(fabric.latency)},
      {"spine_latency_us", microseconds_of(fabric.spine_latency)},
      {"citations", array_of(fabric.citations, [](const Citation& citation) { return to_json(citation); })}};
  if (fabric.hosts_per_nvlink_domain > 0) json["hosts_per_nvlink_domain"] = fabric.hosts_per_nvlink_domain;
  if (!fabric.pods.empty()) {
    json["pods"] = array_of(fabric.pods, [](const Pods& pods) {
      return Json{{"hosts", pods.hosts}, {"uplink_GBps", gigabytes(pods.uplink)}};
    });
  }
  return json;
}

Json to_json(const Cluster& cluster) {
  return {{"schema", kProbeSchema},
          {"version", kProbeVersion},
          {"name", cluster.name},
          {"hosts", array_of(cluster.groups, [](const HostGroup& group) { return to_json(group); })},
          {"fabric", to_json(cluster.fabric)}};
}

Json to_json(const AllowedCores& allowed) {
  Json json{{"cpuset", allowed.cpuset}, {"affinity", allowed.affinity}};
  if (allowed.cpu_limit) json["cpu_limit"] = rounded(*allowed.cpu_limit);
  return json;
}

Json to_json(const HostIdentity& host) {
  Json json{{"name", host.name}};
  if (!host.port_guids.empty()) json["port_guids"] = host.port_guids;
  if (host.allowed) json["allowed_cores"] = to_json(*host.allowed);
  return json;
}

Json to_json(const UnprobedHost& host) { return {{"name", host.name}, {"why", host.why}}; }

Json to_json(const NamedDifference& difference) {
  return {{"hosts", difference.hosts}, {"difference", difference.sentence}};
}

std::string text_of(Json json, std::span<const JsonPart> parts) {
  for (const JsonPart& part : parts) json[part.key] = Json::parse(part.json);
  // Names come from files and firmware, and may not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string probe_json(const Cluster& cluster) { return probe_json(cluster, {}); }

std::string probe_json(const Cluster& cluster, std::span<const JsonPart> parts) {
  return text_of(to_json(cluster), parts);
}

std::string probe_json(const Inventory& inventory) { return probe_json(inventory, {}); }

std::string probe_json(const Inventory& inventory, std::span<const JsonPart> parts) {
  const auto convert = [](const auto& element) { return to_json(element); };
  Json json = to_json(inventory.cluster);
  for (std::size_t group = 0; group < inventory.members.size(); ++group) {
    // A single host says all of it itself.
    const std::vector<HostIdentity>& members = inventory.members[group];
    if (members.size() > 1) {
      json["hosts"][group]["members"] = array_of(members, convert);
    } else if (!members.empty() && members.front().allowed) {
      json["hosts"][group]["allowed_cores"] = to_json(*members.front().allowed);
    }
  }
  const std::vector<NamedDifference> differences = differences_of(inventory);
  if (!differences.empty()) json["differences"] = array_of(differences, convert);
  if (!inventory.unprobed.empty()) json["unprobed"] = array_of(inventory.unprobed, convert);
  if (!inventory.places.empty()) json["places"] = inventory.places;
  if (!inventory.asked.empty()) json["asked"] = inventory.asked;
  if (!inventory.notes.empty()) json["notes"] = inventory.notes;
  return text_of(std::move(json), parts);
}

}  // namespace polyring
