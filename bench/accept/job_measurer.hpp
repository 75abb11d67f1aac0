// Measures on the ranks of a job: rank 0 calls, and the others serve.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/accept/measurer.hpp"
#include "bench/contenders/transport_option.hpp"
#include "bench/record/host_load.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

class JobMeasurer final : public Measurer {
 public:
  /// Keeps the references. `load`: made when the job began. `hosts_share_cores`: see Site. `gpu`: this
  /// rank's, on which the data of allreduce() and verify() are.
  JobMeasurer(World& world, Watchdog& watchdog, const LoadWatch& load, const TransportOptions& transport,
              bool hosts_share_cores, std::optional<GpuDevice> gpu);

  // On rank 0.
  std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override;
  std::vector<WrongRanks> verify(const std::vector<RankGroup>& groups, const std::string& algorithm,
                                 const std::vector<ResultCase>& cases) override;
  std::vector<std::vector<double>> compute_us(Seconds piece, int times) override;
  TrainTimes train(const TrainWork& work) override;
  std::vector<HostReply> ask(const std::string& check, const std::string& question) override;
  std::vector<HostConditions> conditions() override;
  /// Has the others do what `also` is to them, while rank 0 does something collective by itself.
  void together();
  /// The others return from serve().
  void finish();

  /// On the others, until finish(). `also`: what they do where rank 0 calls together().
  void serve(const std::function<void()>& also);

 private:
  struct Order;
  struct Turns;

  template <typename Work>
  auto on_all_ranks(Work&& work) const;
  void tell(const Order& order) const;
  void obey(const Order& order, const std::function<void()>& also);
  template <typename Work>
  std::vector<std::vector<std::vector<double>>> in_groups(const std::vector<RankGroup>& groups, Work&& work);
  std::vector<GroupResult> do_allreduce(const Order& order);
  std::vector<WrongRanks> do_verify(const Order& order);
  Turns turns_of_machine() const;
  std::vector<std::vector<double>> do_compute(const Order& order);
  TrainTimes do_train(const TrainWork& work);
  std::vector<HostReply> do_answer(const Order& order);

  World& world_;
  Watchdog& watchdog_;
  const LoadWatch& load_;
  TransportOptions transport_;  // with GPUs where there is one
  bool hosts_share_cores_;
  std::optional<GpuDevice> gpu_;
};

}  // namespace polyring
