#include "reports/compare_charts.hpp"

#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/drawing.hpp"
#include "reports/result_text.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

/// "A before": the letter, and as much of the file's name as a legend has room for.
std::string legend_name(const ComparedRun& run, std::size_t copy) {
  constexpr std::size_t kLongest = 24;
  std::string name;
  for (const char c : fs::path(run.name).stem().string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  const std::string number = copy > 0 ? fmt::format(" {}", copy + 1) : "";
  return fmt::format("{} {}{}", run.label, name.substr(0, kLongest), number);
}

using JudgedRows = std::map<const CollectiveRow*, const Judgement*>;

JudgedRows judged_rows(const Comparison& comparison) {
  JudgedRows found;
  for (const ComparedTable& table : comparison.tables)
    for (const ComparedLine& line : table.lines)
      for (const ComparedCell& cell : line.cells)
        if (cell.row != nullptr && cell.judged) found[cell.row] = &*cell.judged;
  return found;
}

/// As the charts take it: with what the machine should give. The type of what is only moved is no reason for
/// a chart of its own.
ResultFile drawn(const ResultFile& result, const JudgedRows& judged) {
  ResultFile copy = result;
  const std::vector<CollectiveRow>& originals = collective_rows(result);
  auto& rows = std::get<std::vector<CollectiveRow>>(copy.rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CollectiveRow& row = rows[i];
    if (!reduces(result.collective)) {
      row.dtype = "any type";
      row.op = "none";
    }
    const auto at = judged.find(&originals[i]);
    if (at == judged.end()) continue;
    const Judgement& judgement = *at->second;
    if (judgement.bound_fraction) row.bound_us = *judgement.bound_fraction * row.time_us.median;
    if (judgement.expected_GBps)
      set_expected(row, judgement.expected_GBps->first, judgement.expected_GBps->second);
  }
  return copy;
}

std::vector<std::string> write_inputs(std::span<const ComparedRun> runs, std::string_view collective,
                                      const JudgedRows& judged, const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<std::string> paths;
  for (const ComparedRun& run : runs) {
    std::size_t copy = 0;
    for (const ResultFile& result : run.results) {
      if (result.collective != collective) continue;
      const fs::path path = folder / (legend_name(run, copy++) + ".json");
      write_file(path, result_text(drawn(result, judged)));
      paths.push_back(path.string());
    }
  }
  return paths;
}

/// Thrown through create_folder(), which then leaves nothing behind.
struct NotDrawn {
  std::string why;
};

}  // namespace

ComparedCharts draw_comparison(std::span<const ComparedRun> runs, const Comparison& comparison,
                               const fs::path& folder) {
  std::set<std::string> collectives;
  for (const ComparedTable& table : comparison.tables) collectives.insert(table.collective);
  const JudgedRows judged = judged_rows(comparison);
  const auto fill = [&](const fs::path& inside) {
    for (const std::string& collective : collectives) {
      const fs::path inputs = inside / ("of-" + collective);
      const std::vector<std::string> paths = write_inputs(runs, collective, judged, inputs);
      if (paths.size() > 1 || runs.size() == 1) {
        std::vector<std::string> arguments{"--compare", collective, "--out", inside.string()};
        arguments.insert(arguments.end(), paths.begin(), paths.end());
        const Drawing drawing = run_drawing("plot.py", arguments);
        if (drawing.code == ExitCode::usage) usage_error("{}", drawing.failure);
        if (drawing.code != ExitCode::ok) throw NotDrawn{drawing.failure};
      }
      fs::remove_all(inputs);
    }
  };
  try {
    return {create_folder(folder, fill), ""};
  } catch (const NotDrawn& reason) {
    return {{}, reason.why};
  }
}

}  // namespace polyring
