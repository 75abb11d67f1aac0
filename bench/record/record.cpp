#include "bench/record/record.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/result_file.hpp"
#include "bench/record/version.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "reports/environment.hpp"
#include "reports/result_text.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {

std::vector<RankHost> placement_of(const World& world) {
  std::vector<RankHost> placement;
  for (Rank rank = 0; rank < world.size(); ++rank) placement.push_back({rank, world.host(rank)});
  return placement;
}

ResultFile describe_run(const std::string& command, const Cluster* cluster, const World* world) {
  ResultFile result;
  result.created = iso_time_now();
  result.command = command;
  result.polyring_version = version();
  result.commit = commit();
  result.environment = recorded_environment();
  result.versions = {{"compiler", std::string(compiler())}};
  if (cluster != nullptr) result.machine = probe_json(*cluster);
  if (world == nullptr) return result;
  if (const auto note = emulation_note()) result.notes.push_back(*note);
  if (as_mpi_world(*world) != nullptr) {
    result.versions["mpi"] = MpiWorld::library();
  } else {
    result.notes.push_back(fmt::format("The ranks were {}, without MPI.", world->kind()));
  }
  result.placement = placement_of(*world);
  return result;
}

void save(const std::string& path, const ResultFile& result) {
  if (format() == Format::json && path != kStandardOutput) print_result(result_text(result));
  if (!path.empty()) print_remark(fmt::format("\nWritten to {}\n", write_output(path, result)));
}

std::string command_line(int argc, const char* const* argv) {
  // Without the folder of the program, which says nothing about the run.
  std::string line = "polyring";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool quote = word.empty() || word.find_first_of(" \t\"'$`\\*?;&|<>()") != std::string_view::npos;
    line += quote ? fmt::format(" '{}'", word) : fmt::format(" {}", word);
  }
  return line;
}

}  // namespace polyring
