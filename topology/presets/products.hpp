// GPUs and NICs by the names of their products: what presets and described machines (--machine FILE.toml) are
// made of. A number has the citation of its data sheet; what an NVLink or xGMI link carries is in
// topology/gpu_links.hpp.
//
// To add a GPU: a row in products.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"
#include "topology/nic_protocol.hpp"

namespace polyring::presets {

constexpr Bytes gibibytes(std::uint64_t count) { return {count << 30}; }

/// The links that lead from a GPU to other GPUs, or to switches between them.
struct GpuLinks {
  LinkKind kind = LinkKind::nvlink;  // or xgmi
  int version = 0;                   // of NVLink: 3 for 3.0 and 3.1; 0 of xGMI
  int count = 0;                     // of one GPU; 0: it has none
  Bandwidth each;                    // of one link, per direction
  std::string source;                // of the bandwidth and the number
};

/// What a kind of GPU brings with it.
struct GpuKind {
  std::string model;  // as its driver names it
  Bytes memory;
  Bandwidth memory_bandwidth;
  Citation citation;        // of the memory
  std::string product{};    // its name here, "A100-SXM4-80GB"
  GpuLinks links{};         // the most that it has, bridges of cards included
  bool is_card = false;     // of a PCIe slot: its NVLinks are those of bridges, which may be absent
  int pcie_generation = 0;  // of its x16 link to the host; 0: it has NVLink-C2C instead
  Bandwidth c2c{};          // that NVLink-C2C, per direction; 0: none, or unknown
};

/// The names that gpu_product() knows, in the order of the catalogue; without aliases.
std::vector<std::string> gpu_products();

/// By name, alias ("h100") or the driver's name ("NVIDIA H100 80GB HBM3"), in any case, with blanks, '-' and
/// '_' where one likes. Throws a usage Error that lists the names for an unknown one.
GpuKind gpu_product(std::string_view name);

/// What a kind of NIC brings with it: one port, which is up.
struct NicPart {
  std::string model;
  NicKind kind;
  Bandwidth port;
  Citation citation;
  std::string device{};  // what its name begins with; empty: "mlx5_" of InfiniBand, "eth" of Ethernet
};

/// One port of 4x InfiniBand, its bandwidth that of the payload.
NicPart edr(std::string model);
NicPart hdr(std::string model);
NicPart ndr(std::string model);

/// A NIC by its rate: `ndr` (InfiniBand's generations, see port_rates.hpp), `100GbE`, `400Gb/s` or `50GB/s`.
/// InfiniBand's ports carry a payload of 3 % less than the rates that its generations are known by: `ndr` and
/// `400Gb/s` of InfiniBand are both 48.5 GB/s. Another rate is taken as it is. Throws a usage Error that
/// begins with `what` where the text is no rate, is more than a port carries, or names InfiniBand's
/// generation of another protocol. The citation's source is `source`, beside that of the payload.
NicPart nic_by_rate(NicProtocol protocol, const std::string& rate, const std::string& what,
                    const std::string& source);

}  // namespace polyring::presets
