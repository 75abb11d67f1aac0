#include "bench/commands/accept_run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/index.hpp"
#include "base/memory_room.hpp"
#include "base/text.hpp"
#include "bench/accept/acceptance.hpp"
#include "bench/accept/baseline.hpp"
#include "bench/accept/earlier_run.hpp"
#include "bench/accept/expected_least.hpp"
#include "bench/accept/job_measurer.hpp"
#include "bench/accept/machine_like.hpp"
#include "bench/accept/rank_deaths.hpp"
#include "bench/accept/rounds.hpp"
#include "bench/accept/site.hpp"
#include "bench/accept/spec.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/plans/job_hosts.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/record/record.hpp"
#include "bench/record/result_file.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/process_watch.hpp"
#include "bench/session/session.hpp"
#include "reports/result_text.hpp"
#include "reports/tables.hpp"
#include "reports/verdicts.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

/// What the specification says, and of all else what the baseline says.
class SpecThenBaseline final : public GivenThresholds {
 public:
  SpecThenBaseline(const Specification& spec, const Baseline& baseline) : spec_(spec), baseline_(baseline) {}
  std::optional<Threshold> of(const Judged& judged) const override {
    const auto asked = spec_.of(judged);
    return asked ? asked : baseline_.of(judged);
  }
  std::optional<Bytes> size_of(std::string_view check) const override {
    const auto asked = spec_.size_of(check);
    return asked ? asked : baseline_.size_of(check);
  }

 private:
  const Specification& spec_;
  const Baseline& baseline_;
};

std::vector<CheckRow> rows_of(const ResultFile& result) {
  return std::get<std::vector<CheckRow>>(result.rows);
}

constexpr std::string_view kOfAllreduces =
    "That holds for the allreduces; between single rails the data were in host memory.";

class AcceptRun {
 public:
  AcceptRun(const AcceptOptions& options, const MeasuringRun& run)
      : options_(options), run_(run), world_(run.world) {}

  ExitCode run() {
    on_root(world_, [&] {
      for (const std::string& path : {options_.output, options_.junit, options_.prometheus})
        check_output(path);
      if (!options_.save_baseline.empty()) check_new_baseline(options_.save_baseline);
      if (!options_.like.empty()) machine_like(options_.like);
      if (!options_.fabric.empty()) fabric_ = read_fabric(options_.fabric);
      if (!options_.budget.empty()) budget_ = parse_timeout(options_.budget, "--budget");
      if (!options_.duration.empty()) duration_ = parse_timeout(options_.duration, "--duration");
      if (duration_.value > 0 && format() == Format::csv)
        usage_error(
            "--format csv has each row once, and so not what later rounds of --duration find; write them by "
            "-J "
            "FILE, or choose another --format");
      plan();
    });
    if (gpus().on_gpu()) gpu_ = choose_gpu(world_, need_gpu_plugin(), gpus());
    placement_ = gpu_ ? gpu_placement(world_, gpu_->pci) : placement_of(world_);
    const Site site = find_site(world_, run_.own_host, placement_, fabric_);
    const bool share_cores = world_.broadcast(site.hosts_share_cores() ? 1 : 0) == 1;
    world_.set_timeout(run_.timeout);
    most_payload_ = payload_that_fits();
    Session session(world_);
    JobMeasurer measurer(world_, run_.watchdog, run_.load, options_.transport, share_cores, gpu_);
    on_root(world_, [&] { open(session, site); });
    deaths_.tell_journal(session);
    {
      const ProcessWatch watch(world_, [this](const ProcessEnd& end) { deaths_.has_ended(end); });
      session.on_failure([&](ExitCode code) {
        watch.give_up(code);
        if (world_.rank() == 0) return;
        std::this_thread::sleep_for(ProcessWatch::kUntilTold);  // before the launcher ends rank 0
      });
      const NoMore no_more{session};
      if (!watch.works() && world_.rank() == 0)
        session.add_note(
            "Rank 0 cannot be reached by TCP from all others: a rank that dies is noticed by the time limit "
            "alone.");
      if (world_.rank() == 0) {
        judge(session, site, measurer);
      } else {
        measurer.serve([&] { session.keep(world_, std::vector<CheckRow>{}, 0, 0); });
      }
    }
    run_.add_conditions(session, options_.algorithms);
    on_root(world_, [&] { finish(session); });
    return static_cast<ExitCode>(world_.broadcast(static_cast<int>(code_)));
  }

