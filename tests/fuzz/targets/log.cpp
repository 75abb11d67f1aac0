// Other benchmarks' logs, of any format.
#include "reports/import/import.hpp"
#include "reports/result_text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace polyring;

bool is_imported(const ResultFile& file) {
  const auto* const rows = std::get_if<std::vector<CollectiveRow>>(&file.rows);
  return rows != nullptr && !rows->empty() && rows->front().source == Source::imported;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  for (const std::optional<int> ranks : {std::optional<int>(), std::optional<int>(4)}) {
    fuzz::may_refuse([&] {
      const auto files = parse_log(text, "fuzz.log", {.ranks = ranks});
      fuzz::expect(!files.empty(), "a log without a result that is not refused");
      for (const ResultFile& file : files)
        if (is_imported(file))
          fuzz::expect(parse_result(result_text(file), "written.json") == file,
                       "a result that is not read as written");
    });
  }
  return 0;
}
