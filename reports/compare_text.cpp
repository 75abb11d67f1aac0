#include "reports/compare_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/not_comparable.hpp"
#include "reports/table_cells.hpp"

namespace polyring {
namespace {

std::string of_all_results(const ComparedRun& run, const auto& text_of) {
  std::vector<std::string> texts;
  for (const ResultFile& result : run.results) {
    std::string text = text_of(result);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "8 ranks on 2 hosts"; without hosts where a log does not name them.
std::string ranks_text(const ResultFile& result) {
  const CollectiveRow& row = collective_rows(result).front();
  std::string text = counted(row.ranks, "rank");
  if (!result.placement.empty()) text += " on " + counted(row.nodes, "host");
  return text;
}

/// "2025-03-01 12:34"; empty for a log: only its import has a date.
std::string date_text(const ResultFile& result) {
  if (collective_rows(result).front().source == Source::imported) return "";
  std::string date = result.created.substr(0, 16);
  std::ranges::replace(date, 'T', ' ');
  return printable_line(date);
}

/// What an algorithm cell has: the contender, or which is the fastest of each run.
std::string contender_text(const ComparedLine& line, std::span<const ComparedRun> runs) {
  if (!line.contender.empty()) return line.contender;
  std::set<std::string> names;
  std::vector<std::string> of_runs;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const CollectiveRow* const row = line.cells[run].row;
    if (row == nullptr) continue;
    names.insert(row->algorithm);
    of_runs.push_back(fmt::format("{} {}", runs[run].label, row->algorithm));
  }
  return names.size() == 1 ? "best: " + *names.begin() : fmt::format("best: {}", fmt::join(of_runs, ", "));
}

/// As 0.934, 1.070, 0.00123.
std::string ratio_text(double ratio) {
  if (ratio < 0.1) return fmt::format("{:.2g}", ratio);
  return fmt::format("{:.{}f}", ratio, ratio < 10 ? 3 : 1);
}

bool has_interval(const ComparedCell& cell) { return cell.ratio && cell.ratio->coverage > 0; }

std::string finding_text(const ComparedCell& cell, bool by_busbw) {
  if (by_busbw && cell.finding == Finding::faster) return "higher";
  if (by_busbw && cell.finding == Finding::slower) return "lower";
  return std::string(to_text(cell.finding));
}

using LineColumns = RowColumns<ComparedLine>;

/// A column of what one run has in a line; empty where it has nothing.
RowColumn<ComparedLine> of_run(Column column, std::size_t run,
                               std::function<std::string(const ComparedCell&)> text) {
  return {std::move(column), [run, text = std::move(text)](const ComparedLine& line) {
            return line.cells[run].row == nullptr ? "" : text(line.cells[run]);
          }};
}

RowColumn<ComparedLine> of_ratio(const std::string& group, const char* header, std::size_t run, int spare,
                                 double Ratio::*member, bool needs_interval) {
  return of_run(
      {group, header, "", Align::right, spare}, run, [member, needs_interval](const ComparedCell& cell) {
        return cell.ratio && (!needs_interval || has_interval(cell)) ? ratio_text((*cell.ratio).*member) : "";
      });
}

void add_measures(LineColumns& columns, std::span<const ComparedRun> runs) {
  for (std::size_t run = 0; run < runs.size(); ++run) {
    columns.push_back(of_run({"time", runs[run].label, "us"}, run, [](const ComparedCell& cell) {
      return cell.finding == Finding::wrong ? "wrong" : number(cell.row->time_us.median);
    }));
  }
  for (std::size_t run = 0; run < runs.size(); ++run) {
    columns.push_back(
        of_run({"busbw", runs[run].label, "GB/s", Align::right, 2}, run, [](const ComparedCell& cell) {
          return cell.finding == Finding::wrong ? "" : number(cell.row->busbw_GBps);
        }));
  }
}

void add_ratios(LineColumns& columns, std::span<const ComparedRun> runs, const Comparison& comparison,
                const ComparedTable& of) {
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (run == comparison.baseline) continue;
    const bool by_busbw = of.by_busbw[run];
    const std::string group = fmt::format("{} / {}, {}", runs[run].label, runs[comparison.baseline].label,
                                          by_busbw ? "busbw" : "time");
    columns.push_back(of_ratio(group, "ratio", run, 0, &Ratio::median, false));
    columns.push_back(of_ratio(group, "from", run, 3, &Ratio::ci_low, true));
    columns.push_back(of_ratio(group, "to", run, 3, &Ratio::ci_high, true));
    columns.push_back(of_run({group, "finding", "", Align::left}, run,
                             [by_busbw](const ComparedCell& cell) { return finding_text(cell, by_busbw); }));
  }
}

/// `verdicts`: not all rows have the same.
void add_judgements(LineColumns& columns, std::span<const ComparedRun> runs, bool verdicts) {
  const auto add = [&](const char* group, const char* unit, Align align, int spare,
                       const std::function<std::string(const Judgement&)>& text) {
    for (std::size_t run = 0; run < runs.size(); ++run) {
      columns.push_back(
          of_run({group, runs[run].label, unit, align, spare}, run,
                 [text](const ComparedCell& cell) { return cell.judged ? text(*cell.judged) : ""; }));
    }
  };
  add("of bound", "%", Align::right, 1,
      [](const Judgement& judged) { return if_known(judged.bound_fraction, percent); });
  add("of expected", "%", Align::right, 2,
      [](const Judgement& judged) { return if_known(judged.expected_fraction, percent); });
  add("expected", "GB/s", Align::right, 2, [](const Judgement& judged) {
    return if_known(judged.expected_GBps,
                    [](const auto& range) { return number(range.first) + ".." + number(range.second); });
  });
  if (verdicts) add("verdict", "", Align::left, 1, [](const Judgement& judged) { return judged.verdict; });
}

/// The texts that judgements of a table give, each once, with the runs that have it.
using TextsByRun = std::vector<std::pair<std::string, std::vector<std::string>>>;
template <typename TextOf>
TextsByRun judged_texts(const ComparedTable& table, std::span<const ComparedRun> runs,
                        const TextOf& text_of) {
  TextsByRun texts;
  for (const ComparedLine& line : table.lines) {
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const ComparedCell& cell = line.cells[run];
      const std::string text = cell.judged ? text_of(*cell.judged) : "";
      if (text.empty()) continue;
      auto known = std::ranges::find(texts, text, [](const auto& of) { return of.first; });
      if (known == texts.end()) known = texts.insert(texts.end(), {text, {}});
      if (std::ranges::find(known->second, runs[run].label) == known->second.end())
        known->second.push_back(runs[run].label);
    }
  }
  for (auto& [text, labels] : texts) std::ranges::sort(labels);
  return texts;
}

const auto limit_text = [](const Judgement& judged) { return judged.limit; };
const auto verdict_text = [](const Judgement& judged) { return judged.verdict; };

std::string caption_of(const ComparedTable& table, std::span<const ComparedRun> runs,
                       const Comparison& comparison) {
  std::string caption = title_of(table);
  const bool one = std::ranges::all_of(
      table.lines, [&](const ComparedLine& line) { return line.contender == table.lines.front().contender; });
  if (one && !table.lines.front().contender.empty())
    caption += fmt::format(": {}", table.lines.front().contender);
  const std::string& base = runs[comparison.baseline].label;
  const auto has_ratios = [&](bool by_busbw) {
    return std::ranges::any_of(table.lines, [&](const ComparedLine& line) {
      for (std::size_t run = 0; run < runs.size(); ++run)
        if (line.cells[run].ratio && table.by_busbw[run] == by_busbw) return true;
      return false;
    });
  };
  if (has_ratios(false)) caption += fmt::format("; ratios of time below 1: faster than {}", base);
  if (has_ratios(true)) caption += fmt::format("; ratios of busbw above 1: more than {}", base);
  return caption;
}

}  // namespace

