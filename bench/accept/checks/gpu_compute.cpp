// gpu.compute: matrix products by cuBLAS, on all GPUs of all hosts at once: each GPU beside others of its
// model, and whether the results are right.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_hosts.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

using nlohmann::json;

constexpr std::string_view kName = "gpu.compute";
const Quantity kProduct{"float16 product", "TFLOP/s"};
/// Clocks settle in the first half of what is measured. One turn more is for making the matrices and for
/// starting cuBLAS.
constexpr int kTurns = 3;
constexpr int kTurnsOfProducts = 2;

int turns(const Site& site, const CheckOptions&) { return has_gpus(site) ? kTurns : 0; }

/// The largest that leaves most of the memory to other programs on every GPU.
int side_that_fits(const OwnGpus& own) {
  constexpr std::uint64_t kPartOfGpu = 4;
  constexpr int kLeast = 512;
  int side = kMostProductSide;
  for (const GpuDevice& gpu : own.gpus) {
    const std::uint64_t room = own.plugin.free_memory(gpu.index).value / kPartOfGpu;
    while (side > kLeast && memory_of_products(side).value > room) side /= 2;
  }
  return side;
}

std::string answer(const std::string& question) {
  const json asked = json::parse(question);
  return measure_own_gpus([&](const OwnGpus& own, json& answer) {
    constexpr int kOfSoftware = 64;
    GpuProductWork work;
    work.side = own.software ? kOfSoftware : side_that_fits(own);
    work.warm_up = work.time = {asked.at("seconds").get<double>() / 2};
    if (own.software) work.warm_up = work.time = {0}, work.fewest = 2;
    std::vector<int> gpus;
    for (const GpuDevice& gpu : own.gpus) gpus.push_back(gpu.index);
    const GpuProducts made = own.plugin.multiply(gpus, work);
    if (!made.why_not.empty()) {
      answer["why"] = made.why_not;
      answer["remedy"] = "Install cuBLAS there, or name its file with POLYRING_CUBLAS.";
      return;
    }
    answer["way"] = made.way;
    answer["side"] = work.side;
    answer["rates"] = json::array();
    for (const GpuProductRates& of_gpu : made.rates)
      answer["rates"].push_back(
          {{"TFLOPs", of_gpu.TFLOPs}, {"wrong", of_gpu.wrong_elements}, {"products", of_gpu.products}});
  });
}

/// A GPU of a host.
struct Item {
  std::size_t host = 0;
  std::string name;
  std::string model;
  std::string like;  // with which GPUs it is compared
  std::string way{};
  std::vector<double> TFLOPs{};
  std::uint64_t wrong = 0;
  std::int64_t products = 0;
  CheckRow row{};

  bool is_bad() const { return row.verdict == Verdict::fail || row.verdict == Verdict::inconclusive; }
};

class Products {
 public:
  explicit Products(const Checking& checking) : checking_(checking), hosts_(checking, kName) {}

  std::vector<CheckRow> run() {
    for (bool again = true; again;) {
      checking_.progress(attempts_ == 0 ? "matrix products by all GPUs" : "the same again");
      ask();
      judge_all();
      // All again, so that they share power and heat as before.
      again = std::ranges::any_of(items_, [&](const Item& item) {
        return is_measured(item) && item.wrong == 0 &&
               checking_.must_repeat(item.row.verdict, attempts_, kTurns);
      });
    }
    std::vector<CheckRow> rows = hosts_.rows_of_absent();
    for (std::size_t host = 0; host < hosts_.size(); ++host) add_rows(host, rows);
    return rows;
  }

 private:
  bool is_measured(const Item& item) const { return !hosts_[item.host].software; }

  void ask() {
    ++attempts_;
    const json question{{"seconds", kTurnsOfProducts * checking_.options.turn.value}};
    hosts_.ask(question, [&](std::size_t host, const json& said) {
      const GpusOfHost& of = hosts_[host];
      if (!first_.contains(host)) {
        first_[host] = items_.size();
        for (std::size_t gpu = 0; gpu < of.names.size(); ++gpu)
          items_.push_back({host, of.names[gpu], of.models[gpu],
                            fmt::format("{}|{}", of.models[gpu], said.at("side").get<int>())});
      }
      for (std::size_t gpu = 0; gpu < of.names.size(); ++gpu) {
        const json& rates = said.at("rates").at(gpu);
        Item& item = items_[first_[host] + gpu];
        item.way = printable_line(said.at("way").get<std::string>());
        const std::vector<double> samples = rates.at("TFLOPs");
        item.TFLOPs.insert(item.TFLOPs.end(), samples.begin(), samples.end());
        item.wrong += rates.at("wrong").get<std::uint64_t>();
        item.products += rates.at("products").get<std::int64_t>();
      }
    });
  }

  /// Of the row of a host's GPUs of one model: a specification or a baseline knows them by it.
  std::string subject_of_group(const Item& item) const {
    const std::string& host = checking_.site.hosts[item.host];
    const bool one_model = std::ranges::none_of(
        items_, [&](const Item& other) { return other.host == item.host && other.model != item.model; });
    return one_model ? host : fmt::format("{} ({})", host, item.model);
  }

