// polyring: parses the command line, runs one subcommand, and turns what goes wrong into one sentence and an
// exit code.
#include <fmt/format.h>

#include <exception>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/cli/inherited.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/contenders/gloo.hpp"
#include "bench/contenders/mpi.hpp"
#include "bench/record/record.hpp"
#include "bench/record/result_file.hpp"
#include "bench/record/version.hpp"
#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/kernels.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {
namespace {

int report(ExitCode code, std::string_view sentence) {
  // A mistake on the command line is the same on every rank, and what this build lacks too: rank 0 says so,
  // and its exit code is the job's. Were another rank to fail before that, mpirun would end the job while
  // rank 0 is still silent.
  const bool same = code == ExitCode::usage || code == ExitCode::not_available;
  if (same && launched_rank() != 0) return 0;
  warn(sentence);
  return static_cast<int>(code);
}

/// An empty word is a shell variable without a value, and would mean the default without saying so.
void refuse_empty_words(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).empty())
      usage_error("word {} of the command line is empty; give it a value, or leave its option out", i);
  }
}

/// Whether the plug-in is loaded, and whether it finds GPUs.
std::string cuda_text() {
  const LoadedGpuPlugin& loaded = gpu_plugin();
  if (loaded.plugin == nullptr) return "none: " + loaded.why_not;
  try {
    const std::vector<GpuDevice> gpus = loaded.plugin->gpus();
    return fmt::format("{}, {}: {}", loaded.plugin->cuda_version(), counted(std::ssize(gpus), "GPU"),
                       gpus.front().name);
  } catch (const Error& error) {
    return fmt::format("{}, loaded from {}; {}", loaded.plugin->cuda_version(), loaded.path, error.what());
  }
}

std::string nccl_text() {
  if (gpu_plugin().plugin == nullptr) return "none: the CUDA plug-in would load it";
  const GpuPlugin::Nccl nccl = gpu_plugin().plugin->nccl();
  return nccl.version.empty() ? "none: " + nccl.why_not : nccl.version;
}

/// The version, and what there is of what it can use.
std::string version_text() {
  return fmt::format(
      "polyring {} ({})\n"
      "  compiler  {}\n"
      "  build     {}, sanitizers: {}\n"
      "  MPI       {}, built with {}\n"
      "  Gloo      {}\n"
      "  hwloc     interface {}, built with {}\n"
      "  vectors   {}, the widest that this processor has a kernel for\n"
      "  CUDA      {}\n"
      "  NCCL      {}",
      version(), commit(), compiler(), build_type(), sanitizers().empty() ? "none" : sanitizers(),
      MpiWorld::library(), MpiWorld::built_with(), has_gloo() ? gloo_version() : "none in this build",
      hwloc_version(), hwloc_built_with(), to_text(best_isa()), cuda_text(), nccl_text());
}

ExitCode run(int argc, char** argv) {
  CommandLine line("Polyring measures how well GPU clusters scale.", version_text,
                   "polyring SUBCOMMAND --help has the options and an example of each.",
                   command_line(argc, argv));
  add_probe(line);
  add_plan(line);
  add_verify(line);
  add_collectives(line);
  add_train(line);
  add_scale(line);
  add_tune(line);
  add_calibrate(line);
  add_accept(line);
  add_compare(line);
  add_report(line);
  add_launch(line);
  add_completion(line);
  refuse_empty_words(argc, argv);
  if (const auto help = line.parse(argc, argv)) {
    if (launched_rank() == 0) print_out(*help);
    return ExitCode::ok;
  }
  if (!line.action()) {
    if (launched_rank() == 0) print_err(line.help());
    return ExitCode::usage;
  }
  if (!line.collective() && launched_rank() != 0) return ExitCode::ok;
  begin_output(line.given("--output_file", std::string(kStandardOutput)));
  if (line.collective()) MpiAlgorithms::allow();
  return line.action()();
}

}  // namespace
}  // namespace polyring

int main(int argc, char** argv) {
  polyring::settle_inherited_state();
  try {
    return static_cast<int>(polyring::finish_output(polyring::run(argc, argv)));
  } catch (const polyring::Error& error) {
    return polyring::report(error.code(), error.what());
  } catch (const std::exception& error) {
    return polyring::report(polyring::ExitCode::internal, fmt::format("internal error: {}", error.what()));
  }
}
