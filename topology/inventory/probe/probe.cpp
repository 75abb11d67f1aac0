#include "topology/inventory/probe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/host_name.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/probe/hwloc_machine.hpp"
#include "topology/inventory/probe/kfd.hpp"
#include "topology/inventory/probe/limits.hpp"
#include "topology/inventory/probe/nvml.hpp"
#include "topology/inventory/probe/remarks.hpp"
#include "topology/inventory/probe/sysfs_machine.hpp"
#include "topology/inventory/probe/trial.hpp"
#include "topology/processes.hpp"
#include "topology/socket_buses.hpp"

namespace polyring {
namespace {

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

/// Of the XML declaration; empty where it names none.
std::string_view encoding(std::string_view xml) {
  const std::string_view declaration = xml.substr(0, xml.starts_with("<?xml") ? xml.find("?>") : 0);
  const auto attribute = declaration.find("encoding");
  const auto open = declaration.find_first_of("\"'", attribute);
  if (attribute == std::string_view::npos || open == std::string_view::npos) return {};
  const std::string_view value = declaration.substr(open + 1);
  return value.substr(0, value.find(declaration[open]));
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
  // Of encodings that it does not know, libxml2 2.9 loses memory.
  const std::string_view named = encoding(xml);
  if (!named.empty() && named != "UTF-8" && named != "utf-8") {
    usage_error("'{}' says that its encoding is '{}', but hwloc writes UTF-8; make one with: lstopo FILE.xml",
                origin, named.substr(0, 40));
  }
  if (xml.find("</topology>") == std::string_view::npos) {
    usage_error("'{}' ends before </topology>: it is truncated; copy or export it again", origin);
  }
}

/// NVML where a driver of NVIDIA's is, and nowhere else: asking takes a child process.
probe::NvmlFindings ask_nvml(Machine& machine, const WaitNotice& notice) {
  if (probe::has_nvidia_driver()) return probe::add_nvml(machine, notice);
  return {
      {"NVML", false,
       "neither /proc/driver/nvidia nor /dev/nvidiactl is there; where GPUs of NVIDIA's are, install their "
       "driver, or load it with: modprobe nvidia (as root)"},
      {},
      {}};
}

void add_remarks(std::vector<std::string> remarks, Machine& machine) {
  std::ranges::move(remarks, std::back_inserter(machine.remarks));
}

/// Where NVML is not read, or hwloc's file was made without it, or AMD's driver does not know enough.
void look_for_gpu_links(Machine& machine) {
  if (machine.gpu_links_known && !misses_gpu_links(machine)) return;
  machine.gpu_links_known = false;
  machine.remarks.push_back(
      "its GPUs have NVLinks or xGMI links, which are not known, nor what they carry inside the host; run "
      "polyring probe there, where the GPUs' driver answers");
}

/// That of hosts without GPUs drives none.
void add_driver(const probe::Sysfs& sysfs, Machine& machine) {
  if (!machine.gpus.empty()) machine.gpu_driver = sysfs.gpu_driver();
}

void add_sysfs_remarks(const probe::Sysfs& sysfs, const std::set<std::string>& busy, Machine& machine) {
  add_remarks(probe::pcie_remarks(machine, sysfs, busy, machine.link_faults), machine);
  add_remarks(probe::port_remarks(machine, sysfs, machine.link_faults), machine);
}

/// `what` was read, and what else is to be said of that.
std::string sysfs_detail(const probe::Sysfs& sysfs, std::string what) {
  for (const probe::Bond& bond : sysfs.bonds())
    what += fmt::format("; {} bonds {} ({})", bond.name, fmt::join(bond.members, " and "), bond.mode);
  if (!sysfs.refused().empty()) {
    what +=
        fmt::format("; {} file{} may not be read by this user, {} first: run as root", sysfs.refused().size(),
                    sysfs.refused().size() == 1 ? "" : "s", *sysfs.refused().begin());
  }
  if (!sysfs.outside().empty()) {
    what += fmt::format(
        "; {} link{} out of it, {} first, and {} not read: scripts/record_sysfs makes a copy that is "
        "complete",
        sysfs.outside().size(), sysfs.outside().size() == 1 ? " leads" : "s lead", *sysfs.outside().begin(),
        sysfs.outside().size() == 1 ? "was" : "were");
  }
  return what;
}

ProbeSource live_sysfs(const probe::Sysfs& sysfs) {
  if (sysfs.entries("").empty()) {
    return {
        "sysfs", false,
        "/sys is empty; mount it with: mount -t sysfs sysfs /sys (as root), or start the container with the "
        "host's"};
  }
  return {"sysfs", true, sysfs_detail(sysfs, "PCIe speeds and widths, ports")};
}

/// What hwloc and sysfs say of this machine.
Machine without_drivers(const probe::Sysfs& sysfs) {
  Machine machine = probe::machine_from(probe::HwlocTopology::live(), sysfs);
  if (machine.name.empty()) machine.name = own_host_name();
  machine.citations = {{"packages, memory, PCI devices", "hwloc on this machine"},
                       {"PCIe: the highest generation on the lanes that are connected; port states and rates",
                        "sysfs of this machine"}};
  add_published_socket_bus(machine);
  // A live adapter without a driver has no port that could be up; of a file that would not be known.
  for (Nic& nic : machine.nics) {
    if (nic.kind == NicKind::infiniband && nic.ports.empty()) nic.ports.push_back({});
  }
  machine.sources.push_back({"hwloc", true, "packages, memory, PCI devices and where they hang"});
  return machine;
}

bool looks_like_sysfs(const std::filesystem::path& folder) {
  std::error_code failed;
  return std::ranges::any_of(std::array{"class", "bus", "devices"}, [&](const char* name) {
    return std::filesystem::is_directory(folder / name, failed);
  });
}

/// The folder itself, or `sys` in it.
std::filesystem::path recorded_root(const std::filesystem::path& folder) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed))
    usage_error("there is no folder '{}'; give the copy of another machine's /sys", folder.string());
  for (const std::filesystem::path& root : {folder, folder / "sys"}) {
    if (looks_like_sysfs(root)) return std::filesystem::canonical(root);
  }
  usage_error("'{}' has none of class/, bus/ and devices/ in it; give the copy of another machine's /sys",
              folder.string());
}

