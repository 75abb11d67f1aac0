#include "topology/nic_protocol.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.hpp"
#include "base/names.hpp"

namespace polyring {
namespace {

struct Row {
  NicProtocol protocol;
  std::string_view name;
  std::string_view title;
  std::string_view device;
};
constexpr std::array kProtocols{Row{NicProtocol::infiniband, "infiniband", "InfiniBand", "mlx5_"},
                                Row{NicProtocol::roce, "roce", "RoCE", "roce"},
                                Row{NicProtocol::ethernet, "ethernet", "Ethernet", "eth"},
                                Row{NicProtocol::efa, "efa", "EFA", "efa"}};

const Row& row_of(NicProtocol protocol) { return *std::ranges::find(kProtocols, protocol, &Row::protocol); }

bool starts_with_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.starts_with(part); });
}

}  // namespace

std::vector<std::string> nic_protocols() {
  std::vector<std::string> names;
  for (const Row& row : kProtocols) names.emplace_back(row.name);
  return names;
}

std::string_view to_text(NicProtocol protocol) { return row_of(protocol).name; }
std::string_view title_of(NicProtocol protocol) { return row_of(protocol).title; }
std::string_view device_prefix(NicProtocol protocol) { return row_of(protocol).device; }

NicProtocol parse_nic_protocol(std::string_view text) {
  const std::string name = lower_case(text);
  const auto found = std::ranges::find(kProtocols, name, &Row::name);
  if (found == kProtocols.end())
    throw Error(ExitCode::usage, unknown_name("kind of NIC", text.substr(0, 64), nic_protocols()));
  return found->protocol;
}

NicProtocol protocol_of(const Nic& nic) {
  constexpr std::array<std::string_view, 2> kEfa{"efa", "rdmap"};
  constexpr std::array<std::string_view, 5> kRdma{"mlx", "roce", "bnxt_re", "irdma", "ionic"};
  if (nic.kind == NicKind::infiniband) return NicProtocol::infiniband;
  const std::string name = lower_case(nic.name);
  if (starts_with_any(name, kEfa) || lower_case(nic.model).find("efa") != std::string::npos)
    return NicProtocol::efa;
  return starts_with_any(name, kRdma) ? NicProtocol::roce : NicProtocol::ethernet;
}

}  // namespace polyring
