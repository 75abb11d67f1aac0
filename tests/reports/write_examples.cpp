// Writes an example of every kind of result into a folder, or reads results and says what is wrong with each,
// or compares contenders with mpi: for the tests in Python.
#include <fmt/format.h>

#include <span>
#include <string>

#include "base/error.hpp"
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
  } else if (std::string(arguments[1]) == "compare") {
    compare(arguments[2]);
  } else {
    for (const char* path : arguments.subspan(2)) check(path);
  }
}
