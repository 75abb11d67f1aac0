// One host of NCCL's topology XML: from its <cpu> elements to a Machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/inventory/formats/nccl_xml_document.hpp"
#include "topology/machine.hpp"

namespace polyring::nccl_xml {

class HostReader {
 public:
  /// `file` is named in the citations.
  explicit HostReader(std::string file) : file_(std::move(file)) {}

  /// Reads the element and all below it.
  void add_cpu(const Element& cpu);

  /// The machine of all CPUs so far, without a name. Call it once. The file may have several hosts.
  Machine finish(bool is_one_of_several);

 private:
  /// Where a device hangs: a package or a switch, over a PCIe link of this bandwidth.
  struct Place {
    DeviceId parent;
    Bandwidth bandwidth;
    int package = 0;
  };
  /// Devices are put in order when all are known. `dev` is NCCL's number, past all numbers where there is
  /// none.
  struct FoundGpu {
    Gpu gpu;
    Place place;
    int dev;
    std::optional<Element> element;  // <gpu>
  };
  struct FoundNic {
    Nic nic;
    Place place;
    int dev;
  };

  void check_count(std::size_t count, std::size_t most, std::string_view what) const;
  void add_pci(const Element& pci, DeviceId parent, int package);
  void add_gpu(const Element& pci, const Place& place);
  void add_nic(const Element& nic, const std::string& address, const std::string& model, NicKind kind,
               const Place& place);
  void add_net(const Element& net, const std::string& address, const std::string& model, NicKind kind,
               const Place& place, std::size_t first_of_adapter);
  FoundNic& new_nic(std::string name, const std::string& address, const std::string& model, NicKind kind,
                    const Place& place);
  bool is_fused(const std::string& name) const;
  void put_in_order();
  void add_gpu_links(const FoundGpu& found, DeviceId gpu);
  void add_gpu_link(const Element& link, const FoundGpu& found, DeviceId gpu, LinkKind kind);
  std::optional<DeviceId> target_of(const Element& link, const FoundGpu& found, LinkKind kind) const;
  Bandwidth bandwidth_of(const Element& link, const FoundGpu& found, LinkKind kind, double count);
  void link_gpus();
  void note_skeleton();
  void note_missing_links();
  void note_sources();

  std::string file_;
  Machine machine_;
  std::vector<FoundGpu> gpus_;
  std::vector<FoundNic> nics_;
  std::set<std::string> nic_names_;
  std::vector<std::string> ambiguous_;      // NICs whose ports may carry more
  std::vector<std::string> too_fast_;       // ports of more than any port's speed
  std::vector<std::string> shared_;         // bus addresses of PCI devices with several <gpu>
  std::vector<std::string> unnamed_;        // bus addresses of devices of which the file says nothing else
  std::map<std::string, DeviceId> gpu_at_;  // by bus address
  std::vector<int> nvlinks_;                // by GPU
  /// Each end counts the links itself: what the file says from the first device to the second.
  std::map<std::pair<DeviceId, DeviceId>, Link> directed_;
  std::set<std::pair<LinkKind, std::string>> rates_;  // what the links' bandwidths were taken from
};

}  // namespace polyring::nccl_xml
