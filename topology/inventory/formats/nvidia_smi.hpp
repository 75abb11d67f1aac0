// Reads what `nvidia-smi topo -m` prints: a matrix of the ways between GPUs and NICs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"
#include "topology/path.hpp"

namespace polyring {

/// Whether the text has the head of such a matrix.
bool is_topo_matrix(std::string_view text);

/// A machine whose paths are those of the matrix, with no more switches and packages than that takes.
///
/// - Devices that are nearer to each other than SYS share a package, and so do GPUs of one CPU affinity that
///   only NVLinks join, unless a SYS stands between them.
/// - More NVLinks in a row of equal numbers than any GPU has lead to an NVSwitch.
/// - The matrix counts NVLinks and does not say how fast they are. With the lines of `nvidia-smi -L` in the
///   same file, which name the GPUs, their bandwidth is that of gpu_links.hpp; else it is unknown. So is
///   that of PCIe, and what ports the NICs have.
/// - Matrices of `nvidia-smi topo -p2p` of the same GPUs, before or behind it, are read, too: what is not
///   OK in them is remarked, and no path is another for it.
///
/// Throws a usage Error, which names `origin`, for a matrix that is cut off or contradicts itself, and for
/// ways that nvidia-smi's legend does not have.
Machine parse_topo_matrix(std::string_view text, std::string_view origin);

namespace nvidia_smi {

/// One cell: a kind of path, and for NVLinks how many of them.
struct Cell {
  PathType type = PathType::self;
  int nvlinks = 0;
  bool operator==(const Cell&) const = default;
};

struct Device {
  std::string name;  // of its column: "GPU0", "mlx5_0"
  bool is_gpu = false;
  std::string model;          // of a GPU, where the file names it
  std::string cpu_affinity;   // "0-13,28-41", empty when not given
  int numa = -1;              // -1 when not given, or several
  bool has_own_numa = false;  // of a GPU: its memory is a NUMA node, as NVLink-C2C makes it
};

struct Matrix {
  std::vector<Device> devices;
  std::vector<std::vector<Cell>> cells;  // [row][column], symmetric
  bool has_peers = false;                // the file has the matrix of `topo -p2p`, too
  std::vector<std::string> remarks;      // on what that says

  const Cell& at(int a, int b) const {
    return cells[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }
  int size() const { return static_cast<int>(devices.size()); }
};

Matrix read_matrix(std::string_view text, std::string_view origin);

/// The machine without name and citations.
Machine machine_of(const Matrix& matrix);

/// Where it has no NVLinks, but its GPUs must have some, or the command line in the text leaves them out; and
/// where they may lead out of the host.
void note_absent_nvlinks(std::string_view text, Machine& machine);

}  // namespace nvidia_smi
}  // namespace polyring
