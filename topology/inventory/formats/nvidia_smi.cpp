#include "topology/inventory/formats/nvidia_smi.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/formats/nvidia_smi_words.hpp"

namespace polyring {
namespace nvidia_smi {
namespace {

constexpr Bytes kLongest{1u << 20};
/// More than any host has, and few enough that all paths between them are found in no time.
constexpr std::size_t kMostDevices = 96;
constexpr std::size_t kLongestName = 100;

/// What a line says of a name in front of a colon: `NIC0: mlx5_0`, `GPU 0: Tesla V100-SXM2-16GB (UUID: ...)`.
struct Note {
  std::string name;
  std::string value;
};

std::optional<Note> note_of(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Note note;
  for (const std::string& word : words_of(line.substr(0, colon))) note.name += word;
  const std::string_view value = line.substr(colon + 1);
  for (const std::string& word : words_of(value.substr(0, value.find(" (UUID")))) {
    note.value += (note.value.empty() ? "" : " ") + word;
  }
  return note;
}

/// What a cell of `nvidia-smi topo -p2p` means, by its legend; empty for other words.
std::string_view peer_status(std::string_view word) {
  static const std::map<std::string_view, std::string_view> kStatus{{"OK", "OK"},
                                                                    {"CNS", "chipset not supported"},
                                                                    {"GNS", "GPU not supported"},
                                                                    {"TNS", "topology not supported"},
                                                                    {"NS", "not supported"},
                                                                    {"DR", "disabled by regkey"},
                                                                    {"U", "unknown"}};
  const auto known = kStatus.find(word);
  return known == kStatus.end() ? std::string_view{} : known->second;
}

/// A matrix of `nvidia-smi topo -p2p`.
struct Peers {
  std::string asked;               // "r", "w", ...; empty when the file has no command line
  std::vector<std::string> names;  // of the columns
  std::vector<Words> rows;         // empty ones have not been seen
};

/// What somebody should look at; empty when all pairs are OK. Asked for NVLink, only pairs that have some
/// count: `gpus` are the rows of the matrix of paths.
std::string remark_on(const Peers& peers, const Matrix& matrix, const std::vector<int>& gpus) {
  std::size_t pairs = 0;
  std::size_t faulty = 0;
  std::string first;
  for (std::size_t a = 0; a < peers.names.size(); ++a) {
    for (std::size_t b = a + 1; b < peers.names.size(); ++b) {
      if (peers.asked == "n" && matrix.at(gpus[a], gpus[b]).type != PathType::nvl) continue;
      ++pairs;
      const std::string& word = peers.rows[a][b] == "OK" ? peers.rows[b][a] : peers.rows[a][b];
      if (word == "OK" || ++faulty > 1) continue;
      first = fmt::format("{} and {}: {}", peers.names[a], peers.names[b], peer_status(word));
    }
  }
  if (faulty == 0) return {};
  const bool is_access = peers.asked == "r" || peers.asked == "w" || peers.asked == "rw";
  return fmt::format("nvidia-smi topo -p2p{}{}: {} of {} pairs of GPUs{} {} not OK ({}){}",
                     peers.asked.empty() ? "" : " ", peers.asked, faulty, pairs,
                     peers.asked == "n" ? " with NVLinks" : "", faulty == 1 ? "is" : "are", first,
                     is_access ? "; data between them go through the host's memory" : "");
}

/// Reads line after line.
class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  void read(const std::string& line) {
    const Words words = words_of(line);
    if (words.empty()) in_rows_ = false;
    if (words.empty() || words[0].starts_with('#')) return;
    if (under_head_ && (!column_of(words[0]) || is_second_head(words))) refuse_wrapped(words);
    if (columns_.empty() ? is_head(words) : is_second_head(words)) return read_head(words);
    const auto column = column_of(words[0]);
    if (column && (is_gpu(words[0]) || (words.size() > 1 && cell_of(words[1])))) {
      return read_row(*column, words);
    }
    if (in_rows_ && is_rest_of_row(words)) refuse_wrapped(words);
    if (!columns_.empty() && is_named_row(words)) refuse_nameless_row(words[0]);
    note_question(words);
    if (words[0] == "MIG" && line.find("UUID: MIG-") != std::string::npos) sliced_.insert(last_gpu_);
    if (auto note = note_of(line)) take_note(*note);
  }

