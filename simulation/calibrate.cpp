#include "simulation/calibrate.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <set>
#include <unsupported/Eigen/NonLinearOptimization>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/simulate.hpp"
#include "topology/path.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

/// Where nothing is stated the search begins here.
constexpr Seconds kLatency = microseconds(1);
constexpr Bandwidth kMemory = gigabytes_per_second(5);
constexpr Bandwidth kNetwork = gigabytes_per_second(1);

/// One standard deviation of the prior counts as an error of so much at one point.
constexpr double kPrior = 0.02;

/// Of a parameter's logarithm, for derivatives: above what near ties do to a simulated time.
constexpr double kStep = 0.1;

/// The runs do not tell a parameter whose logarithm is less certain than this.
constexpr double kUntold = 1;

/// What is stated, at most, of the links of a class that messages may cross.
struct Stated {
  bool there = false;
  Seconds latency;
  Bandwidth bandwidth;

  void widen(const Stated& other) {
    if (!other.there) return;
    *this = {true, std::max(latency, other.latency), std::max(bandwidth, other.bandwidth)};
  }
};

/// The links of a host that messages of its ranks cross, to each other and to other hosts.
std::set<int> crossed_links(const Machine& machine, bool several_hosts) {
  const std::vector<std::vector<int>> nics =
      several_hosts ? rank_nics(machine) : std::vector<std::vector<int>>{};
  std::set<int> crossed;
  const auto cross = [&](DeviceId from, DeviceId to) {
    for (const Hop& hop : path_between(machine, from, to).hops) crossed.insert(hop.link);
  };
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const DeviceId own = machine.rank_device(rank);
    for (int other = 0; other < rank; ++other) cross(own, machine.rank_device(other));
    if (!several_hosts) continue;
    for (const int nic : nics[index(rank)]) cross(own, {DeviceKind::nic, nic});
  }
  return crossed;
}

Stated stated_links(const Cluster& cluster, LinkClass wanted) {
  Stated stated;
  for (const HostGroup& group : cluster.groups) {
    for (const int crossed : crossed_links(group.machine, cluster.domain_count() > 1)) {
      const Link& link = group.machine.links[index(crossed)];
      // Links of unknown speed constrain nothing, except those of processes: they have no data sheet.
      if (class_of(link.kind) == wanted && (link.bandwidth.known() || wanted == LinkClass::memory))
        stated.widen({true, link.latency, link.bandwidth});
    }
  }
  return stated;
}

Stated stated_network(const Cluster& cluster) {
  Stated stated;
  for (const HostGroup& group : cluster.groups) {
    for (const Nic& nic : group.machine.nics)
      if (nic.up()) stated.widen({cluster.domain_count() > 1, cluster.fabric.latency, nic.bandwidth()});
  }
  return stated;
}

Stated stated_uplinks(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const bool leaves = fabric.hosts_per_leaf > 0 && cluster.host_count() > fabric.hosts_per_leaf;
  return {leaves && fabric.leaf_uplink.known(), fabric.spine_latency, fabric.leaf_uplink};
}

Stated stated(const Cluster& cluster, LinkClass wanted) {
  if (wanted == LinkClass::network) return stated_network(cluster);
  if (wanted == LinkClass::uplink) return stated_uplinks(cluster);
  return stated_links(cluster, wanted);
}

/// Where the search begins.
LinkFit start_of(LinkClass link, const Stated& stated) {
  LinkFit fit;
  fit.link = link;
  fit.latency = stated.latency.value > 0 ? stated.latency : kLatency;
  if (!stated.bandwidth.known()) fit.bandwidth = link == LinkClass::network ? kNetwork : kMemory;
  return fit;
}

/// Latencies and bandwidths (or shares) of the classes, as logarithms, one after another.
class Parameters {
 public:
  explicit Parameters(const std::vector<MeasuredPoint>& points) {
    for (const LinkClass link : kLinkClasses) {
      Stated most;
      for (const MeasuredPoint& point : points) most.widen(stated(point.cluster, link));
      if (most.there) start_.push_back(start_of(link, most));
    }
  }

  int count() const { return 2 * static_cast<int>(start_.size()); }

  Eigen::VectorXd start() const {
    Eigen::VectorXd x(count());
    for (int i = 0; i < count() / 2; ++i) {
      const LinkFit& fit = start_[static_cast<std::size_t>(i)];
      x[2 * i] = std::log(fit.latency.value);
      x[2 * i + 1] = std::log(fit.bandwidth.known() ? fit.bandwidth.value : fit.share);
    }
    return x;
  }

  std::vector<LinkFit> links(const Eigen::VectorXd& x) const {
    std::vector<LinkFit> links = start_;
    for (int i = 0; i < count() / 2; ++i) {
      LinkFit& fit = links[static_cast<std::size_t>(i)];
      fit.latency.value = std::exp(x[2 * i]);
      (fit.bandwidth.known() ? fit.bandwidth.value : fit.share) = std::exp(x[2 * i + 1]);
    }
    return links;
  }

