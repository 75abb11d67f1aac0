// Which copies by GPUs are too slow, and which GPU or pair is at fault.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/gpu_copies.hpp"
#include "bench/accept/gpu_copy_links.hpp"
#include "bench/accept/gpu_hosts.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

using nlohmann::json;

/// Of a link's rate, for one copy alone. Copies reach 78 % of PCIe 3 (12.36 of 15.75 GB/s: README of
/// NVIDIA/nvbandwidth), 84 % of PCIe 4 between GPUs (26.3 of 31.5: its issue 50) and of NVLink 4 (380 of 450:
/// NVIDIA/nccl, issue 1264), and 77 % of an H100's memory (that issue). Half of the lanes, or one generation
/// less, halves that.
constexpr double kAlone = 0.6;
/// Of both directions together, and of what shares links: 71 % of PCIe 3 (that README), and 57 % of PCIe 4 to
/// and from an A100 (11 and 25 of 31.5 GB/s: issue 53 of nvbandwidth).
constexpr double kTogether = 0.5;
/// A GPU is at fault if so many of its copies with others are bad.
constexpr double kMostOfIts = 2.0 / 3;

/// A copy of a host, or two whose rates are added.
struct Item {
  std::size_t host = 0;
  std::size_t job = 0;  // of the host
  GpuCopy copy;
  std::size_t first = 0;  // of the job's copies
  std::size_t count = 1;  // of these, whose rates are added
  std::string kind;       // of its links, see CopyLink
  double link_GBps = 0;
  bool nvlink = false;
  bool direct = true;
  std::uint64_t wrong = 0;
  std::vector<double> GBps{};
  int attempts = 0;
  CheckRow row{};

  bool between_gpus() const {
    return copy.from != kHostMemory && copy.to != kHostMemory && copy.from != copy.to;
  }
};

class Copies {
 public:
  Copies(const Checking& checking, const CopyCheck& check)
      : checking_(checking), check_(check), hosts_(checking, check.name) {}

  std::vector<CheckRow> run() {
    ask({});
    for (int attempt = 1;; ++attempt) {
      judge_all();
      const std::set<std::string> again = to_repeat(attempt);
      if (again.empty()) break;
      ask(again);
    }
    std::vector<CheckRow> rows = hosts_.rows_of_absent();
    for (std::size_t host = 0; host < hosts_.size(); ++host) add_rows(host, rows);
    return rows;
  }

 private:
  void ask(const std::set<std::string>& only) {
    checking_.progress(only.empty() ? "copies by all GPUs" : "what was slow, again");
    const json question{{"only", only}, {"seconds", check_.turns * checking_.options.turn.value}};
    hosts_.ask(question, [&](std::size_t host, const json& said) {
      jobs_.resize(hosts_.size());
      if (jobs_[host].empty()) make_items(host);
      take(host, said.at("rates"));
    });
  }

  void make_items(std::size_t host) {
    const GpusOfHost& of = hosts_[host];
    const Machine* const probed = hosts_.machine(host);
    std::vector<CopyJob>& jobs = jobs_[host];
    jobs = check_.jobs(static_cast<int>(of.names.size()));
    for (std::size_t number = 0; number < jobs.size(); ++number) {
      const CopyJob& job = jobs[number];
      const std::vector<CopyLink> links = probed != nullptr
                                              ? links_of_copies(*probed, of.probed_as, job.copies)
                                              : std::vector<CopyLink>(job.copies.size());
      const std::size_t step = job.is_sum ? job.copies.size() : 1;
      for (std::size_t i = 0; i < job.copies.size(); i += step) {
        Item& item = items_.emplace_back();
        item.host = host;
        item.job = number;
        item.copy = job.copies[i];
        item.first = i;
        item.count = step;
        item.kind = links[i].kind;
        item.nvlink = links[i].nvlink;
        for (std::size_t j = i; j < i + step; ++j) item.link_GBps += links[j].share.gigabytes_per_second();
      }
    }
  }