  Matrix finish() {
    settle({});
    if (matrix_.devices.empty()) {
      refuse(peers_.empty() ? "has no line with the names of the columns, a GPU first"
                            : "has a matrix of topo -p2p, but none of paths");
    }
    for (std::size_t row = 0; row < matrix_.cells.size(); ++row) {
      if (matrix_.cells[row].empty())
        refuse(fmt::format("has no row for {}: it is cut off", matrix_.devices[row].name));
    }
    check_symmetry();
    add_peers();
    apply_notes();
    return std::move(matrix_);
  }

 private:
  /// What the cells under the last head are; one can tell by the first row at the latest.
  enum class Table { none, unknown, paths, peers };

  [[noreturn]] void refuse(const std::string& what) const {
    usage_error(
        "'{}' is no whole matrix of nvidia-smi: it {}; write it again with: nvidia-smi topo -m > FILE",
        origin_, what);
  }

  [[noreturn]] void refuse_wrapped(const Words& words) const {
    std::string start = words[0];
    for (std::size_t i = 1; i < words.size() && i < 3; ++i) start += " " + words[i];
    refuse(fmt::format("has lines that a terminal has wrapped, such as the one with '{}'",
                       printable_line(start, 40)));
  }

  /// Its column is in a line of its own, or its name is glued to another one.
  [[noreturn]] void refuse_nameless_row(const std::string& name) const {
    for (const Device& device : head_) {
      if (device.name.size() > name.size() && device.name.find(name) != std::string::npos)
        refuse(fmt::format("lacks a blank within the names of the columns, '{}'", device.name));
    }
    refuse(
        fmt::format("has a row {}, and no column of that name: the line with the names of the columns is "
                    "wrapped or cut off",
                    printable_line(name, 40)));
  }

  std::optional<std::size_t> column_of(const std::string& name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Other lines that begin with a GPU are rows; their first cell can be damaged, too.
  bool is_second_head(const Words& words) const {
    return is_gpu(words[0]) && words.size() > 1 &&
           (is_gpu(words[1]) || column_of(words[1]) || words[1] == "CPU" || words[1] == "NUMA");
  }

  /// The command line, where the file has it: `$ nvidia-smi topo -p2p r`.
  void note_question(const Words& words) {
    const auto option = std::ranges::find(words, "-p2p");
    if (option != words.end() && option + 1 != words.end() && (option + 1)->size() <= 2)
      asked_ = *(option + 1);
  }

  void read_head(const Words& words) {
    settle({});
    columns_.clear();
    head_.clear();
    has_cpu_ = has_numa_ = has_gpu_numa_ = false;
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA" || word == "GPU") {
        has_gpu_numa_ = words.size() > 2 && words.back() == "ID" && words[words.size() - 2] == "NUMA";
        has_numa_ = std::ranges::find(words, "NUMA") != words.end();
        has_cpu_ = word == "CPU";
        break;
      }
      if (word.size() > kLongestName) refuse(fmt::format("has a column name of {} characters", word.size()));
      if (!columns_.emplace(word, columns_.size()).second) refuse(fmt::format("has two columns {}", word));
      if (columns_.size() > kMostDevices) refuse(fmt::format("has more than {} devices", kMostDevices));
      head_.push_back({word, is_gpu(word), {}, {}, -1});
    }
    under_head_ = true;
    table_ = Table::unknown;
    if (has_cpu_ || has_numa_) settle({});
  }

  /// Finds out what the table is, if that is not known yet, by its first row.
  void settle(const Words& first_row) {
    if (table_ != Table::unknown) return;
    const bool is_peers =
        std::ranges::any_of(first_row, [](const std::string& word) { return !peer_status(word).empty(); });
    if (is_peers) {
      constexpr std::size_t kMostTables = 16;
      if (peers_.size() == kMostTables) refuse(fmt::format("has more than {} of topo -p2p", kMostTables));
      table_ = Table::peers;
      peers_.push_back({asked_, {}, std::vector<Words>(head_.size())});
      for (const Device& device : head_) peers_.back().names.push_back(device.name);
      return;
    }
    if (!matrix_.devices.empty()) {
      usage_error(
          "'{}' has a second matrix of nvidia-smi behind the first, of another host or of topo -mp; give "
          "each host a file of its own, with the matrix of: nvidia-smi topo -m",
          origin_);
    }
    table_ = Table::paths;
    matrix_.devices = head_;
    matrix_.cells.resize(head_.size());
  }

