#include "topology/described.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/text.hpp"
#include "topology/described_parts.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

using described::as_stated;
using described::at;
using described::wrong;
using presets::cite;

constexpr const char* kAssumed = "assumed";

/// Puts a machine together that is like no preset.
class Builder {
 public:
  explicit Builder(const MachineDescription& description) : description_(description) {}

  Cluster build() {
    choose_gpus();
    choose_pcie();
    choose_sockets();
    choose_links();
    choose_switches();
    choose_nics();
    add_devices();
    add_gpu_links();
    cite_choices();
    return cluster();
  }

 private:
  int gpus() const { return description_.gpus.count ? description_.gpus.count->value : 0; }

  /// Where something was stated, or else the file.
  template <typename Value>
  std::string where(const std::optional<Stated<Value>>& stated) const {
    return stated ? stated->where : description_.file;
  }

  void choose_gpus() {
    const std::optional<Stated<int>>& count = description_.gpus.count;
    const std::optional<Stated<std::string>>& product = description_.gpus.product;
    if (product && !count)
      wrong(product->where, "gpus.count is missing; say how many {} a host has", product->value);
    if (!count) return;
    if (count->value > 0 && !product) {
      wrong(count->where, R"(gpus.product is missing; name it, such as "H100-SXM": {})",
            fmt::join(presets::gpu_products(), ", "));
    }
    if (product) gpu_ = at(product->where, [&] { return presets::gpu_product(product->value); });
    if (count->value > 0 && gpu_.pcie_generation == 0 && !gpu_.c2c.known()) {
      wrong(
          product->where,
          R"(a host of {} has NVLinks to other hosts, which this file cannot say; write base = "gb200-nvl72")",
          gpu_.product);
    }
  }

  /// The GPU's generation, or the least that carries the NICs.
  void choose_pcie() {
    const std::optional<Stated<int>>& stated = description_.pcie.generation;
    const std::optional<Stated<std::string>>& rate = description_.nics.rate;
    constexpr int kUsual = 4;
    constexpr int kLast = 6;
    generation_ = stated                     ? stated->value
                  : gpu_.pcie_generation > 0 ? gpu_.pcie_generation
                  : gpu_.c2c.known()         ? kUsual + 1
                                             : kUsual;
    if (!rate) return;
    nic_ = described::nic_part(description_, std::nullopt);
    int least = generation_;
    while (least < kLast && nic_.port > presets::pcie_x16(least)) ++least;
    if (!stated) generation_ = least;
    const Bandwidth slot = presets::pcie_x16(generation_);
    if (nic_.port > slot) {
      wrong(rate->where, "{} are {}, more than PCIe {} x16 carries, {}; give another rate{}", rate->value,
            to_text(nic_.port), generation_, to_text(slot),
            nic_.port > presets::pcie_x16(least) ? "" : fmt::format(", or pcie = {}", least));
    }
  }

  void choose_sockets() {
    const std::optional<Stated<int>>& stated = description_.sockets.count;
    const bool c2c = gpu_.c2c.known();
    sockets_ = stated ? stated->value : c2c ? gpus() : gpus() == 0 || gpus() % 2 == 0 ? 2 : 1;
    if (c2c && gpus() != sockets_) {
      wrong(where(description_.gpus.count),
            "{} of {} on {}: each has a socket of its own; let the numbers be equal", counted(gpus(), "GPU"),
            gpu_.product, counted(sockets_, "socket"));
    }
    if (c2c && sockets_ > 1 && !description_.sockets.bus) {
      wrong(where(description_.gpus.count),
            R"(what joins {} sockets of {} is not known; state it by sockets = {{ bus = "100GB/s" }})",
            sockets_, gpu_.product);
    }
    usual_ = c2c ? presets::UsualSockets{presets::grace(presets::gibibytes(480), 512),
                                         {},
                                         "the GH200, by its data sheet"}
                 : presets::usual_sockets(generation_);
    described::overlay(description_.sockets, usual_.socket);
    if (description_.sockets.bus) usual_.bus = description_.sockets.bus->value;
  }

