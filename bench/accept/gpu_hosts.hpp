// GPUs of all hosts, for checks in which each host measures its own: how a host answers, and what rank 0
// makes of hosts that have measured nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/accept/check.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {

/// Whether a probe found any.
bool has_gpus(const Site& site);

/// Those that this process can use.
struct OwnGpus {
  GpuPlugin& plugin;
  std::vector<GpuDevice> gpus;
  bool software = false;  // for tests: their rates say nothing
};

/// On a host: the answer of a check, to which `measure` adds what it measured. Without CUDA or a GPU the
/// answer says why. `measure` may add "why", half a sentence, and "remedy", a whole one, where something else
/// is lacking.
std::string measure_own_gpus(const std::function<void(const OwnGpus&, nlohmann::json& answer)>& measure);

/// What a host said of its GPUs, in the order of CUDA's indices.
struct GpusOfHost {
  bool answered = false;
  std::string why{};     // nothing was measured
  std::string remedy{};  // of that; empty: it has no GPU that can be used
  std::string error{};   // a measurement broke
  bool software = false;
  std::vector<std::string> names{};
  std::vector<std::string> models{};
  std::vector<std::optional<int>> probed_as{};  // which of the machine's GPUs
  int probed = 0;                               // GPUs that the probe found

  bool measured() const { return answered && why.empty() && error.empty(); }
};

class GpuHosts {
 public:
  /// Of a check of this name. Keeps the references.
  GpuHosts(const Checking& checking, std::string_view check) : checking_(checking), check_(check) {}

  /// Asks all hosts; `take` gets what those said that have measured.
  void ask(const nlohmann::json& question,
           const std::function<void(std::size_t host, const nlohmann::json& said)>& take);

  std::size_t size() const { return hosts_.size(); }
  const GpusOfHost& operator[](std::size_t host) const { return hosts_[host]; }
  /// As probed; null: unknown.
  const Machine* machine(std::size_t host) const;

  /// A row about a host, without a verdict.
  CheckRow row(std::size_t host) const;
  /// Of hosts that have measured nothing; where none has, why not.
  std::vector<CheckRow> rows_of_absent() const;
  /// Shares the time of all questions among the rows of a host from this one on.
  void share_time(std::vector<CheckRow>& rows, std::size_t first) const;
  /// That its GPUs are software, whose rates say nothing; `what` they did, half a sentence.
  CheckRow row_of_software(std::size_t host, const std::string& what) const;
  /// Says that the rank that measured does not see all GPUs of the host, if that is so.
  void add_unseen(std::size_t host, std::vector<CheckRow>& rows) const;

 private:
  void describe(std::size_t host, const nlohmann::json& said);

  const Checking& checking_;
  std::string_view check_;
  std::vector<GpusOfHost> hosts_;
  double seconds_ = 0;
};

}  // namespace polyring