  void read_row(std::size_t row, const Words& words) {
    settle(words);
    under_head_ = false;
    in_rows_ = true;
    const std::string& name = head_[row].name;
    const std::size_t count = head_.size();
    const bool is_twice =
        table_ == Table::paths ? !matrix_.cells[row].empty() : !peers_.back().rows[row].empty();
    if (is_twice) refuse(fmt::format("has two rows {}", name));
    if (words.size() < count + 1)
      refuse(fmt::format("has {} cells in the row {}, not {}", words.size() - 1, name, count));
    for (std::size_t column = 0; column < count; ++column) {
      const std::string& word = words[column + 1];
      const auto cell = cell_of(word);
      const bool is_self = cell && cell->type == PathType::self;
      const bool is_known =
          is_self || (table_ == Table::paths ? cell.has_value() : !peer_status(word).empty());
      if (!is_known) {
        if (table_ == Table::paths && is_glued(word))
          refuse(fmt::format("lacks a blank within '{}' in the row {}", printable_line(word, 20), name));
        refuse(fmt::format("says '{}' of {} and {}, which its legend does not know", printable_line(word, 20),
                           name, head_[column].name));
      }
      if (is_self != (column == row))
        refuse(fmt::format("says '{}' of {} and {}", word, name, head_[column].name));
      if (table_ == Table::paths) {
        matrix_.cells[row].push_back(*cell);
      } else {
        peers_.back().rows[row].push_back(word);
      }
    }
    if (table_ == Table::paths) read_affinity(matrix_.devices[row], words, count + 1);
  }

  void read_affinity(Device& device, const Words& words, std::size_t at) const {
    if (has_cpu_ && at < words.size() && words[at] != "N/A") {
      if (cell_of(words[at])) {
        refuse(fmt::format(
            "has more cells in the row {} than columns: blanks between the names of the columns are "
            "missing, or one is no GPU and no NIC",
            device.name));
      }
      if (!is_cpu_list(words[at])) {
        refuse(
            fmt::format("says '{}' where the CPUs near {} stand; is a column's name or a line's end missing?",
                        printable_line(words[at], 20), device.name));
      }
      device.cpu_affinity = words[at];
    }
    if (has_cpu_) ++at;
    // GB200's have those of their own memory, too, "0,3-9": the first is the CPU's.
    if (has_numa_ && at < words.size())
      device.numa = number_in(words[at].substr(0, words[at].find_first_of(",-"))).value_or(-1);
    if (has_gpu_numa_ && has_numa_ && device.is_gpu && words.size() == at + 2)
      device.has_own_numa = number_in(words[at + 1]).has_value();
  }

  void check_symmetry() const {
    for (int a = 0; a < matrix_.size(); ++a) {
      for (int b = 0; b < a; ++b) {
        if (matrix_.at(a, b) == matrix_.at(b, a)) continue;
        const auto name = [&](int device) { return matrix_.devices[static_cast<std::size_t>(device)].name; };
        refuse(fmt::format("says one thing of {} and {} and another of {} and {}", name(a), name(b), name(b),
                           name(a)));
      }
    }
  }

  void add_peers() {
    Words gpus;
    std::vector<int> rows;
    for (int device = 0; device < matrix_.size(); ++device) {
      const Device& of = matrix_.devices[static_cast<std::size_t>(device)];
      if (!of.is_gpu) continue;
      gpus.push_back(of.name);
      rows.push_back(device);
    }
    for (const Peers& peers : peers_) {
      const auto missing = std::ranges::find_if(peers.rows, &Words::empty);
      if (missing != peers.rows.end())
        refuse(fmt::format("has no row for {} in the matrix of topo -p2p: it is cut off",
                           peers.names[static_cast<std::size_t>(missing - peers.rows.begin())]));
      if (peers.names != gpus) refuse("has a matrix of topo -p2p of other GPUs than that of paths");
      matrix_.has_peers = true;
      std::string remark = remark_on(peers, matrix_, rows);
      if (!remark.empty()) matrix_.remarks.push_back(std::move(remark));
    }
  }

