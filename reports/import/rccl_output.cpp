// What rccl-tests writes to a file (-x, with -Z csv or -Z json), https://github.com/ROCm/rccl-tests/pull/93:
// a row for each half of a line of its table. Builds with MPI write "nodes", "ranks" (of MPI), "ranksPerNode"
// and "gpusPerRank", others "gpus". JSON is one object a line, or from 2025 on a list of objects.
//
//   numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,busbw,#wrong
//   0,"AllReduce",1,8,8,1,1048576,"float","sum",0,55.66,18.84,32.97,"0"
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "reports/import/bandwidths.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/log_json.hpp"
#include "reports/import/vocabulary.hpp"

namespace polyring {
namespace {

using nlohmann::json;

/// The key under which a value is kept: "collective" of CSV is "name" in JSON, "wrong" was "#wrong" first.
std::string key_named(std::string_view name) {
  const std::string key = lower(name);
  return key == "collective" ? "name" : key == "#wrong" ? "wrong" : key;
}

/// One row, its values as text.
struct RcclRow {
  int line = 0;
  std::map<std::string, std::string> values;

  std::string text(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
  std::optional<std::uint64_t> whole(const std::string& key) const { return whole_in(text(key)); }
};

/// The runs, one for each collective.
class RcclReader {
 public:
  RcclReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void add(const RcclRow& row) {
    const std::string name = row.text("name");
    const auto collective = collective_named(name);
    if (!collective) {
      if (others_.insert(name).second) read_.others.push_back({row.line, name});
      return;
    }
    const auto bytes = row.whole("size");
    const auto us = number_in(row.text("time"));
    const auto algbw = number_in(row.text("algbw"));
    const auto in_place = row.whole("inplace");
    if (!bytes || !us || !algbw || !in_place || contradicts(static_cast<double>(*bytes), *us, *algbw))
      refuse(log_, row.line,
             "a row lacks size, time, algBw or inPlace, or these contradict each other; run rccl-tests again "
             "(without -C)");
    ImportedRun& run = run_of(*collective, row);
    const auto [point, first] = points_.emplace(
        std::tuple(name, *bytes, row.text("type"), row.text("redop"), *in_place), run.rows.size());
    if (first) {
      run.rows.push_back({.line = row.line,
                          .bytes = *bytes,
                          .dtype = type_named(row.text("type")),
                          .op = row.text("redop"),
                          .in_place = *in_place != 0,
                          .us = {*us},
                          .wrong = row.whole("wrong"),
                          .ranks = ranks_of(row)});
    } else if (row.whole("numcycle").value_or(0) > 0) {
      run.rows[point->second].us.push_back(*us);
      if (again_.insert(*collective).second)
        run.notes.push_back("Samples are the times of several cycles (-N), and their median is taken");
    } else if (*bytes > 0) {
      refuse(log_, row.line, "two runs are written into each other; give the file of one run");
    }
  }

 private:
  static std::optional<int> ranks_of(const RcclRow& row) {
    const auto processes = as_ranks(row.whole("ranks"));
    if (!processes) return as_ranks(row.whole("gpus"));
    return as_ranks(static_cast<std::uint64_t>(*processes) *
                    static_cast<std::uint64_t>(as_ranks(row.whole("gpusperrank")).value_or(1)));
  }

  ImportedRun& run_of(const std::string& collective, const RcclRow& row) {
    const auto found = runs_.find(collective);
    if (found != runs_.end()) return read_.runs[found->second];
    runs_[collective] = read_.runs.size();
    ImportedRun run;
    run.collective = collective;
    run.implementation = "rccl-tests";
    run.algorithm = "rccl";
    run.line = row.line;
    // Since 2025 it writes 1 for any number of nodes.
    if (const auto nodes = as_ranks(row.whole("nodes")); nodes && *nodes > 1) run.nodes = nodes;
    run.notes = {"Times are means over calls and, unless run with -a, over ranks, and not medians",
                 "rccl-tests' files have no end mark: one that was cut looks whole"};
    return read_.runs.emplace_back(std::move(run));
  }

  const LogText& log_;
  ImportedLog& read_;
  std::map<std::string, std::size_t> runs_;  // by collective
  std::set<std::string> others_;
  std::set<std::string> again_;  // collectives with several cycles
  std::map<std::tuple<std::string, std::uint64_t, std::string, std::string, std::uint64_t>, std::size_t>
      points_;
};

/// The fields of a line, without blanks and quotation marks around; none has a comma in it.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (const std::string& part : split(line, ',')) {
    const std::size_t begin = part.find_first_not_of(" \t\"");
    const std::size_t end = part.find_last_not_of(" \t\"");
    fields.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return fields;
}

bool is_header(std::string_view line) {
  const std::string small = lower(line.substr(0, 200));
  return small.find("algbw,") != std::string::npos && small.find("busbw,") != std::string::npos &&
         small.find("inplace,") != std::string::npos;
}

bool is_csv(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return is_header(line.text); });
}

void read_csv(const LogText& log, const ImportOptions&, ImportedLog& read) {
  RcclReader reader(log, read);
  std::vector<std::string> keys;
  for (const LogLine& line : log.lines) {
    const auto fields = fields_of(line.text);
    if (is_header(line.text)) {
      if (!keys.empty())
        refuse(log, line.number, "two runs are written into one file; give the file of one run");
      for (const std::string& field : fields) keys.push_back(key_named(field));
      continue;
    }
    if (keys.empty() || fields.size() < 2) continue;
    auto of_row = keys;
    // For a year its header lacked "nodes", which the rows have.
    const auto name = std::ranges::find(of_row, "name");
    if (fields.size() == keys.size() + 1 && name != of_row.end() &&
        std::ranges::find(keys, "nodes") == keys.end())
      of_row.insert(name + 1, "nodes");
    if (fields.size() != of_row.size())
      refuse(log, line.number, "a row has {} fields and not {}; copy the file again", fields.size(),
             keys.size());
    RcclRow row{.line = line.number, .values = {}};
    for (std::size_t i = 0; i < fields.size(); ++i) row.values[of_row[i]] = fields[i];
    reader.add(row);
  }
}

bool is_json(const LogText& log) { return is_json_with(log, "\"algBw\""); }

RcclRow row_of(const json& object, int line) {
  RcclRow row{.line = line, .values = {}};
  if (!object.is_object()) return row;
  for (const auto& [key, value] : object.items()) {
    std::string& text = row.values[key_named(key)];
    text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return row;
}

void read_json(const LogText& log, const ImportOptions&, ImportedLog& read) {
  RcclReader reader(log, read);
  if (log.text[log.text.find_first_not_of(" \t\r\n")] == '[') {
    const json list = parse_log_json(log, 1, log.text);
    for (const json& object : list) reader.add(row_of(object, 1));
    return;
  }
  int number = 0;
  for (const std::string& line : split(log.text, '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      reader.add(row_of(parse_log_json(log, number, line), number));
  }
}

}  // namespace

const LogFormat kRcclTestsCsv{"rccl-tests", is_csv, true, read_csv};
const LogFormat kRcclTestsJson{"rccl-tests", is_json, false, read_json};

}  // namespace polyring
