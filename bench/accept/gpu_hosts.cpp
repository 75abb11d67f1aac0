#include "bench/accept/gpu_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/printable.hpp"
#include "base/software_gpu.hpp"
#include "bench/accept/groups.hpp"
#include "topology/rank_gpus.hpp"

namespace polyring {

using nlohmann::json;

bool has_gpus(const Site& site) {
  return std::ranges::any_of(site.inventory.cluster.groups,
                             [](const HostGroup& group) { return !group.machine.gpus.empty(); });
}

std::string measure_own_gpus(const std::function<void(const OwnGpus&, json& answer)>& measure) {
  const LoadedGpuPlugin& loaded = gpu_plugin();
  if (loaded.plugin == nullptr) return json{{"why", loaded.why_not}}.dump();
  std::vector<GpuDevice> gpus;
  try {
    gpus = loaded.plugin->gpus();
  } catch (const Error& error) {
    if (error.code() != ExitCode::not_available) throw;
    return json{{"why", error.what()}}.dump();
  }
  const OwnGpus own{*loaded.plugin, gpus, is_software_gpu(gpus.front().name)};
  json answer{{"gpus", json::array()}, {"software", own.software}};
  for (const GpuDevice& gpu : gpus) answer["gpus"].push_back({{"pci", gpu.pci}, {"model", gpu.name}});
  measure(own, answer);
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

const Machine* GpuHosts::machine(std::size_t host) const {
  const Inventory& inventory = checking_.site.inventory;
  const int number = static_cast<int>(host);
  const bool known = inventory.unprobed.empty() && number < inventory.cluster.host_count();
  return known ? &inventory.cluster.host(number) : nullptr;
}

void GpuHosts::ask(const json& question,
                   const std::function<void(std::size_t host, const json& said)>& take) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<HostReply> replies = checking_.measurer.ask(std::string(check_), question.dump());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  seconds_ += took.count();
  if (hosts_.empty()) hosts_.resize(replies.size());
  for (std::size_t host = 0; host < replies.size(); ++host) {
    if (!replies[host].error.empty()) {
      hosts_[host].error = replies[host].error;
      continue;
    }
    const json said = replies[host].text.empty() ? json{{"why", "the host did not answer"}}
                                                 : json::parse(replies[host].text);
    if (!hosts_[host].answered) describe(host, said);
    if (hosts_[host].measured()) take(host, said);
  }
}

void GpuHosts::describe(std::size_t host, const json& said) {
  GpusOfHost& of = hosts_[host];
  of.answered = true;
  of.why = printable_line(said.value("why", ""));
  of.remedy = printable_line(said.value("remedy", ""));
  const Machine* const probed = machine(host);
  of.probed = probed != nullptr ? static_cast<int>(probed->gpus.size()) : 0;
  if (!of.why.empty()) return;
  of.software = said.at("software");
  for (const json& gpu : said.at("gpus")) {
    const std::string pci = gpu.at("pci");
    const std::optional<int> number = probed != nullptr ? gpu_at(*probed, pci) : std::nullopt;
    of.names.push_back(number ? probed->gpus[index(*number)].name : fmt::format("GPU {}", of.names.size()));
    of.models.push_back(printable_line(gpu.at("model").get<std::string>()));
    of.probed_as.push_back(number);
  }
}

CheckRow GpuHosts::row(std::size_t host) const { return row_of(checking_, check_, {static_cast<int>(host)}); }

std::vector<CheckRow> GpuHosts::rows_of_absent() const {
  constexpr std::string_view kDriver = "See what nvidia-smi says there.";
  std::vector<CheckRow> rows;
  const bool any = std::ranges::any_of(hosts_, [](const GpusOfHost& host) { return !host.names.empty(); });
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].error.empty()) continue;
    CheckRow& broken = rows.emplace_back(row(host));
    broken.verdict = Verdict::error;
    broken.why = fmt::format("Its GPUs could not be measured: {}.", hosts_[host].error);
    broken.remedy = "See dmesg and nvidia-smi there, and what gpu.health says.";
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const GpusOfHost& of = hosts_[host];
    if (!any || !of.error.empty() || of.why.empty()) continue;
    CheckRow& missing = rows.emplace_back(row(host));
    missing.verdict = Verdict::missing;
    missing.why = fmt::format("Its GPUs cannot be {}, and those of other hosts can: {}.",
                              of.remedy.empty() ? "used" : "measured", of.why);
    missing.remedy = of.remedy.empty() ? kDriver : of.remedy;
  }
  if (any || !rows.empty()) return rows;
  CheckRow& skipped = rows.emplace_back(row_of(checking_, check_, {}));
  skipped.subject.clear();
  skipped.verdict = Verdict::skipped;
  const auto lacking = std::ranges::find_if(hosts_, [](const GpusOfHost& of) { return !of.remedy.empty(); });
  if (lacking != hosts_.end()) {
    skipped.why = fmt::format("No GPU was measured: {}.", lacking->why);
    skipped.remedy = lacking->remedy;
  } else {
    skipped.why =
        fmt::format("CUDA has no GPU to use: {}.", hosts_.empty() ? "no host answered" : hosts_.front().why);
  }
  return rows;
}

void GpuHosts::share_time(std::vector<CheckRow>& rows, std::size_t first) const {
  for (std::size_t i = first; i < rows.size(); ++i)
    rows[i].seconds = seconds_ / static_cast<double>(hosts_.size() * (rows.size() - first));
}

CheckRow GpuHosts::row_of_software(std::size_t host, const std::string& what) const {
  CheckRow shown = row(host);
  shown.verdict = Verdict::shown;
  shown.source = Source::emulated;
  shown.why = fmt::format("{}. They are software for tests, and rates say nothing.", what);
  return shown;
}

void GpuHosts::add_unseen(std::size_t host, std::vector<CheckRow>& rows) const {
  const GpusOfHost& of = hosts_[host];
  const int seen = static_cast<int>(of.names.size());
  if (of.software || seen >= of.probed) return;
  CheckRow& skipped = rows.emplace_back(row(host));
  skipped.verdict = Verdict::skipped;
  skipped.why = fmt::format("The first rank there sees {} of its {} GPUs; the others were not measured.",
                            seen, of.probed);
  skipped.remedy = "Show it all GPUs (Slurm: --gpu-bind=none).";
}

}  // namespace polyring