  void judge_all() {
    std::map<std::string, std::vector<double>> medians;
    for (const Item& item : items_)
      if (is_measured(item)) medians[item.like].push_back(summarize(item.TFLOPs).median);
    std::map<std::string, OfOthers> of_others;
    for (auto& [like, values] : medians) of_others.emplace(like, OfOthers(std::move(values)));
    for (Item& item : items_) {
      item.row = hosts_.row(item.host);
      item.row.subject = fmt::format("{} of {}", item.name, checking_.site.hosts[item.host]);
      item.row.attempts = attempts_;
      if (is_measured(item))
        judge_rate(item, of_others.at(item.like).median(summarize(item.TFLOPs).median));
      else
        item.row.verdict = Verdict::shown;
      if (item.wrong > 0) fail_as_wrong(item);
    }
  }

  void judge_rate(Item& item, const std::optional<double>& others) const {
    Threshold least;
    if (others)
      least = {kOfPeers * *others,
               {},
               fmt::format("{:.0f} % of the median of other GPUs of its model", 100 * kOfPeers)};
    judge(item.row, kProduct, item.TFLOPs,
          checking_.threshold({std::string(kName), kProduct, 0, subject_of_group(item)}, least));
    item.row.why += fmt::format(" It made {}.", item.way);
    if (item.row.verdict == Verdict::fail)
      item.row.remedy = "See what gpu.health says of its clocks, heat and power, and what else uses it.";
  }

  /// Whether no GPU like it, of several, is right.
  bool all_are_wrong(const Item& like) const {
    std::size_t all = 0;
    for (const Item& item : items_) {
      if (item.like != like.like) continue;
      if (item.wrong == 0) return false;
      ++all;
    }
    return all > 1;
  }

  void fail_as_wrong(Item& item) const {
    item.row.verdict = Verdict::fail;
    item.row.why = fmt::format("It computes wrong: {} in the results of {}.",
                               counted(static_cast<std::int64_t>(item.wrong), "wrong element"),
                               counted(item.products, "product"));
    item.row.remedy =
        "Take it out of use. See dmesg and what gpu.health and gpu.copies say of it, and have it replaced.";
    if (!all_are_wrong(item)) return;
    item.row.why += " So do all others of its model.";
    item.row.remedy =
        "See whether an environment variable or another version lets cuBLAS add up less exactly than in "
        "float32, before GPUs are replaced.";
  }

  void add_rows(std::size_t host, std::vector<CheckRow>& rows) const {
    if (!hosts_[host].measured()) return;
    const std::size_t before = rows.size();
    std::map<std::string, std::vector<const Item*>> groups;
    for (const Item& item : items_) {
      if (item.host != host) continue;
      if (item.wrong > 0)
        rows.push_back(item.row);
      else
        groups[item.model].push_back(&item);
    }
    if (hosts_[host].software) {
      rows.push_back(row_of_software(host));
    } else {
      for (const auto& [model, group] : groups) add_group(group, rows);
    }
    hosts_.share_time(rows, before);
    hosts_.add_unseen(host, rows);
  }

  CheckRow row_of_software(std::size_t host) const {
    std::int64_t gpus = 0;
    std::int64_t right = 0;
    for (const Item& item : items_) {
      if (item.host != host) continue;
      ++gpus;
      right += item.wrong == 0 ? 1 : 0;
    }
    return hosts_.row_of_software(
        host, fmt::format("Its {} multiplied matrices, and {} computed right", counted(gpus, "GPU"),
                          right == gpus ? "all of them" : fmt::format("{} of them", right)));
  }

  /// Those of one model are one row, beside those that are bad, unless most are.
  void add_group(std::vector<const Item*> group, std::vector<CheckRow>& rows) const {
    const auto is_bad = [](const Item* item) { return item->is_bad(); };
    const auto all = group.size();
    if (2 * static_cast<std::size_t>(std::ranges::count_if(group, is_bad)) <= all) {
      for (const Item* item : group)
        if (is_bad(item)) rows.push_back(item->row);
      std::erase_if(group, is_bad);
    }
    const Item* const slowest = *std::ranges::min_element(group, {}, [](const Item* item) {
      return std::pair{item->row.verdict != Verdict::fail, item->row.value->median};
    });
    CheckRow& row = rows.emplace_back(slowest->row);
    row.subject = subject_of_group(*slowest);
    const auto bad = std::ranges::count_if(group, is_bad);
    if (bad > 0 && all > 1)
      row.why = fmt::format("{} of {} such GPUs are too slow or unclear, the slowest {}: {}", bad, all,
                            slowest->name, row.why);
    else if (group.size() > 1)
      row.why = fmt::format("The slowest of {} such GPUs, {}: {}", group.size(), slowest->name, row.why);
    else
      row.why = fmt::format("{}: {}", slowest->name, row.why);
  }

  const Checking& checking_;
  GpuHosts hosts_;
  std::vector<Item> items_;
  std::map<std::size_t, std::size_t> first_;  // of a host's items
  int attempts_ = 0;
};

std::vector<CheckRow> run(const Checking& checking) { return Products(checking).run(); }

}  // namespace

const Check kGpuCompute{kName, "GPUs that compute more slowly than others of their model, or wrong",
                        turns, {kProduct},
                        run,   answer};

}  // namespace polyring
