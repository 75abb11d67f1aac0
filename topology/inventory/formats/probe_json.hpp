// A cluster as JSON, and back.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "topology/cluster.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// The cluster as JSON of version 1; parse_probe_json() reads all of it back. Keys: `hosts[]{name, model,
/// count, packages[], switches[], nvswitches, gpus[]{name, model, pci, numa, ...}, nics[]{name, model, pci,
/// numa, kind, ..., ports[]{number, up, GBps}}, links[]{from, to, kind, GBps, latency_us, shared_with[]},
/// citations[]}` and `fabric`. `package_known` is in those of gpus and nics of which nothing tells the
/// package, `assumed` in ports and links whose rate no source tells. GBps is 1e9 bytes per second in one
/// direction. What is unknown is null.
std::string probe_json(const Cluster& cluster);

/// A value beside those of the cluster, which the reader passes over: its key, and its JSON.
struct JsonPart {
  std::string key;
  std::string json;
};

std::string probe_json(const Cluster& cluster, std::span<const JsonPart> parts);

/// The same, and `hosts[].members[]{name, port_guids[]}` of each group of several hosts that are known one by
/// one, `differences[]{hosts[], difference}` from the commonest kind of host, `unprobed[]{name, why}`,
/// `places[]`, `asked[]` and `notes[]`; each only where there is any. A member, or a group's only host, has
/// `allowed_cores{cpuset[], affinity[], cpu_limit}` where the probe may not use all of its cores.
/// parse_inventory_json() reads back all but the differences, which follow from the rest.
std::string probe_json(const Inventory& inventory);
std::string probe_json(const Inventory& inventory, std::span<const JsonPart> parts);

/// Throws a usage Error for text that is not JSON, JSON that is not a cluster of ours or of a newer version,
/// and for a cluster that does not validate. `origin` names the text in errors.
Cluster parse_probe_json(std::string_view text, std::string_view origin);
/// As parse_probe_json().
Inventory parse_inventory_json(std::string_view text, std::string_view origin);

}  // namespace polyring