Table runs_table(std::span<const ComparedRun> runs, std::size_t baseline) {
  Table table({{"", "run", "", Align::left},
               {"", "file", "", Align::left},
               {"", "what", "", Align::left},
               {"", "ranks", "", Align::left},
               {"", "source", "", Align::left},
               {"", "measured", "", Align::left}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& run = runs[i];
    const ResultFile& first = run.results.front();
    table.add_row({run.label + (i == baseline ? " (baseline)" : ""), printable_line(run.name),
                   of_all_results(run, [](const ResultFile& result) { return result.collective; }),
                   of_all_results(run, ranks_text),
                   std::string(to_text(collective_rows(first).front().source)), date_text(first)});
  }
  return table;
}

Table differences_table(std::span<const ComparedRun> runs, const RunDifferences& differences) {
  std::vector<Column> columns{{"", "differs", "", Align::left}};
  for (const ComparedRun& run : runs) columns.push_back({"", run.label, "", Align::left});
  Table table(std::move(columns));
  for (const RunDifference& difference : differences.differing) {
    std::vector<std::string> cells{printable_line(difference.what)};
    cells.insert(cells.end(), difference.values.begin(), difference.values.end());
    table.add_row(std::move(cells));
  }
  return table;
}

Table compared_table(std::span<const ComparedRun> runs, const Comparison& comparison,
                     const ComparedTable& of) {
  LineColumns columns;
  columns.push_back(
      {{"", "size", "B"}, [](const ComparedLine& line) { return std::to_string(line.size_bytes); }});
  columns.push_back({{"", "place", "", Align::left},
                     [](const ComparedLine& line) { return std::string(line.in_place ? "in" : "out"); }});
  const auto contender = [runs](const ComparedLine& line) { return contender_text(line, runs); };
  const bool one = all_alike(of.lines, contender);
  if (!one || of.lines.front().contender.empty())
    columns.push_back({{"", "algorithm", "", Align::left}, contender});
  add_measures(columns, runs);
  add_ratios(columns, runs, comparison, of);
  const TextsByRun verdicts = judged_texts(of, runs, verdict_text);
  if (!verdicts.empty()) add_judgements(columns, runs, verdicts.size() > 1);
  if (judged_texts(of, runs, limit_text).size() > 1) {
    columns.push_back({{"", "limited by", "", Align::left, 4}, [](const ComparedLine& line) {
                         for (const ComparedCell& cell : line.cells)
                           if (cell.judged && !cell.judged->limit.empty()) return cell.judged->limit;
                         return std::string();
                       }});
  }
  Table table = polyring::table_of(columns);
  table.caption = caption_of(of, runs, comparison);
  if (verdicts.size() == 1) table.caption += fmt::format("; verdict of all: {}", verdicts.front().first);
  const ComparedLine* previous = nullptr;
  for (const ComparedLine& line : of.lines) {
    if (previous != nullptr && (previous->contender != line.contender || previous->in_place != line.in_place))
      table.add_gap();
    previous = &line;
    table.add_row(cells_of(columns, line));
  }
  return table;
}

std::vector<std::string> judgement_sentences(std::span<const ComparedRun> runs, const ComparedTable& table) {
  std::vector<std::string> sentences;
  for (const auto& [limit, labels] : judged_texts(table, runs, limit_text))
    sentences.push_back(fmt::format("{}: {}", fmt::join(labels, ", "), limit));
  for (const auto& [basis, labels] :
       judged_texts(table, runs, [](const Judgement& judged) { return judged.basis; }))
    sentences.push_back(fmt::format("{}: expected: {}", fmt::join(labels, ", "), basis));
  return sentences;
}

Table compared_rows(std::span<const ComparedRun> runs, const Comparison& comparison) {
  struct Row {
    const ComparedTable& table;
    const ComparedLine& line;
    const ComparedCell& cell;
    const ComparedRun& run;
    bool by_busbw;
  };
  const auto exact = [](double value) { return fmt::format("{}", value); };
  const auto of_ratio_of = [&](double Ratio::*member, bool needs_interval) {
    return [=](const Row& row) {
      return row.cell.ratio && (!needs_interval || has_interval(row.cell)) ? exact((*row.cell.ratio).*member)
                                                                           : "";
    };
  };
  const auto of_judged = [](auto text) {
    return [text](const Row& row) { return row.cell.judged ? text(*row.cell.judged) : std::string(); };
  };
  const auto text = [](const char* name) { return Column{"", name, "", Align::left}; };
  const auto value = [](const char* name, const char* unit = "") { return Column{"", name, unit}; };
  const RowColumns<Row> columns{
      {text("collective"), [](const Row& row) { return row.table.collective; }},
      {text("type"), [](const Row& row) { return row.cell.row->dtype; }},
      {text("operation"), [](const Row& row) { return row.cell.row->op; }},
      {value("size", "bytes"), [](const Row& row) { return std::to_string(row.line.size_bytes); }},
      {text("placement"),
       [](const Row& row) { return std::string(row.line.in_place ? "in-place" : "out-of-place"); }},
      {text("compared"),
       [](const Row& row) { return row.line.contender.empty() ? "best" : row.line.contender; }},
      {text("run"), [](const Row& row) { return row.run.label; }},
      {text("file"), [](const Row& row) { return printable_line(row.run.name); }},
      {text("algorithm"), [](const Row& row) { return row.cell.row->algorithm; }},
      {value("ranks"), [](const Row& row) { return std::to_string(row.cell.row->ranks); }},
      {value("time", "us"), [=](const Row& row) { return exact(row.cell.row->time_us.median); }},
      {value("busbw", "GB/s"), [=](const Row& row) { return exact(row.cell.row->busbw_GBps); }},
      {text("ratio of"),
       [](const Row& row) { return std::string(row.cell.ratio ? (row.by_busbw ? "busbw" : "time") : ""); }},
      {value("ratio"), of_ratio_of(&Ratio::median, false)},
      {value("ratio low"), of_ratio_of(&Ratio::ci_low, true)},
      {value("ratio high"), of_ratio_of(&Ratio::ci_high, true)},
      {text("finding"),
       [](const Row& row) {
         return row.cell.finding == Finding::baseline ? "baseline" : finding_text(row.cell, row.by_busbw);
       }},
      {value("of bound", "%"),
       of_judged([](const Judgement& judged) { return if_known(judged.bound_fraction, percent); })},
      {text("limited by"), of_judged([](const Judgement& judged) { return judged.limit; })},
      {value("of expected", "%"),
       of_judged([](const Judgement& judged) { return if_known(judged.expected_fraction, percent); })},
      {value("expected low", "GB/s"), of_judged([=](const Judgement& judged) {
         return judged.expected_GBps ? exact(judged.expected_GBps->first) : std::string();
       })},
      {value("expected high", "GB/s"), of_judged([=](const Judgement& judged) {
         return judged.expected_GBps ? exact(judged.expected_GBps->second) : std::string();
       })},
      {text("verdict"), of_judged([](const Judgement& judged) { return judged.verdict; })},
      {text("source"), [](const Row& row) { return std::string(to_text(row.cell.row->source)); }}};
  Table table = polyring::table_of(columns);
  for (const ComparedTable& of : comparison.tables)
    for (const ComparedLine& line : of.lines)
      for (std::size_t run = 0; run < runs.size(); ++run)
        if (line.cells[run].row != nullptr)
          table.add_row(cells_of(columns, Row{of, line, line.cells[run], runs[run], of.by_busbw[run]}));
  return table;
}

}  // namespace polyring
