#include "bench/contenders/gpu_option.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/software_gpu.hpp"
#include "base/text.hpp"

namespace polyring {
namespace {

/// Throws a usage Error for anything but indices.
std::vector<int> parse_indices(const std::string& text) {
  std::vector<int> indices;
  if (text.empty()) return indices;
  for (const std::string& word : split(text, ',')) {
    int number = -1;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc{} || rest != end || number < 0)
      usage_error("'{}' is no list of GPUs; give their indices, as in 0,1,2,3", text);
    indices.push_back(number);
  }
  return indices;
}

[[noreturn]] void refuse(ExitCode code, const std::string& sentence) { throw AgreedError(code, sentence); }

/// What a process sees, in the words of its GPUs' number.
std::string sees(const RankGpus& rank) {
  return fmt::format("{} has {}", rank.host_name, counted(std::ssize(rank.ids), "GPU"));
}

void check_seen(const std::vector<RankGpus>& ranks, const std::vector<int>& wanted) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankGpus& of = ranks[rank];
    if (of.ids.empty())
      refuse(ExitCode::not_available, fmt::format("rank {} ({}): {}", rank, of.host_name, of.why_none));
    for (const int gpu : wanted) {
      if (index(gpu) < of.ids.size()) continue;
      refuse(ExitCode::usage,
             fmt::format("there is no GPU {} for rank {}: {}, from 0 on", gpu, rank, sees(of)));
    }
  }
}

/// The list goes as text: identities with a space behind each, or the reason.
std::string told(const RankGpus& own) {
  std::string text = own.ids.empty() ? "-" + own.why_none : "+";
  for (const std::string& id : own.ids) text += id + " ";
  return text;
}

}  // namespace

void GpuOptions::add_to(Subcommand command) {
  command
      .add_option("--device", device,
                  "Where the data are. cpu: in host memory; cuda: in GPU memory, with one GPU for each rank")
      .show_default()
      .names({"device", {"cpu", "cuda"}});
  command
      .add_option(
          "--gpus", gpus,
          "Which GPUs the ranks of each host take, one each in this order: 0,1,2,3, numbered as the rank "
          "sees them; without this option, all")
      .type_name("LIST");
  command.add_flag("--share-gpu", share,
                   "Let ranks share a GPU if a host has more ranks than GPUs; without, this is refused");
}

void GpuOptions::check() const {
  parse_indices(gpus);
  if (on_gpu()) need_gpu_plugin();
}

bool GpuOptions::is_software() const {
  return on_gpu() && is_software_gpu(need_gpu_plugin().gpus().front().name);
}

std::string GpuOptions::probe(Seconds limit) const { return on_gpu() ? probe_with_gpus(limit) : ""; }

void GpuOptions::describe(ResultFile& result, const std::optional<JobHosts>& hosts,
                          std::string_view timed) const {
  if (!on_gpu()) return;
  result.placement = hosts->placement;
  const GpuPlugin& plugin = need_gpu_plugin();
  result.versions["cuda"] = plugin.cuda_version();
  result.versions["gpu"] = plugin.gpus().front().name;
  if (is_software())
    result.notes.push_back(
        "These GPUs are software for tests: what they compute counts, and times say nothing.");
  result.notes.push_back(fmt::format("The data were on GPUs. {} There is no bound.", timed));
}

std::vector<int> assign_gpus(const std::vector<RankGpus>& ranks, const std::vector<int>& wanted, bool share) {
  check_seen(ranks, wanted);
  std::vector<int> assigned;
  std::map<std::pair<int, std::vector<std::string>>, std::size_t> before;  // ranks that see the same
  std::map<std::pair<int, std::string>, std::size_t> takers;               // by host and GPU: its rank
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankGpus& of = ranks[rank];
    const std::size_t choices = wanted.empty() ? of.ids.size() : wanted.size();
    const std::size_t turn = before[{of.host, of.ids}]++;
    const int gpu = wanted.empty() ? static_cast<int>(turn % choices) : wanted[turn % choices];
    const auto [taker, first] = takers.try_emplace({of.host, of.ids[index(gpu)]}, rank);
    if (!first && !share) {
      const auto on_host = std::ranges::count(ranks, of.host, &RankGpus::host);
      refuse(
          ExitCode::usage,
          fmt::format("ranks {} and {} would have one GPU: {}{} for {}; start fewer ranks on a host, or let "
                      "them share with --share-gpu",
                      taker->second, rank, sees(of),
                      wanted.empty() ? "" : fmt::format(", and --gpus names {}", wanted.size()),
                      counted(on_host, "rank")));
    }
    assigned.push_back(gpu);
  }
  return assigned;
}

GpuDevice choose_gpu(const World& world, GpuPlugin& plugin, const GpuOptions& options) {
  std::vector<GpuDevice> gpus;
  RankGpus own;
  try {
    gpus = plugin.gpus();
    for (const GpuDevice& gpu : gpus) own.ids.push_back(gpu.id);
  } catch (const Error& error) {
    own.why_none = error.what();
  }
  const std::string text = told(own);
  const auto all = world.allgather(std::as_bytes(std::span(text)));
  std::vector<RankGpus> ranks;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    const std::vector<std::byte>& bytes = all[index(rank)];
    const std::string_view said(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    RankGpus& of = ranks.emplace_back(RankGpus{world.host_number(rank), world.host(rank), {}, {}});
    if (said.front() == '-') of.why_none = said.substr(1);
    if (said.front() == '-') continue;
    for (std::string& id : split(said.substr(1), ' '))
      if (!id.empty()) of.ids.push_back(std::move(id));
  }
  const std::vector<int> assigned = assign_gpus(ranks, parse_indices(options.gpus), options.share);
  return gpus[index(assigned[index(world.rank())])];
}

std::optional<JobHosts> gpu_hosts(const World& world, const GpuOptions& options,
                                  const std::string& own_host) {
  if (!options.on_gpu()) return std::nullopt;
  return gpu_hosts(world, choose_gpu(world, need_gpu_plugin(), options).pci, own_host);
}

MemoryRoom memory_room(const World& world, const GpuOptions& options) {
  MemoryRoom room = memory_room();
  if (!options.on_gpu()) return room;
  GpuPlugin& plugin = need_gpu_plugin();
  const GpuDevice gpu = choose_gpu(world, plugin, options);
  room.gpu = plugin.free_memory(gpu.index);
  room.gpu_id = std::hash<std::string>()(gpu.id);
  return room;
}

}  // namespace polyring
