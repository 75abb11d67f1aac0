#include "reports/compare_charts.hpp"

#include <cctype>
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

/// As the charts take it. The type of what is only moved is no reason for a chart of its own.
ResultFile drawn(ResultFile result) {
  if (reduces(result.collective)) return result;
  for (CollectiveRow& row : std::get<std::vector<CollectiveRow>>(result.rows)) {
    row.dtype = "any type";
    row.op = "none";
  }
  return result;
}

std::vector<std::string> write_inputs(std::span<const ComparedRun> runs, std::string_view collective,
                                      const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<std::string> paths;
  for (const ComparedRun& run : runs) {
    std::size_t copy = 0;
    for (const ResultFile& result : run.results) {
      if (result.collective != collective) continue;
      const fs::path path = folder / (legend_name(run, copy++) + ".json");
      write_file(path, result_text(drawn(result)));
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
  const auto fill = [&](const fs::path& inside) {
    for (const std::string& collective : collectives) {
      const fs::path inputs = inside / ("of-" + collective);
      const std::vector<std::string> paths = write_inputs(runs, collective, inputs);
      if (paths.size() > 1) {
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
