#include "topology/inventory/formats/fabric_json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/index.hpp"
#include "topology/inventory/fabric_findings.hpp"

namespace polyring {
namespace {

using Json = nlohmann::ordered_json;

Json gigabytes(Bandwidth bandwidth) {
  return bandwidth.known() ? Json(rounded(bandwidth.gigabytes_per_second())) : Json(nullptr);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// An array with `convert` of each element.
template <typename Range, typename Convert>
Json array_of(const Range& range, Convert convert) {
  Json array = Json::array();
  for (const auto& element : range) array.push_back(convert(element));
  return array;
}

std::string_view kind_text(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::host:
      return "host";
    case AdapterKind::aggregation:
      return "aggregation";
    case AdapterKind::router:
      return "router";
  }
  return "";
}

Json to_json(const FabricSwitch& at) {
  return {{"guid", at.guid}, {"name", at.name}, {"level", at.level > 0 ? Json(at.level) : Json(nullptr)}};
}

Json to_json(const FabricAdapter& adapter) {
  return {{"guid", adapter.guid},
          {"name", adapter.name},
          {"kind", kind_text(adapter.kind)},
          {"host", or_null(adapter.host)},
          {"device", or_null(adapter.device)},
          {"port_guids", adapter.port_guids}};
}

Json to_json(const FabricMap& map, const FabricLink& link) {
  const auto end = [&](FabricEnd at) -> Json {
    const std::string& guid =
        at.is_switch ? map.switches[index(at.index)].guid : map.adapters[index(at.index)].guid;
    return {{"guid", guid}, {"port", at.port}};
  };
  return {{"ends", {end(link.a), end(link.b)}},
          {"rate", or_null(link.rate)},
          {"GBps", gigabytes(link.bandwidth)}};
}

Json ratio(Bandwidth down, Bandwidth up) {
  return down.known() && up.known() ? Json(rounded(down.value / up.value)) : Json(nullptr);
}

Json to_json(const FabricMap& map, const Leaf& leaf) {
  return {{"switch", map.switches[index(leaf.switch_index)].guid},
          {"adapters", leaf.adapters.size()},
          {"uplinks", leaf.uplinks},
          {"down_GBps", gigabytes(leaf.down)},
          {"up_GBps", gigabytes(leaf.up)},
          {"oversubscription", ratio(leaf.down, leaf.up)}};
}

Json guids_of(const FabricMap& map, const std::vector<Leaf>& leaves, const std::vector<int>& some) {
  return array_of(some, [&](int leaf) { return map.switches[index(leaves[index(leaf)].switch_index)].guid; });
}

Json to_json(const FabricMap& map, const std::vector<Leaf>& leaves, const Pod& pod, int level) {
  return {{"level", level},
          {"leaves", guids_of(map, leaves, pod.leaves)},
          {"uplinks", pod.uplinks},
          {"down_GBps", gigabytes(pod.down)},
          {"up_GBps", gigabytes(pod.up)},
          {"oversubscription", ratio(pod.down, pod.up)}};
}

Json pods_json(const FabricMap& map, const std::vector<Leaf>& leaves) {
  Json pods = Json::array();
  int level = 2;
  for (const std::vector<Pod>& of_level : pods_of(map, leaves)) {
    for (const Pod& pod : of_level) pods.push_back(to_json(map, leaves, pod, level));
    ++level;
  }
  return pods;
}

Json to_json(const FabricMap& map, const std::vector<Leaf>& leaves, const Neighbourhood& near) {
  return {
      {"leaves", guids_of(map, leaves, near.leaves)}, {"hosts", near.hosts}, {"up_GBps", gigabytes(near.up)}};
}

}  // namespace

std::string fabric_json(const FabricMap& map) {
  const auto convert = [](const auto& element) { return to_json(element); };
  const std::vector<Leaf> leaves = leaves_of(map);
  const Json json{
      {"schema", "polyring-fabric"},
      {"version", 1},
      {"source", map.source},
      {"switches", array_of(map.switches, convert)},
      {"adapters", array_of(map.adapters, convert)},
      {"links", array_of(map.links, [&](const FabricLink& link) { return to_json(map, link); })},
      {"leaves", array_of(leaves, [&](const Leaf& leaf) { return to_json(map, leaf); })},
      {"pods", pods_json(map, leaves)},
      {"neighbourhoods", array_of(neighbourhoods_of(map, leaves),
                                  [&](const Neighbourhood& near) { return to_json(map, leaves, near); })},
      {"findings", findings_of(map)}};
  // Descriptions come from the network's nodes, and may not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace polyring
