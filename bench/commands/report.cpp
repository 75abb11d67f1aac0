// polyring report: a page, tables and charts of result files.
#include "reports/report.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"

namespace polyring {
namespace {

struct ReportOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder = "report";
  bool overlay = false;
};

ExitCode report(const ReportOptions& options) {
  const Report written = write_report(options.files, options.folder, options.overlay);
  for (const std::string& warning : written.warnings) warn(warning);
  print_out("The report is in {}\n", written.first.string());
  return ExitCode::ok;
}

}  // namespace

void add_report(CommandLine& line) {
  auto options = std::make_shared<ReportOptions>();
  const Subcommand command = line.add_subcommand("report", "Make a page, tables and charts of result files",
                                                 "polyring report allreduce.json scale.json --out report",
                                                 [options] { return report(*options); });
  command
      .add_option(
          "files", options->files,
          "Results of accept, allreduce, train and scale, as -J writes them, and journals of runs that "
          "did not come to their end: NAME.part")
      .required()
      .type_name("FILE…");
  command.add_option("--out", options->folder, "The folder; an existing one is kept and .1, .2, … appended")
      .show_default()
      .type_name("DIR");
  command.add_flag(
      "--overlay", options->overlay,
      "Also draw all results in one chart: runs of one collective, type, operation and timing, or "
      "tables of scale over one baseline");
}

}  // namespace polyring