  /// Also of "GPU 0,1,2,3: NVIDIA GB200", as some programs sum up nvidia-smi -L.
  void take_note(const Note& note) {
    std::vector<std::string> names{note.name};
    if (note.name.starts_with("GPU")) {
      names = {"GPU"};
      for (const char c : note.name.substr(3)) {
        if (c == ',') {
          names.emplace_back("GPU");
        } else {
          names.back() += c;
        }
      }
      if (!std::ranges::all_of(names, is_gpu)) return;
      last_gpu_ = names.back();
    }
    for (const std::string& name : names) notes_[name] = note.value;
  }

  void remark_slices() {
    Words cut;
    for (const Device& device : matrix_.devices) {
      if (device.is_gpu && sliced_.contains(device.name)) cut.push_back("gpu" + device.name.substr(3));
    }
    if (cut.empty()) return;
    matrix_.remarks.push_back(fmt::format(
        "{} {} in MIG mode, as nvidia-smi -L says: jobs get slices, which reach no other GPU; links, paths "
        "and what is expected are of whole GPUs, which nvidia-smi -mig 0 (as root) makes of them",
        fmt::join(cut, ", "), cut.size() == 1 ? "is" : "are"));
  }

  void apply_notes() {
    remark_slices();
    for (Device& device : matrix_.devices) {
      const auto note = notes_.find(device.name);
      if (note == notes_.end() || note->second.empty()) continue;
      (device.is_gpu ? device.model : device.name) = note->second.substr(0, kLongestName);
    }
  }

  std::string origin_;
  Matrix matrix_;
  std::vector<Peers> peers_;
  std::map<std::string, std::string> notes_;
  std::string asked_;
  std::string last_gpu_;          // that a line of nvidia-smi -L has named
  std::set<std::string> sliced_;  // GPUs with MIG devices

  // Of the last head.
  Table table_ = Table::none;
  std::vector<Device> head_;
  std::map<std::string, std::size_t> columns_;
  bool has_cpu_ = false;
  bool has_numa_ = false;
  bool has_gpu_numa_ = false;
  bool under_head_ = false;  // no row has come yet
  bool in_rows_ = false;     // no blank line has come since the last row
};

}  // namespace

Matrix read_matrix(std::string_view text, std::string_view origin) {
  if (text.size() > kLongest.value) {
    usage_error("'{}' has {} bytes, more than the {} that a matrix of nvidia-smi can have; give another file",
                origin, text.size(), to_text(kLongest));
  }
  Reader reader(origin);
  for (const std::string& line : lines_of(text)) reader.read(line);
  return reader.finish();
}

}  // namespace nvidia_smi

bool is_topo_matrix(std::string_view text) {
  constexpr std::size_t kFarEnough = 1u << 16;  // a matrix may follow other output
  for (const std::string& line : nvidia_smi::lines_of(text.substr(0, kFarEnough))) {
    if (nvidia_smi::is_head(nvidia_smi::words_of(line))) return true;
  }
  return false;
}

Machine parse_topo_matrix(std::string_view text, std::string_view origin) {
  const nvidia_smi::Matrix matrix = nvidia_smi::read_matrix(text, origin);
  Machine machine = nvidia_smi::machine_of(matrix);
  const std::filesystem::path path{std::string(origin)};
  machine.name = path.stem().string();
  nvidia_smi::note_absent_nvlinks(text, machine);
  machine.remarks.insert(machine.remarks.end(), matrix.remarks.begin(), matrix.remarks.end());
  const std::string source = fmt::format("nvidia-smi topo -m '{}'", path.filename().string());
  machine.citations.push_back({"GPUs, NICs, the kinds of paths between them, numbers of NVLinks", source});
  if (matrix.has_peers) {
    machine.citations.push_back(
        {"which GPUs reach each other", fmt::format("nvidia-smi topo -p2p '{}'", path.filename().string())});
  }
  machine.citations.push_back({"packages and PCIe switches: as few as these paths need", "deduced"});
  for (const nvidia_smi::Device& device : matrix.devices) {
    const GpuLinkRate rate = nvlink_rate(compute_capability_of(device.model));
    if (!rate.bandwidth.known()) continue;
    machine.citations.push_back({"bandwidth of one NVLink", std::string(rate.source)});
    break;
  }
  machine.validate();
  return machine;
}

}  // namespace polyring
