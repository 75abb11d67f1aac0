// Recorded copies of /sys, with AMD's kfd in them. An input lists what is in one: `class/net/eth0/mtu = 9000`
// is a line of a file, `class/net/eth0/device -> ../../../devices/pci0000:00/0000:00:01.0` is a link.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/probe.hpp"

namespace {

using namespace polyring;
namespace fs = std::filesystem;

/// More than scripts/record_sysfs copies of a server with eight GPUs; what is further on is left out.
constexpr std::size_t kMostEntries = 4096;

struct Listing {
  std::map<fs::path, std::string> files;
  std::map<fs::path, fs::path> links;
};

/// So that nothing is written outside of the tree.
bool stays_below(const fs::path& path) {
  return path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

Listing listing_in(std::string_view text) {
  Listing listing;
  while (!text.empty() && listing.files.size() + listing.links.size() < kMostEntries) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto file = line.find(" = ");
    const auto link = line.find(" -> ");
    const fs::path path = line.substr(0, std::min(file, link));
    if (path.empty() || !stays_below(path)) continue;
    if (file < link) {
      listing.files[path] += std::string(line.substr(file + 3)) + "\n";
    } else if (link != std::string_view::npos) {
      listing.links[path] = line.substr(link + 4);
    }
  }
  return listing;
}

/// The tree on disk, as far as it can be, until this goes.
class Tree {
 public:
  explicit Tree(const Listing& listing) {
    std::string name = (fs::temp_directory_path() / "polyring-fuzz-sysfs-XXXXXX").string();
    fuzz::expect(mkdtemp(name.data()) != nullptr, "a folder for the tree cannot be made");
    root_ = name;
    fs::create_directory(root_ / "class");  // by which a copy is told
    // Links come last, when no folder is made or file is written that one could lead elsewhere.
    for (const auto& [path, text] : listing.files) {
      make_folder_of(path);
      std::ofstream(root_ / path, std::ios::binary) << text;
    }
    for (const auto& [path, target] : listing.links) make_folder_of(path);
    std::error_code failed;
    for (const auto& [path, target] : listing.links) fs::create_symlink(target, root_ / path, failed);
  }
  ~Tree() {
    std::error_code failed;
    fs::remove_all(root_, failed);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const fs::path& root() const { return root_; }

 private:
  void make_folder_of(const fs::path& path) const {
    std::error_code failed;
    fs::create_directories((root_ / path).parent_path(), failed);
  }

  fs::path root_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Tree tree(listing_in(fuzz::text_of(data, size)));
  fuzz::may_refuse([&] { fuzz::use(cluster_of(probe_recorded_sysfs(tree.root()), 1)); });
  return 0;
}