 private:
  /// What is to be done on failure is, until here.
  struct NoMore {
    Session& session;
    ~NoMore() { session.on_failure({}); }
  };

  void plan() {
    if (!options_.resume.empty()) earlier_ = read_earlier_run(options_.resume, duration_.value > 0);
    if (!options_.spec.empty()) spec_ = read_spec(options_.spec, checks());
    const bool by_option = !options_.checks.empty();
    const std::vector<std::string>& wanted = by_option ? options_.checks : spec_.checks;
    asked_by_ = by_option                     ? "--checks"
                : spec_.checks_source.empty() ? "spec " + options_.spec
                                              : spec_.checks_source;
    for (const Check* check : checks()) {
      const bool named = std::ranges::find(wanted, check->name) != wanted.end();
      // What a specification has a reference for must not go missing.
      const bool asked_for = named || (!by_option && spec_.refers_to(check->name));
      if (wanted.empty() || asked_for) planned_.push_back({check, asked_for, earlier_.rows_of(check->name)});
    }
    const double tolerance =
        parse_tolerance(options_.tolerance.empty() ? kBaselineTolerance : options_.tolerance);
    if (!options_.baseline.empty()) baseline_ = read_baseline(options_.baseline, tolerance);
    if (options_.baseline.empty() && !options_.tolerance.empty())
      usage_error("--tolerance is how far a value may be from a baseline's; give --baseline FILE, too");
  }

  const GpuOptions& gpus() const { return options_.transport.gpu; }