  void take(std::size_t host, const json& rates) {
    for (Item& item : items_) {
      if (item.host != host) continue;
      const auto of_job = rates.find(job_of(item).name());
      if (of_job == rates.end()) continue;
      ++item.attempts;
      std::vector<double> sum;
      for (std::size_t i = item.first; i < item.first + item.count; ++i) {
        const json& one = of_job->at(i);
        const std::vector<double> samples = one.at("GBps");
        if (sum.empty()) sum.resize(samples.size());
        for (std::size_t s = 0; s < std::min(sum.size(), samples.size()); ++s) sum[s] += samples[s];
        item.wrong += one.at("wrong").get<std::uint64_t>();
        item.direct = item.direct && one.at("direct").get<bool>();
      }
      item.GBps.insert(item.GBps.end(), sum.begin(), sum.end());
    }
  }

  const CopyJob& job_of(const Item& item) const { return jobs_[item.host][item.job]; }
  const Quantity& quantity_of(const Item& item) const { return check_.quantities[job_of(item).quantity]; }
  bool is_measured(const Item& item) const { return !hosts_[item.host].software && !item.GBps.empty(); }

  std::string model_of(const Item& item) const {
    return hosts_[item.host].models[index(item.copy.from == kHostMemory ? item.copy.to : item.copy.from)];
  }
  /// What is comparable: quantity, links, model, and whether GPUs reach each other.
  std::string likeness(const Item& item) const {
    return fmt::format("{}|{}|{}|{}", job_of(item).quantity, item.kind, model_of(item), item.direct);
  }
  /// Of the rows of comparable copies of a host: a specification or a baseline knows them by it.
  std::string subject_of_group(const Item& item) const {
    const std::string& host = checking_.site.hosts[item.host];
    const auto is_unlike = [&](const Item& other) {
      return other.host == item.host && job_of(other).quantity == job_of(item).quantity &&
             likeness(other) != likeness(item);
    };
    if (std::ranges::none_of(items_, is_unlike)) return host;
    const std::string link = item.kind.empty() ? "unknown links" : item.kind;
    return fmt::format("{} ({}{})", host, link, item.between_gpus() && !item.direct ? ", not direct" : "");
  }

  std::string place_name(std::size_t host, int place) const {
    return place == kHostMemory ? "host" : hosts_[host].names[index(place)];
  }
  std::string subject_of_item(const Item& item) const {
    const std::string& host = checking_.site.hosts[item.host];
    if (item.copy.from == item.copy.to)
      return fmt::format("{} of {}", place_name(item.host, item.copy.from), host);
    return fmt::format("{} {} {} of {}", place_name(item.host, item.copy.from), item.count > 1 ? "and" : "to",
                       place_name(item.host, item.copy.to), host);
  }

  Threshold least_of_item(const Item& item, const std::optional<double>& of_others) const {
    const bool alone = job_of(item).copies.size() == 1 || item.copy.from == item.copy.to;
    const double part = alone ? kAlone : kTogether;
    Threshold threshold;
    if (item.link_GBps > 0 && item.direct)
      threshold = {
          part * item.link_GBps,
          {},
          fmt::format("{:.0f} % of the {} GB/s of its links", 100 * part, significant(item.link_GBps, 3))};
    if (of_others && kOfPeers * *of_others > threshold.least.value_or(0))
      threshold = {
          kOfPeers * *of_others, {}, fmt::format("{:.0f} % of the median of copies like it", 100 * kOfPeers)};
    return threshold;
  }

