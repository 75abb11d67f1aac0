// From the matrix of `nvidia-smi topo -m` to the simplest machine that has its paths.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/index.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/formats/nvidia_smi.hpp"
#include "topology/inventory/probe/remarks.hpp"

namespace polyring::nvidia_smi {
namespace {

/// Of a GPU that the file does not name, NVML_NVLINK_MAX_LINKS of nvml.h, Hopper's and Blackwell's number.
constexpr int kMostNvlinks = 18;

/// A partition of the devices.
class Groups {
 public:
  explicit Groups(int count) : group_(index(count)) { std::iota(group_.begin(), group_.end(), 0); }

  int of(int device) const { return group_[index(device)]; }
  void unite(int a, int b) {
    const int from = of(a);
    const int to = of(b);
    std::ranges::replace(group_, from, to);
  }
  std::vector<int> members(int group) const {
    std::vector<int> found;
    for (int device = 0; device < static_cast<int>(group_.size()); ++device) {
      if (of(device) == group) found.push_back(device);
    }
    return found;
  }

 private:
  std::vector<int> group_;
};

/// Devices that are joined by a PCIe path of this kind, or a nearer one.
Groups within(const Matrix& matrix, PathType farthest) {
  Groups groups(matrix.size());
  for (int a = 0; a < matrix.size(); ++a) {
    for (int b = 0; b < a; ++b) {
      const PathType type = matrix.at(a, b).type;
      if (type != PathType::nvl && type <= farthest) groups.unite(a, b);
    }
  }
  return groups;
}

bool any_across(const Matrix& matrix, const std::vector<int>& some, const std::vector<int>& others,
                PathType type) {
  return std::ranges::any_of(some, [&](int a) {
    return std::ranges::any_of(others, [&](int b) { return matrix.at(a, b).type == type; });
  });
}

/// Groups of one NUMA node. An NVLink in a cell hides the way over PCIe; then the affinity to CPUs decides.
Groups packages_of(const Matrix& matrix) {
  Groups groups = within(matrix, PathType::node);
  for (int a = 0; a < matrix.size(); ++a) {
    for (int b = 0; b < a; ++b) {
      const std::string& affinity = matrix.devices[index(a)].cpu_affinity;
      const bool may_be_near = matrix.at(a, b).type == PathType::nvl && !affinity.empty() &&
                               affinity == matrix.devices[index(b)].cpu_affinity &&
                               groups.of(a) != groups.of(b);
      if (!may_be_near) continue;
      if (any_across(matrix, groups.members(groups.of(a)), groups.members(groups.of(b)), PathType::sys))
        continue;
      groups.unite(a, b);
    }
  }
  return groups;
}

/// The NUMA node that all GPUs of the group name; -1 where they name none or several.
int numa_of(const Matrix& matrix, const std::vector<int>& members) {
  std::set<int> nodes;
  for (const int device : members) {
    if (matrix.devices[index(device)].is_gpu) nodes.insert(matrix.devices[index(device)].numa);
  }
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

/// nvidia-smi lists RDMA devices only, and does not say over what they run: those of `mlx5_0` do over either.
/// Drivers for Ethernet alone, bonds, which InfiniBand's devices cannot be of, and udev's names say it.
NicKind nic_kind(const std::string& name) {
  for (const char* ethernet : {"roce", "bnxt", "irdma", "iw", "efa", "rdmap", "mlx5_bond"}) {
    if (name.starts_with(ethernet)) return NicKind::ethernet;
  }
  return name.starts_with("ib") ? NicKind::infiniband : NicKind::unknown;
}

/// Of two GPUs that are SYS from each other and yet name the same NUMA node. Virtual machines show their
/// devices on buses of their own, and so apart.
std::string apart_in_one_node(const Matrix& matrix) {
  std::string first;
  int others = -1;
  for (int a = 0; a < matrix.size(); ++a) {
    for (int b = a + 1; b < matrix.size(); ++b) {
      const Device& one = matrix.devices[index(a)];
      const Device& other = matrix.devices[index(b)];
      const bool odd = matrix.at(a, b).type == PathType::sys && one.numa >= 0 && one.numa == other.numa &&
                       !one.cpu_affinity.empty() && one.cpu_affinity == other.cpu_affinity;
      if (!odd || ++others > 0) continue;
      first = fmt::format("{} and {}", one.name, other.name);
    }
  }
  if (others < 0) return {};
  return fmt::format(
      "the matrix has SYS between {}{}, which are near the same CPUs and NUMA node, as in virtual "
      "machines: the packages shown may be more than the host has",
      first, others == 0 ? "" : fmt::format(" and {} other pair{}", others, others == 1 ? "" : "s"));
}

/// A GPU whose memory is a NUMA node of its host. So is a V100's beside a POWER9, by NVLink 2.
bool has_c2c(const Device& device) {
  constexpr int kVolta = 70;
  return device.has_own_numa && compute_capability_of(device.model) != kVolta;
}

/// The groups of NICs alone for which a package of their own is not what the matrix means. Of GPUs behind C2C
/// it says SYS to all NICs, also to those of the same processor; and no host has more processors with NICs
/// alone than with GPUs.
std::set<int> without_package(const Matrix& matrix, const Groups& packages) {
  std::set<int> with_gpus;
  std::set<int> others;
  bool any_c2c = false;
  for (int device = 0; device < matrix.size(); ++device) {
    const Device& one = matrix.devices[index(device)];
    any_c2c = any_c2c || (one.is_gpu && has_c2c(one));
    (one.is_gpu ? with_gpus : others).insert(packages.of(device));
  }
  for (const int group : with_gpus) others.erase(group);
  return any_c2c || others.size() > with_gpus.size() ? others : std::set<int>{};
}

class Builder {
 public:
  explicit Builder(const Matrix& matrix)
      : matrix_(matrix),
        packages_(packages_of(matrix)),
        without_package_(without_package(matrix, packages_)) {}

  Machine build() {
    add_packages();
    add_devices();
    attach_devices();
    add_nvlinks();
    compare();
    if (std::string odd = apart_in_one_node(matrix_); !odd.empty())
      machine_.remarks.push_back(std::move(odd));
    return std::move(machine_);
  }

 private:
  void add_packages() {
    for (int device = 0; device < matrix_.size(); ++device) {
      const int group = packages_.of(device);
      if (without_package_.contains(group)) continue;
      const auto [entry, is_new] = package_at_.try_emplace(group, static_cast<int>(machine_.packages.size()));
      if (!is_new) continue;
      const std::vector<int> members = packages_.members(group);
      Package package;
      package.name = fmt::format("package{}", entry->second);
      for (const int member : members) {
        const std::string& cpus = matrix_.devices[index(member)].cpu_affinity;
        if (package.model.empty() && !cpus.empty()) package.model = "CPUs " + cpus;
      }
      if (const int numa = numa_of(matrix_, members); numa >= 0) package.numa_nodes = {numa};
      machine_.packages.push_back(std::move(package));
    }
    const int count = static_cast<int>(machine_.packages.size());
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b) {
        machine_.links.push_back(
            {{DeviceKind::package, a}, {DeviceKind::package, b}, LinkKind::socket_bus, {}, {}});
      }
    }
  }

