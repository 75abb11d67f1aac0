// polyring calibrate: what the links of a cluster do, from allreduces that were measured on it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/files.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/calibration_points.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/record/result_file.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

struct CalibrateOptions {
  std::vector<std::string> runs;
  std::vector<std::string> checks;
  std::string output;
  bool points = false;
};

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string with_error(const std::string& value, const std::optional<double>& error) {
  return error ? fmt::format("{} ± {}", value, percent(*error)) : value + ", not told by these runs";
}

struct Runs {
  std::vector<ResultFile> files;
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredPoint> points;  // of all
};

Runs read_runs(const std::vector<std::string>& paths) {
  Runs all;
  for (const std::string& path : paths) {
    all.files.push_back(read_result(path));
    all.runs.push_back(measured_run(path, all.files.back()));
    const std::vector<MeasuredPoint>& points = all.runs.back().points;
    all.points.insert(all.points.end(), points.begin(), points.end());
  }
  return all;
}

/// Where the data of all runs were.
DataDevice device_of(const Runs& fitted, const Runs& checked) {
  const MeasuredRun& first = fitted.runs.front();
  for (const Runs* runs : {&fitted, &checked}) {
    for (const MeasuredRun& run : runs->runs) {
      if (run.device == first.device) continue;
      const MeasuredRun& gpus = run.device == DataDevice::cuda ? run : first;
      const MeasuredRun& host = run.device == DataDevice::cuda ? first : run;
      usage_error(
          "the data of '{}' were on GPUs and those of '{}' in host memory, so they crossed different "
          "links; calibrate each by itself",
          gpus.file, host.file);
    }
  }
  return first.device;
}

/// A run that is given twice would be told as its own check.
void refuse_the_same(const Runs& fitted, const Runs& checked) {
  for (std::size_t i = 0; i < fitted.files.size(); ++i) {
    for (std::size_t j = 0; j < checked.files.size(); ++j) {
      if (fitted.files[i] == checked.files[j]) {
        usage_error("'{}' is fitted to and '{}' checked on, but they are the same run; check on another",
                    fitted.runs[i].file, checked.runs[j].file);
      }
    }
  }
}

Table links_table(const Calibration& calibration) {
  Table table({{"", "link", "", Align::left},
               {"", "latency", "", Align::left},
               {"", "bandwidth for payload", "", Align::left}});
  for (const LinkFit& fit : calibration.links) {
    const std::string bandwidth = fit.bandwidth.known()
                                      ? to_text(fit.bandwidth)
                                      : fmt::format("{} of what is stated", percent(fit.share));
    table.add_row({std::string(to_text(fit.link)), with_error(to_text(fit.latency), fit.latency_error),
                   with_error(bandwidth, fit.bandwidth_error)});
  }
  return table;
}

/// The same for programs.
Table links_csv(const Calibration& calibration) {
  Table table({{"", "link", "", Align::left},
               {"", "latency", "us"},
               {"", "latency error", "%"},
               {"", "bandwidth", "GB/s"},
               {"", "share of stated", "%"},
               {"", "bandwidth error", "%"}});
  const auto plain = [](double value) { return fmt::format("{}", value); };
  const auto of_hundred = [&](std::optional<double> part) { return part ? plain(100 * *part) : ""; };
  for (const LinkFit& fit : calibration.links) {
    const bool known = fit.bandwidth.known();
    table.add_row({std::string(to_text(fit.link)), plain(fit.latency.value * 1e6),
                   of_hundred(fit.latency_error), known ? plain(fit.bandwidth.gigabytes_per_second()) : "",
                   known ? "" : of_hundred(fit.share), of_hundred(fit.bandwidth_error)});
  }
  return table;
}

void add_errors(Table& table, const std::string& role, const Runs& runs, const Calibration& calibration) {
  for (const MeasuredRun& run : runs.runs) {
    std::vector<double> predicted;
    std::vector<double> measured;
    std::size_t worst = 0;
    const auto off = [&](std::size_t i) { return std::abs(predicted[i] / measured[i] - 1); };
    for (std::size_t i = 0; i < run.points.size(); ++i) {
      predicted.push_back(predict(run.points[i], calibration).value);
      measured.push_back(run.points[i].time.value);
      if (off(i) > off(worst)) worst = i;
    }
    const PredictionError error = prediction_error(predicted, measured);
    table.add_row({role, run.file, run.where, std::string(to_text(run.source)),
                   fmt::format("{}", error.points), percent(error.mean),
                   fmt::format("{:+.1f} %", 100 * (predicted[worst] / measured[worst] - 1)),
                   run.points[worst].name});
  }
}

