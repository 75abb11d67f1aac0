// What this machine is, and what a file of hwloc's says that another one is.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "topology/inventory/allowed_cores.hpp"
#include "topology/machine.hpp"

namespace polyring {

/// Is told, in words, what is waited for.
using WaitNotice = std::function<void(const std::string&)>;

/// This machine, live: packages, memory and PCI devices through hwloc; link speeds and port states through
/// sysfs; NVLink and the GPUs' health through NVML, xGMI through AMD's driver. What cannot be read stays
/// unknown (0, -1 or empty); Machine::sources says what was read, and Machine::remarks what somebody should
/// look at. Needs no rights and changes nothing. Drivers are asked in a child process; one that takes longer
/// than 2 s is told to `notice`.
Machine probe_this_machine(const WaitNotice& notice = {});

/// The same without GPUs, for programs whose data are in host memory. It asks no driver, so it starts no
/// process, and may be called after MPI_Init: a fork() there may damage memory that is registered with a
/// network (ibv_fork_init(3)).
Machine probe_without_gpus();

/// The cores of this machine that this thread may use; nothing when it may use all of them.
std::optional<AllowedCores> allowed_cores();

/// The machine whose /sys was copied into the folder (or into `sys` in it), as far as it was copied. Throws a
/// usage Error when that is no such folder.
Machine probe_recorded_sysfs(const std::filesystem::path& folder);

/// Reads an hwloc XML file, format 1 or 2, also its NVLinkBandwidth matrix. PCIe speeds are those that the
/// file holds, which for an idle device can be lower than its link can do. Throws a usage Error for a file
/// that is missing, too large, truncated, not hwloc's XML, of format 3, or with more devices than a host has.
Machine import_hwloc_xml(const std::filesystem::path& path);

/// As import_hwloc_xml(), of text that is already in memory. `origin` names it in errors. A damaged file
/// could keep hwloc busy for ever; a large machine takes it well under a second.
Machine parse_hwloc_xml(std::string_view xml, std::string_view origin, Seconds limit = {20});

/// The same without a trial in a child process: on damaged text hwloc may crash or never return.
Machine parse_untried_hwloc_xml(std::string_view xml, std::string_view origin);

/// "2.8.0", the version of its interface, of the hwloc that is loaded.
std::string hwloc_version();
/// "2.9.0", the version of the hwloc whose header this was compiled with.
std::string hwloc_built_with();

}  // namespace polyring