  /// Collective. So that all buffers of all ranks fit into a part of the memory that is left, on every host
  /// and GPU.
  Bytes payload_that_fits() const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
    constexpr std::uint64_t kBuffers = 8;  // of a measurement, and as much again for others
    const MemoryRoom room = memory_room(world_, gpus());
    std::uint64_t least = kMost * kBuffers * static_cast<std::uint64_t>(world_.size());
    for (const std::optional<Bytes>& one : {room.host, room.cgroup, room.shared_files, room.address_space})
      if (one) least = std::min(least, one->value);
    std::uint64_t neighbours = 0;
    for (Rank rank = 0; rank < world_.size(); ++rank) neighbours += world_.shares_host_with(rank) ? 1 : 0;
    double fits = static_cast<double>(least / (kBuffers * neighbours));
    if (room.gpu) {
      const RankHost& own = placement_[index(world_.rank())];
      const auto sharers = std::ranges::count_if(
          placement_, [&](const RankHost& place) { return place.host == own.host && place.gpu == own.gpu; });
      const auto buffers = kBuffers * static_cast<std::uint64_t>(sharers);
      fits = std::min(fits, static_cast<double>(room.gpu->value / buffers));
    }
    return {std::min(kMost, static_cast<std::uint64_t>(-world_.max(-fits)))};
  }

  void open(Session& session, const Site& site) {
    Session::Outline outline;
    outline.output = options_.output;
    outline.header = run_.header(nullptr);
    outline.header.rows = std::vector<CheckRow>{};
    const Inventory hosts = recorded_hosts(site);
    if (!hosts.cluster.groups.empty()) outline.header.machine = probe_json(hosts);
    outline.header.inputs = {
        {"algorithm", options_.algorithms.front(), "--algorithm"},
        {"transport", options_.transport.transport + options_.transport.interface, "--transport"}};
    if (gpus().on_gpu()) {
      outline.header.inputs.push_back({"device", gpus().device, "--device"});
      gpus().describe(outline.header, JobHosts{{}, placement_}, kOfAllreduces);
    }
    if (fabric_) outline.header.inputs.push_back({"fabric", fabric_->source, "--fabric"});
    outline.header.leaves = recorded_leaves(site);
    if (duration_.value > 0) outline.header.rounds = Rounds{};
    for (const PlannedCheck& one : planned_)
      outline.header.inputs.push_back(
          {std::string(kPlannedCheck), std::string(one.check->name), one.asked_for ? asked_by_ : "default"});
    baseline_.check_comparable(outline.header, hosts);
    earlier_.check_same(outline.header, hosts);
    outline.planned = planned_.size();
    const CheckOptions how = check_options(site);
    outline.title = fmt::format("acceptance of {} with {}{}, {}\n\n", counted(world_.nodes(), "host"),
                                counted(world_.size(), "rank"), gpu_ ? " on GPUs" : "", world_.kind());
    outline.table = [](const Rows& rows) { return check_table(std::get<std::vector<CheckRow>>(rows)); };
    std::vector<CheckRow> wide;
    for (const PlannedCheck& one : planned_) {
      outline.weights.push_back(std::max(0.1, static_cast<double>(one.check->turns(site, how))));
      wide.push_back(widest(*one.check));
    }
    outline.expected = check_table(wide);
    outline.ends_early = [this](const ResultFile& so_far, const std::string& why, ExitCode code) {
      return judge_early(so_far, why, code);
    };
    session.open(std::move(outline));
    for (const std::string& note : site.notes) session.add_note(note);
    tell_resumed(session);
  }

  void tell_resumed(Session& session) const {
    if (options_.resume.empty()) return;
    std::vector<std::string> what;
    if (const auto& rounds = earlier_.rounds()) {
      if (rounds->whole > 0) what.push_back(counted(rounds->whole, "round"));
      what.insert(what.end(), rounds->checks.begin(), rounds->checks.end());
    }
    for (const PlannedCheck& one : planned_)
      if (!one.judged.empty()) what.emplace_back(one.check->name);
    session.add_note(fmt::format("Resumed from {}: {} as judged then.", options_.resume,
                                 what.empty() ? "nothing" : fmt::format("{}", fmt::join(what, ", "))));
  }

  /// As wide as its line gets to be.
  static CheckRow widest(const Check& check) {
    CheckRow row;
    row.check = check.name;
    row.verdict = Verdict::inconclusive;
    if (check.quantities.empty()) return row;
    row.quantity = check.quantities.front().name;
    row.unit = check.quantities.front().unit;
    row.value = exact_timing(99.99);
    row.least = row.most = 99.99;
    return row;
  }

  CheckOptions check_options(const Site& site) const {
    CheckOptions options;
    options.algorithm = options_.algorithms.front();
    options.algorithms = options_.algorithms;
    options.attempts = options_.attempts;
    options.like = options_.like;
    options.data = options_.data;
    options.device = gpus().data_device();
    options.software_gpus = gpus().is_software();
    options.model = options_.model;
    options.most_payload = most_payload_;
    options.turn = turn_in(budget_, planned_, site, options);
    return options;
  }

  static Seconds since(std::chrono::steady_clock::time_point begin) {
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  }

  void judge(Session& session, const Site& site, JobMeasurer& measurer) {
    const SpecThenBaseline given(spec_, baseline_);
    const ExpectedLeast expected = expected_least;
    const CheckOptions how = check_options(site);
    const Checking checking{measurer, site, given,
                            expected, how,  [&](const std::string& what) { session.show(what); }};
    const auto keep = [&](const auto&... what) {
      measurer.together();
      session.keep(world_, what...);
      session.print_rows();
    };
    const std::vector<CheckRow> all =
        duration_.value > 0 ? judge_rounds(session, checking, keep) : judge_once(session, checking, keep);
    const std::vector<CheckRow> unmet = spec_.unmet(all);
    if (!unmet.empty()) keep(unmet, all.size(), planned_.size());
    measurer.finish();
  }

  std::vector<CheckRow> judge_once(Session& session, const Checking& checking, const auto& keep) {
    const auto began = std::chrono::steady_clock::now();
    const Budget budget(budget_, [&] { return since(began); });
    std::vector<CheckRow> all;
    std::uint64_t done = 0;
    run(session, planned_, checking, budget, [&](const Check&, const std::vector<CheckRow>& rows) {
      keep(rows, all.size(), ++done);
      all.insert(all.end(), rows.begin(), rows.end());
    });
    return all;
  }

  /// From where an earlier run has come to.
  std::vector<CheckRow> judge_rounds(Session& session, const Checking& checking, const auto& keep) {
    const auto began = std::chrono::steady_clock::now();
    Rounds rounds = earlier_.rounds().value_or(Rounds{});
    std::vector<CheckRow> all = earlier_.rows_of_rounds();
    const double before = rounds.seconds;
    const auto keep_change = [&](const RoundChange& change) {
      keep(change, rounds.whole > 0 ? planned_.size() : rounds.checks.size());
    };
    if (!all.empty()) keep_change(change_of(all, rounds));
    while (!is_over(rounds, duration_)) {
      const auto round_began = std::chrono::steady_clock::now();
      const Budget budget(budget_, [&] { return since(round_began); });
      std::vector<CheckRow> own;
      run(session, planned_without(rounds.checks), checking, budget,
          [&](const Check& check, const std::vector<CheckRow>& rows) {
            const std::vector<CheckRow> so_far = all;
            add_round(all, rows, rounds.whole + 1);
            rounds.checks.emplace_back(check.name);
            rounds.seconds = before + since(began).value;
            keep_change(change_of(so_far, all, rounds));
            own.insert(own.end(), rows.begin(), rows.end());
          });
      if (rounds.whole > 0) tell_round(session, own, rounds.whole + 1);
      rounds = {rounds.whole + 1, {}, before + since(began).value};
      keep_change(RoundChange{rounds});
      if (!is_over(rounds, duration_)) tell_programs(session, all);
    }
    keep_change(change_of(all, rounds));
    session.add_note(
        fmt::format("{} in {}.", counted(rounds.whole, "round"), to_text(Seconds{rounds.seconds})));
    for (const std::string& drift : drifts(all)) session.add_note(drift);
    return all;
  }

  void run(Session& session, const std::vector<PlannedCheck>& planned, const Checking& checking,
           const Budget& budget,
           const std::function<void(const Check&, const std::vector<CheckRow>&)>& ended) {
    const Check* current = nullptr;
    const AcceptanceObserver observer{[&](const Check& check) {
                                        current = &check;
                                        session.step(std::string(check.name));
                                      },
                                      [&](const std::vector<CheckRow>& rows) { ended(*current, rows); }};
    const ExitCode failed = run_checks(planned, checking, budget, observer);
    if (failed != ExitCode::ok) of_errors_ = failed;
  }

  std::vector<PlannedCheck> planned_without(const std::vector<std::string>& names) const {
    std::vector<PlannedCheck> left;
    std::ranges::copy_if(planned_, std::back_inserter(left), [&](const PlannedCheck& one) {
      return std::ranges::find(names, one.check->name) == names.end();
    });
    return left;
  }

  /// What watches a long run reads these after each round.
  void tell_programs(const Session& session, const std::vector<CheckRow>& rows) const {
    ResultFile so_far = session.result();
    so_far.rows = rows;
    try {
      write_for_programs(so_far);
    } catch (const Error& error) {  // in the end there may be room again
      warn("{}", error.what());
    }
  }

  static void tell_round(Session& session, std::span<const CheckRow> rows, int round) {
    std::vector<CheckRow> judged;
    std::ranges::copy_if(rows, std::back_inserter(judged),
                         [](const CheckRow& row) { return is_judgement(row.verdict); });
    if (overall(judged) == Verdict::pass) return;
    for (const std::string& line : findings(judged))
      session.remark(fmt::format("round {}: {}\n", round, line));
  }

  /// The verdict of a job that comes to no end. A launcher that notices first that a rank is gone ends rank 0
  /// by a signal: then it is told here who that was.
  EarlyEnd judge_early(ResultFile so_far, const std::string& why, ExitCode code) {
    constexpr std::chrono::milliseconds kUntilSeen{100};
    const Rank dead = deaths_.dead_within(kUntilSeen);
    const std::lock_guard lock(early_);
    if (judged_early_) return {code_};
    judged_early_ = true;
    code_ = code;
    auto& rows = std::get<std::vector<CheckRow>>(so_far.rows);
    const auto known = static_cast<std::ptrdiff_t>(rows.size());
    complete(so_far, why);
    if (dead >= 0) rows.push_back(row_of_dead_rank(dead, world_.host(dead)));
    code_ = exit_code(rows, code);
    std::string text;
    for (const std::string& line : findings(rows)) text += line + "\n";
    if (options_.drain) text += "\n" + slurm_drain_list(rows);
    print_out("\n{}\n{}\n", text, summary(rows));
    if (options_.nagios) code_ = print_nagios(rows);
    write_for_programs(so_far);
    return {code_, std::vector<CheckRow>(rows.begin() + known, rows.end())};
  }

  static ExitCode print_nagios(std::span<const CheckRow> rows) {
    const NagiosStatus status = nagios_status(rows);
    print_result(status.line + "\n");
    return static_cast<ExitCode>(status.code);
  }

  void finish(Session& session) {
    const std::vector<CheckRow> rows = rows_of(session.result());
    code_ = exit_code(rows, of_errors_);
    std::string text = "\n";
    for (const std::string& line : findings(rows)) text += line + "\n";
    for (const std::string& note : session.result().notes) text += fmt::format("\n{}\n", note);
    session.remark(text);
    if (options_.drain) print_out("\n{}", slurm_drain_list(rows));
    // What a full disk or a lost folder may refuse is written when the result is safe.
    session.finish([&](const ResultFile& result) { return write_output(options_.output, result); });
    session.remark(fmt::format("\n{}\n", summary(rows)));
    if (options_.nagios) code_ = print_nagios(rows);
    write_for_programs(session.result());
    save_baseline(session);
  }

  void save_baseline(Session& session) const {
    const std::string& path = options_.save_baseline;
    if (path.empty()) return;
    const std::string why = why_no_baseline(session.result());
    if (why.empty())
      session.remark(fmt::format("\nBaseline written to {}\n",
                                 create_file(path, result_text(session.result())).string()));
    else
      warn("no baseline is written to '{}': {}", path, why);
  }

  /// These have a fixed name, where other programs look for them.
  void write_for_programs(const ResultFile& result) const {
    const auto write = [](const std::string& path, const std::string& text) {
      if (!path.empty()) update_file(path, [&](const auto&) { return text; });
    };
    const std::vector<CheckRow> rows = rows_of(result);
    write(options_.junit, junit_xml(rows));
    write(options_.prometheus, prometheus_text(rows, result.created));
  }

  const AcceptOptions& options_;
  const MeasuringRun& run_;
  World& world_;
  std::optional<GpuDevice> gpu_;  // this rank's
  std::vector<RankHost> placement_;
  Bytes most_payload_;
  RankDeaths deaths_{world_};
  // On rank 0:
  Specification spec_;
  Baseline baseline_;
  EarlierRun earlier_;
  std::optional<FabricMap> fabric_;
  std::vector<PlannedCheck> planned_;
  std::string asked_by_;  // "--checks", or where the specification names them
  Seconds budget_;        // of a round; 0: none
  Seconds duration_;      // 0: one round
  std::mutex early_;
  bool judged_early_ = false;
  ExitCode of_errors_ = ExitCode::ok;
  ExitCode code_ = ExitCode::ok;
};

}  // namespace

ExitCode accept(const AcceptOptions& options, const MeasuringRun& run) {
  return AcceptRun(options, run).run();
}

}  // namespace polyring