Table points_table(const std::vector<const Runs*>& all, const Calibration& calibration) {
  Table table({{"", "run", "", Align::left},
               {"", "allreduce", "", Align::left},
               {"", "measured", "us"},
               {"", "predicted", "us"},
               {"", "off", "%"}});
  for (const Runs* runs : all) {
    for (const MeasuredRun& run : runs->runs) {
      table.add_gap();
      for (const MeasuredPoint& point : run.points) {
        const double predicted = predict(point, calibration).value;
        const double off = 100 * (predicted / point.time.value - 1);
        const bool exact = format() == Format::csv;
        const auto us = [&](double seconds) {
          return exact ? fmt::format("{}", seconds * 1e6) : fmt::format("{:.1f}", seconds * 1e6);
        };
        table.add_row({run.where, point.name, us(point.time.value), us(predicted),
                       exact ? fmt::format("{}", off) : fmt::format("{:+.1f}", off)});
      }
    }
  }
  return table;
}

std::vector<std::string> names_of(const Runs& runs) {
  std::vector<std::string> names;
  for (const MeasuredRun& run : runs.runs) names.push_back(fmt::format("{}: {}", run.file, run.where));
  return names;
}

ExitCode calibrate_from(const CalibrateOptions& options, const std::string& command) {
  if (options.runs.empty()) usage_error("calibrate needs results of polyring allreduce: give their files");
  check_output(options.output);
  const Runs fitted = read_runs(options.runs);
  const Runs checked = read_runs(options.checks);
  refuse_the_same(fitted, checked);

  CalibrationRecord record;
  record.created = iso_time_now();
  record.command = command;
  record.device = device_of(fitted, checked);
  record.fitted_to = names_of(fitted);
  record.checked_on = names_of(checked);
  for (const Runs* runs : {&fitted, &checked})
    for (const MeasuredRun& run : runs->runs)
      if (run.source == Source::emulated) record.source = Source::emulated;
  record.calibration = with_check(calibrate(fitted.points), checked.points);

  Table errors({{"", "", "", Align::left},
                {"", "run", "", Align::left},
                {"", "ranks", "", Align::left},
                {"", "source", "", Align::left},
                {"", "times", ""},
                {"error", "mean", ""},
                {"error", "worst", ""},
                {"", "at", "", Align::left}});
  add_errors(errors, "fitted", fitted, record.calibration);
  add_errors(errors, "checked", checked, record.calibration);
  const Table links = links_table(record.calibration);
  const Table points = points_table({&fitted, &checked}, record.calibration);
  if (format() == Format::csv) {
    print_table(options.points ? points : links_csv(record.calibration));
  } else if (format() != Format::json) {
    print_out("{}\n", shown(links));
  }
  print_remark(shown(errors) + "\n");
  if (options.points && format() != Format::csv) print_remark(shown(points) + "\n");
  print_remark(note_of(record) + "\n");
  const std::string text = calibration_text(record);
  if (format() == Format::json && options.output != kStandardOutput) print_result(text);
  if (!options.output.empty())
    print_remark(fmt::format("\nWritten to {}\n", write_output(options.output, text)));
  return ExitCode::ok;
}

}  // namespace

void add_calibrate(CommandLine& line) {
  auto options = std::make_shared<CalibrateOptions>();
  const Subcommand command = line.add_subcommand(
      "calibrate", "Fit latency and bandwidth of the links to measured allreduces, for plan and scale",
      "polyring calibrate 2hosts.json 4hosts.json --check 8hosts.json -J calibration.json\n"
      "  polyring scale --machine minsky --calibration calibration.json",
      [options, &line] { return calibrate_from(*options, line.text()); });
  command
      .add_option("RUNS", options->runs,
                  "Results of polyring allreduce (-J), of several sizes and algorithms")
      .type_name("FILE");
  command
      .add_option("--check", options->checks,
                  "Other results, which it is not fitted to: the error of its predictions is said and kept")
      .type_name("FILE");
  command.add_flag("--points", options->points, "Also each time, measured and predicted");
  add_output_option(command, options->output, "the calibration");
}

}  // namespace polyring
