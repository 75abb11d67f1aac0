// Writes an example of every kind of result into a folder, or those of 64 hosts, or reads results and says
// what is wrong with each, or compares contenders with mpi, or makes a report: for the tests in Python.
#include <fmt/format.h>

#include <span>
#include <string>

#include "base/error.hpp"
#include "reports/report.hpp"
#include "reports/result.hpp"
#include "reports/tables.hpp"
#include "tests/reports/examples.hpp"

namespace {

using namespace polyring;

void write(const std::filesystem::path& folder) {
  for (const ResultFile& example :
       {examples::allreduce(), examples::train(), examples::scale(), examples::tune(), examples::accept()}) {
    write_result(folder / fmt::format("{}.json", example.kind()), example);
  }
  write_result(folder / "published.json", examples::published_runs());
}

void write_large(const std::filesystem::path& folder) {
  for (const auto& [name, example] : examples::of_64_hosts())
    write_result(folder / (name + ".json"), example);
}

/// `results`: paths of files.
void report(const std::filesystem::path& folder, std::span<char*> results) {
  const std::vector<std::filesystem::path> files(results.begin(), results.end());
  const Report written = write_report(files, folder);
  for (const std::string& warning : written.warnings) fmt::print("{}\n", warning);
}

void check(const char* path) {
  try {
    read_result(path);
    fmt::print("ok\n");
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
  }
}

void compare(const char* path) {
  const ResultFile result = read_result(path);
  fmt::print("{}", comparison_table(std::get<std::vector<CollectiveRow>>(result.rows), "mpi").csv());
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc < 3) return 6;
  if (std::string(arguments[1]) == "write") {
    write(arguments[2]);
  } else if (std::string(arguments[1]) == "write-large") {
    write_large(arguments[2]);
  } else if (std::string(arguments[1]) == "report") {
    report(arguments[2], arguments.subspan(3));
  } else if (std::string(arguments[1]) == "compare") {
    compare(arguments[2]);
  } else {
    for (const char* path : arguments.subspan(2)) check(path);
  }
}