  void add_devices() {
    const Groups bridges = within(matrix_, PathType::phb);
    for (int device = 0; device < matrix_.size(); ++device) {
      const Device& from = matrix_.devices[index(device)];
      const bool package_known = !without_package_.contains(packages_.of(device));
      const std::vector<int>& numa = machine_.packages[index(package_of(device))].numa_nodes;
      const int node = numa.empty() || !package_known ? -1 : numa.front();
      if (from.is_gpu) {
        ids_.push_back({DeviceKind::gpu, static_cast<int>(machine_.gpus.size())});
        machine_.gpus.push_back(
            {"gpu" + from.name.substr(3), from.model, "", node, bridges.of(device), {}, {}});
      } else {
        ids_.push_back({DeviceKind::nic, static_cast<int>(machine_.nics.size())});
        machine_.nics.push_back({from.name, "", "", node, bridges.of(device), nic_kind(from.name), {}});
        machine_.nics.back().package_known = package_known;
      }
    }
  }

  /// A switch for each group of PIX; where PXB joins several, each has a switch below a common one.
  void attach_devices() {
    const Groups trees = within(matrix_, PathType::pxb);
    const Groups switches = within(matrix_, PathType::pix);
    std::map<int, DeviceId> top_of;
    std::map<int, DeviceId> switch_of;
    for (int device = 0; device < matrix_.size(); ++device) {
      DeviceId parent{DeviceKind::package, package_of(device)};
      const auto siblings = switches.members(switches.of(device)).size();
      const bool cascaded = trees.members(trees.of(device)).size() > siblings;
      if (cascaded) parent = switch_below(parent, top_of, trees.of(device));
      if (cascaded || siblings > 1) parent = switch_below(parent, switch_of, switches.of(device));
      // The matrix does not say which path the GPU's PCIe takes, where C2C is the way to its package.
      const bool is_c2c = has_c2c(matrix_.devices[index(device)]) && parent.kind == DeviceKind::package;
      machine_.links.push_back(
          {ids_[index(device)], parent, is_c2c ? LinkKind::c2c : LinkKind::pcie, {}, {}});
    }
  }