/// sysfs does not hold the host's name; that of the copy's folder has to do.
std::string recorded_name(const std::filesystem::path& root) {
  std::string name = root.filename().string();
  if (name == "sys") name = root.parent_path().filename().string();
  return name.empty() ? "recorded" : name;
}

[[noreturn]] void unreadable(std::string_view origin) {
  usage_error("'{}' is not a topology that hwloc can read; export it again with: lstopo FILE.xml", origin);
}

}  // namespace

Machine probe_this_machine(const WaitNotice& notice) {
  const probe::Sysfs sysfs;
  Machine machine = without_drivers(sysfs);
  const ProbeSource rocm = probe::add_xgmi(sysfs, machine);
  add_driver(sysfs, machine);
  const probe::NvmlFindings nvml = ask_nvml(machine, notice);
  if (nvml.source.read) add_remarks(probe::driver_remarks(machine, sysfs, nvml.gpus), machine);
  look_for_gpu_links(machine);
  add_remarks(probe::rack_remarks(machine), machine);
  add_remarks(probe::package_remarks(machine), machine);
  add_sysfs_remarks(sysfs, nvml.busy, machine);
  machine.sources.push_back(live_sysfs(sysfs));
  machine.sources.push_back(nvml.source);
  machine.sources.push_back(rocm);
  machine.make_printable();
  machine.validate();
  return machine;
}

Machine probe_without_gpus() {
  const probe::Sysfs sysfs;
  Machine machine = without_gpus(without_drivers(sysfs));
  add_remarks(probe::package_remarks(machine), machine);
  add_sysfs_remarks(sysfs, {}, machine);
  machine.sources.push_back(live_sysfs(sysfs));
  for (const char* driver : {"NVML", "ROCm"})
    machine.sources.push_back({driver, false, "not asked, since data are in host memory"});
  machine.make_printable();
  machine.validate();
  return machine;
}

Machine probe_recorded_sysfs(const std::filesystem::path& folder) {
  const std::filesystem::path root = recorded_root(folder);
  const probe::Sysfs sysfs(root);
  Machine machine = probe::machine_from(sysfs);
  machine.name = recorded_name(root);
  const std::string where = fmt::format("sysfs recorded in '{}'", folder.string());
  machine.citations = {{"packages, memory, PCI devices, port states and rates", where},
                       {"PCIe: the highest generation on the lanes that are connected", where}};
  const ProbeSource rocm = probe::add_xgmi(sysfs, machine);
  add_driver(sysfs, machine);
  look_for_gpu_links(machine);
  add_remarks(probe::package_remarks(machine), machine);
  add_sysfs_remarks(sysfs, {}, machine);
  constexpr const char* kLiveOnly = "can be asked on the machine itself only; run polyring probe there";
  const std::string copied = fmt::format("'{}': {}", folder.string(), probe::what_was_copied(sysfs));
  machine.sources = {{"sysfs", probe::was_copied(sysfs), sysfs_detail(sysfs, copied)},
                     {"hwloc", false, kLiveOnly},
                     {"NVML", false, kLiveOnly},
                     rocm};
  machine.make_printable();
  machine.validate();
  return machine;
}

Machine parse_untried_hwloc_xml(std::string_view xml, std::string_view origin) {
  check_hwloc_xml(xml, origin);
  const auto topology = probe::HwlocTopology::from_xml(std::string(xml));
  if (!topology) unreadable(origin);
  Machine machine = probe::machine_from(*topology, std::nullopt);
  probe::check_counts(machine, origin, "export one host's with: lstopo FILE.xml");
  if (machine.name.empty()) machine.name = std::filesystem::path(origin).stem().string();
  const std::string source = fmt::format("hwloc XML '{}'", std::filesystem::path(origin).filename().string());
  machine.citations = {{"packages, memory, PCI devices, port states, NVLink", source},
                       {"PCIe: the speed when the file was made, which an idle device turns down; one that "
                        "only an idle GPU has is left open",
                        source}};
  add_published_socket_bus(machine);
  look_for_gpu_links(machine);
  add_remarks(probe::rack_remarks(machine), machine);
  add_remarks(probe::package_remarks(machine), machine);
  add_remarks(probe::file_remarks(machine), machine);
  machine.make_printable();
  machine.validate();
  return machine;
}

Machine parse_hwloc_xml(std::string_view xml, std::string_view origin, Seconds limit) {
  const probe::Ending ending = probe::try_out([&] { parse_untried_hwloc_xml(xml, origin); }, limit);
  if (ending == probe::Ending::out_of_time) {
    usage_error(
        "hwloc did not read '{}' within {}: it is damaged, or of far more than one host; export it again "
        "with: "
        "lstopo FILE.xml",
        origin, to_text(limit));
  }
  if (ending == probe::Ending::crashed) unreadable(origin);
  return parse_untried_hwloc_xml(xml, origin);
}

Machine import_hwloc_xml(const std::filesystem::path& path) {
  return parse_hwloc_xml(read_text_file(path), path.string());
}

}  // namespace polyring