 private:
  std::vector<LinkFit> start_;
};

/// The residuals of all points, then the prior's, as Eigen's solver asks for them.
class Residuals {
 public:
  Residuals(const std::vector<MeasuredPoint>& points, const Parameters& parameters)
      : points_(points), parameters_(parameters), start_(parameters.start()) {}

  int values() const { return static_cast<int>(points_.size()) + parameters_.count(); }

  int operator()(const Eigen::VectorXd& x, Eigen::VectorXd& residuals) const {
    Calibration calibration;
    calibration.links = parameters_.links(x);
    Eigen::Index i = 0;
    for (const MeasuredPoint& point : points_) {
      residuals[i++] = std::log(predict(point, calibration).value / point.time.value);
    }
    residuals.tail(x.size()) = kPrior * (x - start_);
    return 0;
  }

  int df(const Eigen::VectorXd& x, Eigen::MatrixXd& jacobian) const {
    Eigen::VectorXd above(values());
    Eigen::VectorXd below(values());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      Eigen::VectorXd moved = x;
      moved[i] = x[i] + kStep;
      (*this)(moved, above);
      moved[i] = x[i] - kStep;
      (*this)(moved, below);
      jacobian.col(i) = (above - below) / (2 * kStep);
    }
    return 0;
  }

 private:
  const std::vector<MeasuredPoint>& points_;
  const Parameters& parameters_;
  Eigen::VectorXd start_;
};

/// One standard error of each parameter's logarithm, from the spread of the points about the fit.
Eigen::VectorXd standard_errors(const Residuals& residuals, const Eigen::VectorXd& x, std::size_t points) {
  Eigen::VectorXd at(residuals.values());
  Eigen::MatrixXd jacobian(residuals.values(), x.size());
  residuals(x, at);
  residuals.df(x, jacobian);
  const double freedom = std::max(1.0, static_cast<double>(points) - static_cast<double>(x.size()));
  const Eigen::MatrixXd covariance = at.squaredNorm() / freedom * (jacobian.transpose() * jacobian).inverse();
  return covariance.diagonal().cwiseMax(0).cwiseSqrt();
}

void widen(CalibrationRange& range, const std::vector<MeasuredPoint>& points) {
  for (const MeasuredPoint& point : points) {
    const Bytes bytes{static_cast<std::uint64_t>(point.count) *
                      static_cast<std::uint64_t>(point.element_size)};
    range.most_ranks = std::max(range.most_ranks, point.cluster.ranks());
    range.most_hosts = std::max(range.most_hosts, point.cluster.host_count());
    range.least = range.least.value == 0 ? bytes : std::min(range.least, bytes);
    range.largest = std::max(range.largest, bytes);
  }
}

PredictionError error_at(const std::vector<MeasuredPoint>& points, const Calibration& calibration) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const MeasuredPoint& point : points) {
    predicted.push_back(predict(point, calibration).value);
    measured.push_back(point.time.value);
  }
  return prediction_error(predicted, measured);
}

std::optional<double> told(double error) { return error < kUntold ? std::optional(error) : std::nullopt; }

}  // namespace

Seconds predict(const MeasuredPoint& point, const Calibration& calibration) {
  const Cluster cluster = calibrated(point.cluster, calibration);
  const Router router(cluster);
  return simulate(make_schedule(point.plan, cluster.ranks(), point.count, point.element_size), cluster,
                  router, point.element_size)
      .time;
}

Calibration calibrate(const std::vector<MeasuredPoint>& points) {
  const Parameters parameters(points);
  if (parameters.count() == 0)
    usage_error("no message of these runs crosses a link; give runs of several ranks");
  if (static_cast<int>(points.size()) < parameters.count()) {
    usage_error("{} measured times cannot tell {} unknowns apart; give runs of more sizes or algorithms",
                points.size(), parameters.count());
  }
  Residuals residuals(points, parameters);
  Eigen::VectorXd x = parameters.start();
  Eigen::LevenbergMarquardt<Residuals> solver(residuals);
  solver.parameters.maxfev = 200;
  solver.parameters.ftol = 1e-6;
  solver.parameters.xtol = 1e-4;
  solver.minimize(x);

  Calibration calibration;
  calibration.links = parameters.links(x);
  const Eigen::VectorXd errors = standard_errors(residuals, x, points.size());
  for (std::size_t i = 0; i < calibration.links.size(); ++i) {
    calibration.links[i].latency_error = told(errors[static_cast<Eigen::Index>(2 * i)]);
    calibration.links[i].bandwidth_error = told(errors[static_cast<Eigen::Index>(2 * i + 1)]);
  }
  calibration.fitted = error_at(points, calibration);
  widen(calibration.range, points);
  return calibration;
}

Calibration with_check(Calibration calibration, const std::vector<MeasuredPoint>& others) {
  if (others.empty()) return calibration;
  calibration.checked = error_at(others, calibration);
  widen(calibration.range, others);
  return calibration;
}

}  // namespace polyring