  /// Whether NVLinks or xGMI links are wanted. Refuses those that the product does not have.
  bool wants_links() const {
    const auto& stated = description_.gpus.nvlink;
    const presets::GpuLinks& own = gpu_.links;
    const std::string name = own.kind == LinkKind::xgmi ? "xgmi" : std::to_string(own.version);
    if (stated && stated->value != "none" && (own.count == 0 || stated->value != name)) {
      wrong(stated->where, "{} has {}; write nvlink = {}, or leave it out", gpu_.product,
            own.count == 0               ? "no NVLink"
            : own.kind == LinkKind::xgmi ? std::string("xGMI links")
                                         : fmt::format("NVLink {}", own.version),
            own.count == 0               ? "\"none\""
            : own.kind == LinkKind::xgmi ? "\"xgmi\""
                                         : name);
    }
    const bool other = description_.gpus.topology || description_.gpus.links;
    const std::string& place =
        description_.gpus.topology ? where(description_.gpus.topology) : where(description_.gpus.links);
    if (other && stated && stated->value == "none")
      wrong(place,
            "gpus.topology and gpus.links are of NVLinks, and nvlink is \"none\"; leave one of them out");
    if (other && own.count == 0)
      wrong(place, "{} has no NVLink; leave gpus.topology and gpus.links out", gpu_.product);
    if (stated) return stated->value != "none";
    return own.count > 0 && (other || !gpu_.is_card);
  }

  /// How such GPUs are usually joined.
  GpuTopology usual_topology() const {
    if (gpu_.is_card || gpus() == 2) return GpuTopology::pairs;
    if (gpu_.links.kind == LinkKind::xgmi) return GpuTopology::mesh;
    const bool before_switches = gpu_.links.version < 3;
    if (before_switches && gpus() == 8) return GpuTopology::cube_mesh;
    return before_switches || gpus() <= 4 ? GpuTopology::mesh : GpuTopology::switches;
  }

  void choose_links() {
    const auto& [count, product, nvlink, topology, links] = description_.gpus;
    if (gpus() < 2) {
      if (topology || links)
        wrong(where(topology ? std::optional<Stated<int>>{{0, topology->where}} : links),
              "one GPU has no other to be joined to; leave gpus.topology and gpus.links out");
      if (gpus() == 1) wants_links();
      return;
    }
    if (!wants_links()) return;
    topology_ = topology ? topology->value : usual_topology();
    links_ = links ? links->value : gpu_.links.count;
    if (links_ > gpu_.links.count) {
      wrong(links->where, "{} has {}, not {}; give at most that", gpu_.product, link_name(gpu_.links.count),
            links_);
    }
    const std::string place = links ? links->where : topology ? topology->where : where(count);
    if (*topology_ == GpuTopology::switches) check_switches(place);
    if (*topology_ == GpuTopology::mesh) check_mesh(place, links.has_value());
    if (*topology_ == GpuTopology::cube_mesh) check_cube_mesh(place);
    if (*topology_ == GpuTopology::pairs && gpus() % 2 != 0)
      wrong(place, "{} cannot be joined in pairs; give an even number, or another topology",
            counted(gpus(), "GPU"));
  }

  void check_switches(const std::string& place) const {
    if (gpu_.links.kind == LinkKind::xgmi)
      wrong(place, "{} has xGMI links, for which there are no switches; write topology = \"mesh\"",
            gpu_.product);
  }

  void check_mesh(const std::string& place, bool stated) {
    const int others = gpus() - 1;
    if (links_ < others) {
      wrong(place, "a mesh of {} GPUs needs {} links of each, and {} uses {}; choose another topology",
            gpus(), others, gpu_.product, links_);
    }
    if (links_ % others != 0 && stated) {
      wrong(place,
            "{} of each of {} GPUs do not make a mesh, which has as many to each of the {} others; give {}",
            link_name(links_), gpus(), others, links_ / others * others);
    }
    links_ = links_ / others * others;
  }

  void check_cube_mesh(const std::string& place) const {
    if (gpus() != 8) wrong(place, "a cube mesh has 8 GPUs, not {}; choose another topology", gpus());
    if (gpu_.links.kind == LinkKind::xgmi || (links_ != 4 && links_ != 6)) {
      wrong(
          place,
          "a cube mesh takes 4 or 6 NVLinks of each GPU, and {} uses {}; state gpus.links, or choose another "
          "topology",
          gpu_.product, link_name(links_));
    }
  }

  /// "18 NVLinks".
  std::string link_name(int count) const {
    return counted(count, gpu_.links.kind == LinkKind::xgmi ? "xGMI link" : "NVLink");
  }

