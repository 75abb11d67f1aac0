// Ports of InfiniBand and RoCE (verbs): whether each is up, and whether it carries the job's messages. Which
// of them MPI uses is fixed before a job starts (UCX_NET_DEVICES), so that nothing here measures one by
// itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/accept/check.hpp"

namespace polyring {

struct VerbsPort {
  std::string state;  // "ACTIVE", "DOWN", …, as Linux names them; empty: unknown
  std::optional<std::uint64_t>
      sent;  // bytes, since the driver was loaded; nothing where the port does not say
  bool may_be_up() const { return state.empty() || state.starts_with("ACTIVE"); }
};

/// By port: "mlx5_0 port 1".
using VerbsPorts = std::map<std::string, VerbsPort>;

/// Of /sys, or of a copy of it. Not those of representors, see probe::Sysfs.
VerbsPorts read_verbs_ports(const std::filesystem::path& sys);

std::string json_of(const VerbsPorts& ports);
/// Throws where the text is not of json_of().
VerbsPorts verbs_ports_of(const std::string& json);

/// What the ports sent between two times, by host: a port that sent next to nothing has failed where the same
/// port carried messages on two other hosts or more, and on half of those that have it. One that fewer used
/// is shown: it may be for storage, and which ports MPI uses is MPI's choice. No rows for one host, and where
/// no host has such a port.
std::vector<CheckRow> judge_verbs_ports(const Checking& checking, std::string_view check,
                                        std::span<const VerbsPorts> before, std::span<const VerbsPorts> now);

}  // namespace polyring