  void judge_all() {
    std::map<std::string, std::vector<double>> medians;
    for (const Item& item : items_)
      if (is_measured(item)) medians[likeness(item)].push_back(summarize(item.GBps).median);
    std::map<std::string, OfOthers> of_others;
    for (auto& [like, values] : medians) of_others.emplace(like, OfOthers(std::move(values)));
    for (Item& item : items_) {
      item.row = hosts_.row(item.host);
      item.row.subject = subject_of_item(item);
      if (is_measured(item)) {
        const Quantity& quantity = quantity_of(item);
        const double own = summarize(item.GBps).median;
        judge(item.row, quantity, item.GBps,
              checking_.threshold({std::string(check_.name), quantity, 0, subject_of_group(item)},
                                  least_of_item(item, of_others.at(likeness(item)).median(own))));
      } else {
        item.row.verdict = Verdict::shown;
      }
      item.row.attempts = item.attempts;
      if (item.row.verdict == Verdict::fail) item.row.remedy = remedy_of(item);
      add_faults(item);
    }
  }

  static std::string remedy_of(const Item& item) {
    if (item.copy.from == item.copy.to) return "See what gpu.health says of this GPU, and what else uses it.";
    if (item.nvlink) return "Check its NVLinks (nvidia-smi nvlink -s and -e), and what else uses these GPUs.";
    return "Check its PCIe link (slot, riser, speed, access control), and what else uses these GPUs.";
  }

  /// What fails whatever the rate is.
  static void add_faults(Item& item) {
    CheckRow& row = item.row;
    if (item.between_gpus() && item.nvlink && !item.direct) {
      row.verdict = Verdict::fail;
      row.why = "NVLink joins them, and they cannot access each other's memory.";
      row.remedy = "See whether nvidia-fabricmanager runs, and what nvidia-smi topo -p2p n says.";
    }
    if (item.wrong == 0) return;
    row.verdict = Verdict::fail;
    row.why =
        fmt::format("The copies have {}.", counted(static_cast<std::int64_t>(item.wrong), "wrong byte"));
    row.remedy = "See dmesg and what gpu.health says of these GPUs, and exchange them or their links.";
  }

  /// Names of jobs.
  std::set<std::string> to_repeat(int attempt) const {
    std::set<std::string> names;
    std::size_t jobs = 1;
    for (const std::vector<CopyJob>& of_host : jobs_) jobs = std::max(jobs, of_host.size());
    for (const Item& item : items_) {
      if (!is_measured(item) || item.wrong > 0 || (item.nvlink && !item.direct)) continue;
      const auto more = static_cast<double>(names.size() + 1);
      const int turns = static_cast<int>(std::ceil(check_.turns * more / static_cast<double>(jobs)));
      if (checking_.must_repeat(item.row.verdict, attempt, turns)) names.insert(job_of(item).name());
    }
    return names;
  }

  void add_rows(std::size_t host, std::vector<CheckRow>& rows) const {
    if (!hosts_[host].measured()) return;
    std::vector<std::vector<const Item*>> groups;
    std::map<std::string, std::size_t> at;
    for (const Item& item : items_) {
      if (item.host != host) continue;
      const auto [place, is_new] = at.try_emplace(likeness(item), groups.size());
      if (is_new) groups.emplace_back();
      groups[place->second].push_back(&item);
    }
    const std::size_t before = rows.size();
    for (const std::vector<const Item*>& group : groups) add_group(group, rows);
    hosts_.share_time(rows, before);
    if (hosts_[host].software) rows.push_back(row_of_software(host));
    hosts_.add_unseen(host, rows);
  }

  CheckRow row_of_software(std::size_t host) const {
    std::int64_t ways = 0;
    std::int64_t right = 0;
    for (const Item& item : items_) {
      if (item.host != host) continue;
      ++ways;
      right += item.wrong == 0 ? 1 : 0;
    }
    const auto gpus = static_cast<std::int64_t>(hosts_[host].names.size());
    return hosts_.row_of_software(
        host,
        fmt::format("Its {} copied in {}, and what they copied was right in {}", counted(gpus, "GPU"),
                    counted(ways, "way"), right == ways ? "all of them" : fmt::format("{} of them", right)));
  }

