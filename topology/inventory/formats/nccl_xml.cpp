#include "topology/inventory/formats/nccl_xml.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "topology/inventory/formats/nccl_xml_document.hpp"
#include "topology/inventory/formats/nccl_xml_host.hpp"

namespace polyring {
namespace {

using nccl_xml::Document;
using nccl_xml::Element;
using nccl_xml::HostReader;

/// The largest systems that share a file are those of one NVLink domain: 18 hosts today.
constexpr std::size_t kMostHosts = 1024;

void check_version(const Element& system, const std::string& origin) {
  const auto version = system.integer("version", 0, 1'000'000);
  if (!version) system.refuse("version", "1 (NCCL) or 2 (RCCL)");
  if (*version < 1 || *version > 2) {
    usage_error(
        "'{}' is NCCL's topology XML of version {}, but this build reads 1 (NCCL) and 2 (RCCL); write it "
        "with "
        "such a library",
        origin, *version);
  }
}

/// The CPUs of each host, hosts in the order of the file.
std::vector<std::vector<Element>> cpus_by_host(const Element& system, const std::string& origin) {
  std::vector<std::vector<Element>> hosts;
  std::map<std::string, std::size_t> by_hash;
  system.each_child("cpu", [&](const Element& cpu) {
    const auto [entry, is_new] = by_hash.try_emplace(cpu.text("host_hash"), hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[entry->second].push_back(cpu);
  });
  if (hosts.empty()) {
    usage_error(
        "'{}' has no <cpu>, under which NCCL lists all devices; let NCCL write it again with "
        "NCCL_TOPO_DUMP_FILE=FILE",
        origin);
  }
  if (hosts.size() > kMostHosts) {
    usage_error("'{}' has the CPUs of {} hosts, more than {}; give the file of one NVLink domain", origin,
                hosts.size(), kMostHosts);
  }
  return hosts;
}

}  // namespace

Cluster parse_nccl_xml(std::string_view xml, std::string_view origin) {
  const Document document(xml, origin);
  const Element system = document.system();
  check_version(system, document.origin());
  const std::filesystem::path path(document.origin());
  std::string name = system.text("name");
  if (name.empty()) name = path.stem().string();
  const auto hosts = cpus_by_host(system, document.origin());
  Cluster cluster;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    HostReader reader(path.filename().string());
    for (const Element& cpu : hosts[host]) reader.add_cpu(cpu);
    Machine machine = reader.finish(hosts.size() > 1);
    machine.name = hosts.size() == 1 ? name : fmt::format("{}-{}", name, host);
    if (host == 0)
      cluster = cluster_of(std::move(machine), 1);
    else
      cluster.groups.push_back({std::move(machine), 1});
  }
  cluster.name = name;
  cluster.validate();
  return cluster;
}

}  // namespace polyring
