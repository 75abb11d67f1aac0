#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_json_keys.hpp"

namespace polyring {
namespace {

using Json = nlohmann::json;

/// More hosts than any cluster has, and few enough that counts of ranks cannot overflow.
constexpr int kMostHosts = 1'000'000;
/// More devices of one kind than any host has, also where virtual functions count as NICs, and few enough
/// that all paths between them are found in seconds.
constexpr std::size_t kMostGpus = 256;
constexpr int kMostNvswitches = 256;
constexpr std::size_t kMostOthers = 1024;
constexpr int kMostBonded = 1024 * 1024;  // in one link: what other formats can add up to

/// An object of the file, and how to name it in an error.
struct Object {
  const Json& json;
  std::string where;  // "'file.json': hosts[0].gpus[1]"
};

[[noreturn]] void wrong(const Object& object, std::string_view key, std::string_view expected) {
  usage_error("{}.{} is missing or not {}; write the file again with: polyring probe --format json",
              object.where, key, expected);
}

/// The value of a key, null when there is none.
const Json& value_of(const Object& object, std::string_view key) {
  static const Json kNull;
  const auto found = object.json.find(std::string(key));
  return found == object.json.end() ? kNull : *found;
}

std::string text(const Object& object, std::string_view key) {
  const Json& value = value_of(object, key);
  if (!value.is_string()) wrong(object, key, "a text");
  return printable_line(value.get<std::string>());
}

std::string optional_text(const Object& object, std::string_view key) {
  return value_of(object, key).is_null() ? std::string() : text(object, key);
}

/// The range check comes on the double, which holds any number of the file.
bool is_whole(const Json& value, int most) {
  return value.is_number_integer() && std::abs(value.get<double>()) <= most;
}

int integer(const Object& object, std::string_view key, int most = kMostHosts) {
  const Json& value = value_of(object, key);
  if (!is_whole(value, most)) wrong(object, key, fmt::format("a whole number up to {}", most));
  return value.get<int>();
}

int optional_integer(const Object& object, std::string_view key, int otherwise, int most = kMostHosts) {
  return value_of(object, key).is_null() ? otherwise : integer(object, key, most);
}

double optional_number(const Object& object, std::string_view key) {
  const Json& value = value_of(object, key);
  if (value.is_null()) return 0;
  if (!value.is_number()) wrong(object, key, "a number");
  return value.get<double>();
}

Bandwidth bandwidth(const Object& object, std::string_view key) {
  return gigabytes_per_second(optional_number(object, key));
}

Seconds latency(const Object& object, std::string_view key) {
  return microseconds(optional_number(object, key));
}

Bytes bytes(const Object& object, std::string_view key) {
  const Json& value = value_of(object, key);
  if (value.is_null()) return {};
  if (!value.is_number_unsigned()) wrong(object, key, "a number of bytes");
  return {value.get<std::uint64_t>()};
}

bool boolean(const Object& object, std::string_view key) {
  const Json& value = value_of(object, key);
  if (!value.is_boolean()) wrong(object, key, "true or false");
  return value.get<bool>();
}

/// Calls `read` with each object of an array, which has at most `most`.
template <typename Read>
void each(const Object& object, std::string_view key, Read read,
          std::size_t most = std::numeric_limits<std::size_t>::max()) {
  const Json& array = value_of(object, key);
  if (!array.is_array()) wrong(object, key, "an array");
  if (array.size() > most) wrong(object, key, fmt::format("an array of at most {}", most));
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (!array[i].is_object()) wrong(object, fmt::format("{}[{}]", key, i), "an object");
    read(Object{array[i], fmt::format("{}.{}[{}]", object.where, key, i)});
  }
}

std::vector<std::string> optional_texts(const Object& object, std::string_view key) {
  std::vector<std::string> texts;
  const Json& array = value_of(object, key);
  if (array.is_null()) return texts;
  if (!array.is_array()) wrong(object, key, "an array of texts");
  for (const Json& element : array) {
    if (!element.is_string()) wrong(object, key, "an array of texts");
    texts.push_back(printable_line(element.get<std::string>()));
  }
  return texts;
}

/// The value whose to_text() the file holds.
template <typename Kind, std::size_t N>
Kind kind_of(const Object& object, const std::array<Kind, N>& kinds) {
  const std::string name = text(object, "kind");
  std::string known;
  for (const Kind kind : kinds) {
    if (to_text(kind) == name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(to_text(kind));
  }
  wrong(object, "kind", "one of " + known);
}

std::vector<Citation> read_citations(const Object& object) {
  std::vector<Citation> citations;
  if (value_of(object, "citations").is_null()) return citations;
  each(object, "citations", [&](const Object& citation) {
    citations.push_back({text(citation, "fact"), text(citation, "source")});
  });
  return citations;
}

CpuIdentity read_cpu(const Object& package) {
  const Json& cpu = value_of(package, "cpu");
  if (cpu.is_null()) return {};
  if (!cpu.is_object()) wrong(package, "cpu", "an object");
  const Object object{cpu, package.where + ".cpu"};
  return {optional_text(object, "architecture"), optional_text(object, "vendor"),
          optional_integer(object, "family", -1), optional_integer(object, "model", -1)};
}

Package read_package(const Object& object) {
  Package package{text(object, "name"),
                  optional_text(object, "model"),
                  optional_integer(object, "cores", 0),
                  bytes(object, "memory_bytes"),
                  bandwidth(object, "memory_GBps"),
                  {},
                  read_cpu(object)};
  const Json& numa = value_of(object, "numa");
  if (!numa.is_array()) wrong(object, "numa", "an array of NUMA nodes");
  for (const Json& node : numa) {
    if (!is_whole(node, kMostHosts)) wrong(object, "numa", "an array of NUMA nodes");
    package.numa_nodes.push_back(node.get<int>());
  }
  return package;
}

bool boolean(const Object& object, std::string_view key, bool otherwise) {
  return value_of(object, key).is_null() ? otherwise : boolean(object, key);
}

Gpu read_gpu(const Object& object) {
  return {text(object, "name"),
          optional_text(object, "model"),
          optional_text(object, "pci"),
          optional_integer(object, "numa", -1),
          optional_integer(object, "host_bridge", -1),
          bytes(object, "memory_bytes"),
          bandwidth(object, "memory_GBps"),
          boolean(object, "package_known", true)};
}

Nic read_nic(const Object& object) {
  Nic nic{text(object, "name"),
          optional_text(object, "model"),
          optional_text(object, "pci"),
          optional_integer(object, "numa", -1),
          optional_integer(object, "host_bridge", -1),
          kind_of(object, std::array{NicKind::infiniband, NicKind::ethernet, NicKind::unknown}),
          {},
          optional_text(object, "system_guid"),
          boolean(object, "package_known", true)};
  each(object, "ports", [&](const Object& port) {
    nic.ports.push_back({integer(port, "number"), boolean(port, "up"), bandwidth(port, "GBps"),
                         optional_text(port, "guid"), boolean(port, "assumed", false)});
  });
  return nic;
}

std::map<std::string, DeviceId> names_of(const Machine& machine) {
  std::map<std::string, DeviceId> names;
  const auto add = [&](DeviceKind kind, std::size_t count) {
    for (int i = 0; i < static_cast<int>(count); ++i) names[machine.device_name({kind, i})] = {kind, i};
  };
  add(DeviceKind::package, machine.packages.size());
  add(DeviceKind::pci_switch, machine.switches.size());
  add(DeviceKind::nvswitch, static_cast<std::size_t>(std::max(machine.nvswitches, 0)));
  add(DeviceKind::gpu, machine.gpus.size());
  add(DeviceKind::nic, machine.nics.size());
  return names;
}

void read_links(const Object& object, Machine& machine) {
  const std::map<std::string, DeviceId> names = names_of(machine);
  const auto device = [&](const Object& link, std::string_view key) {
    const auto found = names.find(text(link, key));
    if (found == names.end()) wrong(link, key, "the name of a device of this host");
    return found->second;
  };
  each(object, "links", [&](const Object& link) {
    constexpr std::array kKinds{LinkKind::nvlink, LinkKind::xgmi,       LinkKind::c2c,
                                LinkKind::pcie,   LinkKind::socket_bus, LinkKind::memory};
    const int count = optional_integer(link, "count", 0, kMostBonded);
    if (count < 0) wrong(link, "count", "a number of links");
    machine.links.push_back({device(link, "from"), device(link, "to"), kind_of(link, kKinds),
                             bandwidth(link, "GBps"), latency(link, "latency_us"), count,
                             boolean(link, "assumed", false)});
  });
}

void read_notes(const Object& object, Machine& machine) {
  machine.citations = read_citations(object);
  if (!value_of(object, "sources").is_null()) {
    each(object, "sources", [&](const Object& source) {
      machine.sources.push_back({text(source, "name"), boolean(source, "read"), text(source, "detail")});
    });
  }
  machine.gpu_links_known = boolean(object, "gpu_links_known", true);
  machine.remarks = optional_texts(object, "remarks");
  if (!value_of(object, "link_faults").is_null()) {
    each(object, "link_faults", [&](const Object& fault) {
      machine.link_faults.push_back(
          {text(fault, "device"), text(fault, "remark"), boolean(fault, "port", false)});
    });
  }
}

HostGroup read_host(const Object& object) {
  Machine machine;
  machine.name = text(object, "name");
  machine.model = optional_text(object, "model");
  each(
      object, "packages", [&](const Object& package) { machine.packages.push_back(read_package(package)); },
      kMostOthers);
  if (!value_of(object, "switches").is_null()) {
    each(
        object, "switches",
        [&](const Object& pci_switch) {
          machine.switches.push_back({text(pci_switch, "name"), optional_text(pci_switch, "pci")});
        },
        kMostOthers);
  }
  machine.nvswitches = optional_integer(object, "nvswitches", 0, kMostNvswitches);
  each(
      object, "gpus", [&](const Object& gpu) { machine.gpus.push_back(read_gpu(gpu)); }, kMostGpus);
  each(
      object, "nics", [&](const Object& nic) { machine.nics.push_back(read_nic(nic)); }, kMostOthers);
  machine.gpu_driver = optional_text(object, "gpu_driver");
  read_links(object, machine);
  read_notes(object, machine);
  return {std::move(machine), optional_integer(object, "count", 1)};
}

/// Numbers of some of a host's cores, in ascending order.
std::vector<int> read_cores(const Object& object, std::string_view key, int cores) {
  const Json& array = value_of(object, key);
  const std::string expected = fmt::format("an ascending array of numbers of its {} cores", cores);
  if (!array.is_array() || array.empty()) wrong(object, key, expected);
  std::vector<int> numbers;
  for (const Json& number : array) {
    const int least = numbers.empty() ? 0 : numbers.back() + 1;
    if (!is_whole(number, cores - 1) || number.get<int>() < least) wrong(object, key, expected);
    numbers.push_back(number.get<int>());
  }
  return numbers;
}

std::optional<AllowedCores> read_allowed_cores(const Object& host, const Machine& machine) {
  const Json& json = value_of(host, "allowed_cores");
  if (json.is_null()) return std::nullopt;
  if (!json.is_object()) wrong(host, "allowed_cores", "an object");
  const Object object{json, host.where + ".allowed_cores"};
  const int cores = machine.cores();
  AllowedCores allowed{read_cores(object, "cpuset", cores), read_cores(object, "affinity", cores)};
  if (!std::ranges::includes(allowed.cpuset, allowed.affinity)) wrong(object, "affinity", "a part of cpuset");
  if (!value_of(object, "cpu_limit").is_null()) {
    allowed.cpu_limit = optional_number(object, "cpu_limit");
    if (!(*allowed.cpu_limit > 0)) wrong(object, "cpu_limit", "above 0");
  }
  return allowed;
}

/// Who the hosts of the group are; a single host says so itself.
std::vector<HostIdentity> read_members(const Object& object, const HostGroup& group) {
  if (group.count == 1) {
    HostIdentity host = identity_of(group.machine);
    host.allowed = read_allowed_cores(object, group.machine);
    return {host};
  }
  std::vector<HostIdentity> members;
  if (value_of(object, "members").is_null()) return members;
  each(object, "members", [&](const Object& member) {
    members.push_back({text(member, "name"), optional_texts(member, "port_guids"),
                       read_allowed_cores(member, group.machine)});
  });
  if (static_cast<int>(members.size()) != group.count)
    wrong(object, "members", fmt::format("an array of the {} hosts", group.count));
  return members;
}

Fabric read_fabric(const Object& object) {
  Fabric fabric;
  fabric.hosts_per_leaf = optional_integer(object, "hosts_per_leaf", 0);
  fabric.leaf_uplink = bandwidth(object, "leaf_uplink_GBps");
  fabric.hosts_per_nvlink_domain = optional_integer(object, "hosts_per_nvlink_domain", 0);
  if (!value_of(object, "pods").is_null()) {
    each(object, "pods", [&](const Object& pods) {
      fabric.pods.push_back({optional_integer(pods, "hosts", 0), bandwidth(pods, "uplink_GBps")});
    });
  }
  fabric.latency = latency(object, "latency_us");
  fabric.spine_latency = latency(object, "spine_latency_us");
  fabric.citations = read_citations(object);
  return fabric;
}

void check_schema(const Json& json, std::string_view origin) {
  if (!json.is_object() || value_of({json, ""}, "schema") != kProbeSchema) {
    usage_error("'{}' is JSON, but not of polyring probe; write one with: polyring probe --format json",
                origin);
  }
  const Json& version = value_of({json, ""}, "version");
  if (!version.is_number_integer() || version.get<double>() < 1) {
    usage_error("'{}' has no valid version; write it again with: polyring probe --format json", origin);
  }
  if (version.get<double>() > kProbeVersion) {
    usage_error(
        "'{}' is of version {}, but this polyring reads up to {}; use the polyring that wrote it, or a newer "
        "one",
        origin, version.dump(), kProbeVersion);
  }
}

}  // namespace

Inventory parse_inventory_json(std::string_view text_of_file, std::string_view origin) {
  const Json json = Json::parse(text_of_file, nullptr, false);
  if (json.is_discarded()) {
    usage_error("'{}' is not valid JSON, or is truncated; write it again with: polyring probe --format json",
                origin);
  }
  check_schema(json, origin);
  const Object root{json, fmt::format("'{}'", origin)};
  Inventory inventory;
  Cluster& cluster = inventory.cluster;
  cluster.name = text(root, "name");
  each(root, "hosts", [&](const Object& host) {
    cluster.groups.push_back(read_host(host));
    inventory.members.push_back(read_members(host, cluster.groups.back()));
  });
  const Json& fabric = value_of(root, "fabric");
  if (fabric.is_object()) cluster.fabric = read_fabric({fabric, root.where + ".fabric"});
  if (!value_of(root, "unprobed").is_null()) {
    each(root, "unprobed", [&](const Object& host) {
      inventory.unprobed.push_back({text(host, "name"), text(host, "why")});
    });
  }
  inventory.places = optional_texts(root, "places");
  inventory.asked = optional_texts(root, "asked");
  inventory.notes = optional_texts(root, "notes");
  cluster.validate();
  return inventory;
}

Cluster parse_probe_json(std::string_view text_of_file, std::string_view origin) {
  return parse_inventory_json(text_of_file, origin).cluster;
}

}  // namespace polyring