  DeviceId switch_below(DeviceId parent, std::map<int, DeviceId>& of_group, int group) {
    const DeviceId id{DeviceKind::pci_switch, static_cast<int>(machine_.switches.size())};
    const auto [entry, is_new] = of_group.try_emplace(group, id);
    if (is_new) {
      machine_.switches.push_back({fmt::format("switch{}", id.index), ""});
      machine_.links.push_back({id, parent, LinkKind::pcie, {}, {}});
    }
    return entry->second;
  }

  /// The NVLinks of one device, by its row of the matrix.
  struct Row {
    int most = 0;  // to any one device
    int sum = 0;
  };

  void add_nvlinks() {
    std::vector<Row> rows;
    for (int a = 0; a < matrix_.size(); ++a) {
      Row& row = rows.emplace_back();
      for (int b = 0; b < matrix_.size(); ++b) {
        row.most = std::max(row.most, matrix_.at(a, b).nvlinks);
        row.sum += matrix_.at(a, b).nvlinks;
      }
    }
    // All of a GPU's NVLinks go to NVSwitches where it would need more to reach each GPU by links of its own.
    bool switched = false;
    for (int a = 0; a < matrix_.size(); ++a) {
      const int known = most_nvlinks_of(matrix_.devices[index(a)].model);
      switched |= rows[index(a)].sum > (known > 0 ? known : kMostNvlinks);
    }
    machine_.nvswitches = switched ? 1 : 0;
    for (int a = 0; a < matrix_.size(); ++a) {
      if (switched && rows[index(a)].most > 0) add_nvlink(a, {DeviceKind::nvswitch, 0}, rows[index(a)].most);
      for (int b = a + 1; b < matrix_.size() && !switched; ++b) {
        if (const int links = matrix_.at(a, b).nvlinks; links > 0) add_nvlink(a, ids_[index(b)], links);
      }
    }
    remark_unknown_speed();
    if (switched) remark_lost(rows);
  }

  void remark_unknown_speed() {
    const bool unknown = std::ranges::any_of(machine_.links, [](const Link& link) {
      return link.kind == LinkKind::nvlink && !link.bandwidth.known();
    });
    if (!unknown) return;
    std::string product;
    for (const Device& device : matrix_.devices) {
      const bool strange =
          !device.model.empty() && !nvlink_rate(compute_capability_of(device.model)).bandwidth.known();
      if (product.empty() && strange) product = device.model;
    }
    machine_.remarks.push_back(
        product.empty()
            ? "how fast the NVLinks are needs the GPUs' models: put the lines of nvidia-smi -L into the file"
            : fmt::format("how fast the NVLinks of this product are is not known here: {}", product));
  }