  /// The GPUs that are at fault: most of their copies with others are bad. None where that is so of most
  /// GPUs.
  static std::vector<int> blamed(const std::vector<const Item*>& group) {
    std::map<int, std::pair<int, int>> counts;  // bad ones, and all
    for (const Item* item : group) {
      if (!item->between_gpus()) return {};
      for (const int gpu : {item->copy.from, item->copy.to}) {
        counts[gpu].first += item->row.verdict == Verdict::fail ? 1 : 0;
        ++counts[gpu].second;
      }
    }
    std::vector<int> guilty;
    for (const auto& [gpu, count] : counts)
      if (count.second > 2 && count.first >= kMostOfIts * count.second) guilty.push_back(gpu);
    return 2 * guilty.size() < counts.size() ? guilty : std::vector<int>{};
  }

  static bool is_bad(const Item* item) {
    return item->row.verdict == Verdict::fail || item->row.verdict == Verdict::inconclusive;
  }

  /// What fails first, then what is slowest.
  static bool is_worse(const Item* a, const Item* b) {
    const auto rank = [](const Item* item) {
      constexpr std::array kWorst{Verdict::fail, Verdict::inconclusive, Verdict::missing, Verdict::pass};
      return std::pair{std::ranges::find(kWorst, item->row.verdict) - kWorst.begin(),
                       item->row.value ? item->row.value->median : 0};
    };
    return rank(a) < rank(b);
  }

  /// Comparable copies of a host are one row, beside those that are bad: these have their own, or their GPU
  /// has.
  void add_group(std::vector<const Item*> group, std::vector<CheckRow>& rows) const {
    const auto is_wrong = [](const Item* item) { return item->wrong > 0; };
    for (const Item* item : group)
      if (is_wrong(item)) rows.push_back(item->row);
    std::erase_if(group, is_wrong);
    for (const int gpu : blamed(group)) {
      const auto is_its = [&](const Item* item) {
        return is_bad(item) && (item->copy.from == gpu || item->copy.to == gpu);
      };
      std::vector<const Item*> its;
      std::ranges::copy_if(group, std::back_inserter(its), is_its);
      if (its.empty()) continue;
      std::erase_if(group, is_its);
      CheckRow& row = rows.emplace_back(together(its));
      const std::size_t host = its.front()->host;
      row.subject = fmt::format("{} of {}", place_name(host, gpu), checking_.site.hosts[host]);
    }
    if (2 * static_cast<std::size_t>(std::ranges::count_if(group, is_bad)) <= group.size()) {
      for (const Item* item : group)
        if (is_bad(item)) rows.push_back(item->row);
      std::erase_if(group, is_bad);
    }
    if (group.empty() || hosts_[group.front()->host].software) return;
    CheckRow& row = rows.emplace_back(together(group));
    row.subject = subject_of_group(*group.front());
  }

  static CheckRow together(const std::vector<const Item*>& group) {
    const Item* const worst = *std::ranges::min_element(group, is_worse);
    CheckRow row = worst->row;
    if (group.size() == 1) {
      row.why = fmt::format("{}: {}", worst->row.subject, row.why);
      return row;
    }
    const auto bad = std::ranges::count_if(group, is_bad);
    row.why = bad > 0 ? fmt::format("{} of {} such copies {}, the worst {}: {}", bad, group.size(),
                                    row.verdict == Verdict::fail ? "are bad" : "are unclear",
                                    worst->row.subject, row.why)
                      : fmt::format("The slowest of {} such copies, {}: {}", group.size(), worst->row.subject,
                                    row.why);
    return row;
  }

  const Checking& checking_;
  const CopyCheck& check_;
  GpuHosts hosts_;
  std::vector<std::vector<CopyJob>> jobs_;  // of each host
  std::vector<Item> items_;
};

}  // namespace

std::vector<CheckRow> judge_copies(const Checking& checking, const CopyCheck& check) {
  return Copies(checking, check).run();
}

}  // namespace polyring