  void choose_switches() {
    const std::optional<Stated<int>>& stated = description_.pcie.switches;
    const bool in_trees =
        topology_ && (*topology_ == GpuTopology::switches || *topology_ == GpuTopology::cube_mesh);
    const bool even = gpus() % (2 * sockets_) == 0;
    switches_ = stated ? stated->value : in_trees && even ? gpus() / 2 : 0;
    if (gpu_.c2c.known() && switches_ > 0)
      wrong(where(stated), "{} hangs on its processor, not on a PCIe switch; leave pcie.switches out",
            gpu_.product);
    const int parents = switches_ > 0 ? switches_ : sockets_;
    if (switches_ % sockets_ != 0) {
      wrong(where(stated), "{} PCIe switches cannot be shared evenly by {}; give a multiple of {}", switches_,
            counted(sockets_, "socket"), sockets_);
    }
    if (gpus() % parents != 0) {
      const std::string place = stated                       ? stated->where
                                : description_.sockets.count ? description_.sockets.count->where
                                                             : where(description_.gpus.count);
      wrong(place, "{} cannot be spread evenly over {}; change one of them", counted(gpus(), "GPU"),
            switches_ > 0 ? fmt::format("{} PCIe switches", switches_) : counted(sockets_, "socket"));
    }
  }

  void choose_nics() {
    const auto& [count, per_switch, rate, kind, place] = description_.nics;
    if (per_switch && switches_ == 0)
      wrong(per_switch->where,
            "there are no PCIe switches for nics.per_switch; give nics.count, or add pcie.switches");
    if (per_switch && count && count->value != per_switch->value * switches_) {
      wrong(count->where,
            "nics.count is {}, and per_switch {} on {} switches makes {}; leave one of them out",
            count->value, per_switch->value, switches_, per_switch->value * switches_);
    }
    nics_ = per_switch ? per_switch->value * switches_ : count ? count->value : rate ? 1 : 0;
    if (nics_ == 0) {
      refuse_alone();
      return;
    }
    if (!rate)
      wrong(where(per_switch ? per_switch : count),
            "nics.rate is missing; give it, such as \"400Gb/s\" or \"ndr\"");
    const bool fits = switches_ > 0 && (nics_ % switches_ == 0 || switches_ % nics_ == 0);
    nics_on_switches_ = place ? place->value == NicPlace::pci_switch : fits;
    if (nics_on_switches_ && !fits) {
      wrong(place->where,
            "{} cannot be spread evenly over {} PCIe switches; change one of them, or write where = "
            "\"socket\"",
            counted(nics_, "NIC"), switches_);
    }
  }

  void refuse_alone() const {
    const int hosts = description_.hosts ? description_.hosts->value : 1;
    if (hosts == 1) return;
    wrong(description_.hosts->where,
          R"({} hosts have no NICs to reach each other; add nics = {{ count = 1, rate = "ndr" }})", hosts);
  }

  void add_devices() {
    machine_.name = description_.name;
    machine_.model = gpus() > 0 ? fmt::format("{}x {}", gpus(), gpu_.product) : "";
    const std::vector<DeviceId> packages =
        presets::add_packages(machine_, usual_.socket, usual_.bus, sockets_);
    const Bandwidth pcie = presets::pcie_x16(generation_);
    const Bandwidth of_gpu =
        gpu_.pcie_generation > 0 ? presets::pcie_x16(std::min(generation_, gpu_.pcie_generation)) : pcie;
    if (switches_ > 0) {
      const int evenly = nics_on_switches_ ? nics_ / switches_ : 0;
      presets::add_switch_trees(machine_, packages, gpu_, nic_, {switches_, gpus() / switches_, evenly}, pcie,
                                of_gpu);
    } else {
      for (int i = 0; i < gpus(); ++i) {
        const int socket = i * sockets_ / gpus();
        const DeviceId gpu = presets::add_gpu(machine_, gpu_, socket, socket);
        if (gpu_.c2c.known()) {
          presets::add_c2c(machine_, gpu, packages[index(socket)], gpu_.c2c);
        } else {
          presets::add_pcie(machine_, gpu, packages[index(socket)], of_gpu);
        }
      }
    }
    // Those that are not on every switch.
    for (int i = static_cast<int>(machine_.nics.size()); i < nics_; ++i) {
      const int under = nics_on_switches_ ? i * switches_ / nics_ : i * sockets_ / nics_;
      const int socket = nics_on_switches_ ? under * sockets_ / switches_ : under;
      const DeviceId nic =
          presets::add_nic(machine_, nic_, socket, nics_on_switches_ ? under : switches_ + socket);
      presets::add_pcie(machine_, nic,
                        nics_on_switches_ ? DeviceId{DeviceKind::pci_switch, under} : packages[index(socket)],
                        pcie);
    }
  }

