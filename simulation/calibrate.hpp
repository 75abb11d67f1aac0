// Fits a calibration to measured allreduces.
#pragma once

#include <string>

#include "collectives/schedule/plan.hpp"
#include "simulation/calibration.hpp"

namespace polyring {

/// An allreduce that was measured.
struct MeasuredPoint {
  Cluster cluster;  // as stated, with the ranks that ran
  Plan plan;
  Count count = 0;
  int element_size = 4;
  Seconds time;      // above 0
  std::string name;  // for people
};

/// How long the simulator takes it to be on links as calibrated.
Seconds predict(const MeasuredPoint& point, const Calibration& calibration);

/// The calibration whose predictions have the least sum of squared log(predicted / measured): fitted are
/// latency and bandwidth of each class that messages of the points cross and whose bandwidth is stated, or
/// that is memory. Where the points do not tell one of them, it stays near what is stated (a weak prior).
/// Throws a usage Error when there are fewer points than these, and as simulate() does.
Calibration calibrate(const std::vector<MeasuredPoint>& points);

/// The same with its errors at points that it was not fitted to, and its range widened to theirs.
Calibration with_check(Calibration calibration, const std::vector<MeasuredPoint>& others);

}  // namespace polyring