  void remark_lost(const std::vector<Row>& rows) {
    std::vector<int> nvlinks(machine_.gpus.size());
    for (int device = 0; device < matrix_.size(); ++device) {
      const DeviceId id = ids_[index(device)];
      if (id.kind == DeviceKind::gpu) nvlinks[index(id.index)] = rows[index(device)].most;
    }
    const std::string lost = lost_nvlinks(nvlinks);
    if (!lost.empty()) machine_.remarks.push_back(lost);
  }

  void add_nvlink(int gpu, DeviceId to, int links) {
    const GpuLinkRate rate = nvlink_rate(compute_capability_of(matrix_.devices[index(gpu)].model));
    machine_.links.push_back({ids_[index(gpu)], to, LinkKind::nvlink, links * rate.bandwidth, {}, links});
  }

  /// The kinds of paths need not fit into one tree: then the machine has others than the matrix.
  void compare() {
    std::string first;
    int others = -1;
    for (int a = 0; a < matrix_.size(); ++a) {
      for (int b = a + 1; b < matrix_.size(); ++b) {
        const auto path = find_path(machine_, ids_[index(a)], ids_[index(b)]);
        const PathType wanted = matrix_.at(a, b).type;
        // C2C hides PCIe. A path has no type if the package of one end is unknown.
        if (path && (path->type == wanted || path->type == PathType::p2c || path->type == PathType::unknown))
          continue;
        if (++others > 0) continue;
        first =
            fmt::format("{} and {} ({}, here {})", matrix_.devices[index(a)].name,
                        matrix_.devices[index(b)].name, to_text(wanted), path ? to_text(path->type) : "none");
      }
    }
    if (others < 0) return;
    machine_.remarks.push_back(fmt::format(
        "no tree of PCIe switches has all paths of the matrix: not those of {} and {} other pairs", first,
        others));
  }

  /// The first one, where it is not known.
  int package_of(int device) const {
    const auto found = package_at_.find(packages_.of(device));
    return found == package_at_.end() ? 0 : found->second;
  }

  const Matrix& matrix_;
  Groups packages_;
  std::set<int> without_package_;  // groups
  std::map<int, int> package_at_;  // by group
  std::vector<DeviceId> ids_;      // of the matrix's devices, in its order
  Machine machine_;
};

}  // namespace

Machine machine_of(const Matrix& matrix) { return Builder(matrix).build(); }

void note_absent_nvlinks(std::string_view text, Machine& machine) {
  const auto asks = [&](std::string_view option) { return text.find(option) != std::string_view::npos; };
  const bool has_nvlinks = std::ranges::count(machine.links, LinkKind::nvlink, &Link::kind) > 0;
  if (machine.gpus.size() > 1 && !has_nvlinks && (asks("topo -mp") || asks("topo --matrix_pci"))) {
    machine.gpu_links_known = false;
    machine.remarks.emplace_back(
        "the matrix is one of nvidia-smi topo -mp, which leaves NVLinks out: write it with nvidia-smi topo "
        "-m");
  } else if (misses_gpu_links(machine)) {
    machine.gpu_links_known = false;
    machine.remarks.emplace_back(
        "its GPUs are sold with NVLinks only, and the matrix has none: they were inactive when it was "
        "written; "
        "see nvidia-smi nvlink --status, and whether nvidia-fabricmanager runs");
  }
  for (const std::string& remark : probe::rack_remarks(machine)) machine.remarks.push_back(remark);
  for (const std::string& remark : probe::package_remarks(machine)) machine.remarks.push_back(remark);
}

}  // namespace polyring::nvidia_smi