  void add_gpu_links() {
    if (!topology_) return;
    const Bandwidth each = gpu_.links.each;
    switch (*topology_) {
      case GpuTopology::switches:
        presets::add_nvswitches(machine_, links_ * each);
        break;
      case GpuTopology::mesh:
        presets::add_full_mesh(machine_, gpu_.links, links_ / (gpus() - 1));
        break;
      case GpuTopology::cube_mesh:
        links_ == 4 ? presets::add_cube_mesh(machine_, each) : presets::add_doubled_cube_mesh(machine_, each);
        break;
      case GpuTopology::pairs:
        presets::add_pairs(machine_, gpu_.links, links_);
        break;
    }
  }

  template <typename Value>
  static std::string source(const std::optional<Stated<Value>>& stated,
                            const std::string& otherwise = kAssumed) {
    return stated ? as_stated(stated->where) : otherwise;
  }

  void cite_choices() {
    if (gpus() > 0)
      cite(machine_, fmt::format("{} {} a host", gpus(), gpu_.product), source(description_.gpus.count));
    cite_links();
    cite(machine_, counted(sockets_, "socket"), source(description_.sockets.count));
    const std::string bus = sockets_ > 1 ? fmt::format(", {} between two", to_text(usual_.bus)) : "";
    cite(machine_,
         fmt::format("of a socket, as far as it is not stated: {} cores, {}, {} of memory bandwidth{}",
                     usual_.socket.cores, to_text(usual_.socket.memory),
                     to_text(usual_.socket.memory_bandwidth), bus),
         fmt::format("assumed: as in {}", usual_.machine));
    described::cite_sockets(machine_, description_.sockets);
    cite(machine_,
         fmt::format("PCIe gen {} x16 ({}) for each device", generation_,
                     to_text(presets::pcie_x16(generation_))),
         source(description_.pcie.generation,
                gpus() > 0 ? "assumed: that of the GPU, or what the NICs need" : kAssumed));
    if (gpus() > 0 && !gpu_.c2c.known()) {
      cite(machine_,
           switches_ > 0 ? fmt::format("{} GPUs share a PCIe switch", gpus() / switches_)
                         : "each GPU hangs on its socket by its own PCIe link",
           source(description_.pcie.switches));
    }
    if (nics_ > 0) {
      cite(machine_, counted(nics_, "NIC") + " a host",
           source(description_.nics.per_switch ? description_.nics.per_switch : description_.nics.count));
      cite(machine_, nics_on_switches_ ? "they hang on the PCIe switches" : "they hang on the sockets",
           source(description_.nics.place));
    }
    if (gpu_.c2c.known()) cite(machine_, "latency of an NVLink-C2C 0.3 us", "assumed: as between sockets");
    presets::cite_latencies(machine_);
  }

  void cite_links() {
    if (gpus() < 2) return;
    if (!topology_) {
      const char* why = gpu_.links.count > 0 ? "assumed: no bridges" : "the product has no NVLink";
      cite(machine_, "the GPUs have PCIe alone", source(description_.gpus.nvlink, why));
      return;
    }
    constexpr std::array kHow{"to NVSwitches", "between every two GPUs", "in a hybrid cube mesh",
                              "between pairs of GPUs"};
    cite(machine_,
         fmt::format("{}{} of a GPU, {} per direction each, {}",
                     links_ < gpu_.links.count ? fmt::format("{} of ", links_) : "",
                     link_name(gpu_.links.count), to_text(gpu_.links.each),
                     kHow.at(static_cast<std::size_t>(*topology_))),
         fmt::format("{}; {}", gpu_.links.source,
                     source(description_.gpus.topology, "assumed: as such GPUs are usually joined")));
  }

  Cluster cluster() {
    Cluster cluster;
    cluster.name = description_.name;
    cluster.groups = {{std::move(machine_), description_.hosts ? description_.hosts->value : 1}};
    const NicProtocol protocol = nic_protocol_of(cluster.host(0));
    cluster.fabric = presets::usual_fabric(protocol, description_.fabric.hosts_per_leaf.has_value());
    described::state_fabric(cluster, description_.fabric);
    cluster.validate();
    return cluster;
  }

  const MachineDescription& description_;
  presets::GpuKind gpu_;
  presets::NicPart nic_{};
  presets::UsualSockets usual_;
  std::optional<GpuTopology> topology_;  // nothing: PCIe alone
  int links_ = 0;                        // of each GPU, that are used
  int sockets_ = 1;
  int generation_ = 4;
  int switches_ = 0;
  int nics_ = 0;
  bool nics_on_switches_ = false;
  Machine machine_;
};

}  // namespace

Cluster described_cluster(const MachineDescription& description) {
  described::check_ranges(description);
  return description.base ? described::cluster_with_base(description) : Builder(description).build();
}

}  // namespace polyring
