#include "topology/probe.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

#include "topology/error.hpp"
#include "topology/probe/hwloc_machine.hpp"
#include "topology/probe/trial.hpp"
#include "topology/text_file.hpp"

namespace polyring {
namespace {

/// A damaged file could keep hwloc busy for ever; a large machine takes it well under a second.
constexpr unsigned kMostSeconds = 20;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

/// The major number of <topology version="M.N">: 1 where there is no version, 0 where there is no such
/// element.
int format_version(std::string_view xml) {
  const auto element = xml.find("<topology");
  if (element == std::string_view::npos) return 0;
  const std::string_view tag = xml.substr(element, xml.find('>', element) - element);
  constexpr std::string_view kVersion = "version=\"";
  const auto version = tag.find(kVersion);
  if (version == std::string_view::npos) return 1;
  return std::atoi(std::string(tag.substr(version + kVersion.size(), 8)).c_str());
}

/// Says what is wrong before hwloc sees it, which would only say "invalid" or print about it.
void check_hwloc_xml(std::string_view xml, std::string_view origin) {
  const int version = format_version(xml);
  if (version == 0) usage_error("'{}' is not a topology of hwloc's; make one with: lstopo FILE.xml", origin);
  if (version > 2) {
    usage_error(
        "'{}' is in hwloc's XML format {}, but this build reads 1 and 2; export it with: "
        "lstopo --export-xml-flags v2 FILE.xml",
        origin, version);
  }
  // hwloc's files declare no entities; an entity can grow without bound.
  if (xml.find("<!ENTITY") != std::string_view::npos) {
    usage_error("'{}' declares XML entities, which hwloc's files don't; make one with: lstopo FILE.xml",
                origin);
  }
  if (xml.find("</topology>") == std::string_view::npos) {
    usage_error("'{}' ends before </topology>: it is truncated; copy or export it again", origin);
  }
}

}  // namespace

Machine probe_this_machine() {
  Machine machine = probe::machine_from(probe::HwlocTopology::live(), probe::Sysfs());
  if (machine.name.empty()) machine.name = host_name();
  machine.citations = {{"packages, memory, PCI devices", "hwloc on this machine"},
                       {"PCIe: the highest generation on the lanes that are connected; port states and rates",
                        "sysfs of this machine"}};
  machine.validate();
  return machine;
}

Machine parse_hwloc_xml(std::string_view xml, std::string_view origin) {
  check_hwloc_xml(xml, origin);
  const auto read = [text = std::string(xml)]() -> std::optional<Machine> {
    const auto topology = probe::HwlocTopology::from_xml(text);
    if (!topology) return std::nullopt;
    return probe::machine_from(*topology, std::nullopt);
  };
  std::optional<Machine> found;
  if (probe::survives(read, kMostSeconds)) found = read();
  if (!found) {
    usage_error("'{}' is not a topology that hwloc can read; export it again with: lstopo FILE.xml", origin);
  }
  Machine& machine = *found;
  if (machine.name.empty()) machine.name = std::filesystem::path(origin).stem().string();
  const std::string source = fmt::format("hwloc XML '{}'", std::filesystem::path(origin).filename().string());
  machine.citations = {{"packages, memory, PCI devices, port states, NVLink", source},
                       {"PCIe: the speed when the file was made, which an idle device turns down", source}};
  machine.validate();
  return std::move(machine);
}

Machine import_hwloc_xml(const std::filesystem::path& path) {
  return parse_hwloc_xml(read_text_file(path), path.string());
}

}  // namespace polyring
