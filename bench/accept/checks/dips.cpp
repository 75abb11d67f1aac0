// dips: a size of payload that is slower than its neighbours, as where a protocol changes.
#include <algorithm>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "dips";
constexpr double kLeastOfNeighbours = 0.8;
constexpr std::uint64_t kFirst = 4 << 10;
constexpr std::uint64_t kStep = 4;

std::vector<Bytes> sizes_up_to(Bytes most) {
  std::vector<Bytes> sizes;
  for (std::uint64_t size = kFirst; size <= most.value; size *= kStep) sizes.push_back({size});
  return sizes;
}

double median(const Measured& measured) {
  return measured.busbw_GBps.empty() ? 0 : summarize(measured.busbw_GBps).median;
}

class DipsCheck {
 public:
  explicit DipsCheck(const Checking& checking) : checking_(checking) {
    group_.hosts = checking.site.all_hosts();
    sizes_ = sizes_up_to(payload_for(checking, "", group_.hosts));
    measured_.resize(sizes_.size());
  }

  std::vector<CheckRow> run() {
    if (checking_.site.ranks_in_all() < 2 || sizes_.size() < 3) {
      CheckRow row = row_of(checking_, kName, group_.hosts);
      row.verdict = Verdict::skipped;
      row.why = sizes_.size() < 3 ? "Links are so slow that there are fewer than three sizes to compare."
                                  : "One rank has nobody to reduce with.";
      return {row};
    }
    for (std::size_t i = 0; i < sizes_.size(); ++i) measure(i);
    std::vector<CheckRow> rows;
    // The first and the last have no neighbour on one side.
    for (std::size_t i = 1; i + 1 < sizes_.size(); ++i) {
      CheckRow row = judged(i);
      while (measured_[i].wrong == 0 && checking_.must_repeat(row.verdict, measured_[i].attempts, 2)) {
        for (std::size_t near = i - 1; near <= i + 1; ++near) measure(near);
        row = judged(i);
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  void measure(std::size_t i) {
    checking_.progress(to_text(sizes_[i]));
    const GroupWork work{.algorithm = checking_.options.algorithm,
                         .size = sizes_[i],
                         .time = {checking_.options.turn.value / 2},
                         .fewest = 20};
    measure_at_once(checking_, {group_}, work, {&measured_[i]});
  }

  /// Beside the lesser of its neighbours; and beside what it would have, did it take as long as the next one.
  CheckRow judged(std::size_t i) const {
    const double before = median(measured_[i - 1]);
    const double behind = median(measured_[i + 1]);
    const double beside = std::max(std::min(before, behind), behind / static_cast<double>(kStep));
    std::vector<double> ratios;
    for (const double busbw : measured_[i].busbw_GBps)
      if (beside > 0) ratios.push_back(busbw / beside);
    CheckRow row = row_of(checking_, kName, group_.hosts);
    row.subject = to_text(sizes_[i]);
    const Quantity quantity{"busbw/neighbours'", ""};
    judge(row, quantity, std::move(ratios),
          checking_.threshold({std::string(kName), quantity, sizes_[i].value, row.subject},
                              {kLeastOfNeighbours, {}, "default"}));
    row.size_bytes = sizes_[i].value;
    row.attempts = measured_[i].attempts;
    row.seconds = measured_[i].seconds;
    fail_if_wrong(row, measured_[i - 1].wrong + measured_[i].wrong + measured_[i + 1].wrong);
    if (row.verdict == Verdict::fail && row.remedy.empty())
      row.remedy = "See where the library changes its protocol or algorithm, and tune that limit.";
    return row;
  }

  const Checking& checking_;
  HostGroupUnderTest group_{{}, "all hosts"};
  std::vector<Bytes> sizes_;
  std::vector<Measured> measured_;
};

int turns(const Site&, const CheckOptions&) { return 4; }

std::vector<CheckRow> run(const Checking& checking) { return DipsCheck(checking).run(); }

}  // namespace

const Check kDips{kName, "sizes that are slower than their neighbours",
                  turns, {{"busbw/neighbours'", ""}},
                  run,   nullptr,
                  false, kOnDevice};

}  // namespace polyring
