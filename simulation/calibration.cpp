#include "simulation/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace polyring {
namespace {

void apply(const LinkFit& fit, Bandwidth& bandwidth) {
  bandwidth = bandwidth.known() ? fit.share * bandwidth : fit.bandwidth;
}

void apply(const Calibration& calibration, Machine& machine) {
  for (Link& link : machine.links) {
    const LinkFit* fit = calibration.find(class_of(link.kind));
    if (fit == nullptr) continue;
    apply(*fit, link.bandwidth);
    link.latency = fit->latency;
  }
  const LinkFit* network = calibration.find(LinkClass::network);
  if (network == nullptr) return;
  for (Nic& nic : machine.nics)
    for (Port& port : nic.ports) apply(*network, port.bandwidth);
}

void apply(const Calibration& calibration, Fabric& fabric) {
  const LinkFit* network = calibration.find(LinkClass::network);
  const LinkFit* uplink = calibration.find(LinkClass::uplink);
  if (network != nullptr) fabric.latency = network->latency;
  if (uplink != nullptr) fabric.spine_latency = uplink->latency;
  if (uplink == nullptr) uplink = network;
  if (uplink == nullptr) return;
  if (fabric.leaf_uplink.known()) apply(*uplink, fabric.leaf_uplink);
  for (Pods& pods : fabric.pods)
    if (pods.uplink.known()) apply(*uplink, pods.uplink);
}

}  // namespace

LinkClass class_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return LinkClass::nvlink;
    case LinkKind::xgmi:
      return LinkClass::xgmi;
    case LinkKind::c2c:
      return LinkClass::c2c;
    case LinkKind::pcie:
      return LinkClass::pcie;
    case LinkKind::socket_bus:
      return LinkClass::socket_bus;
    case LinkKind::memory:
      break;
  }
  return LinkClass::memory;
}

std::string_view to_text(LinkClass link) {
  switch (link) {
    case LinkClass::memory:
      return to_text(LinkKind::memory);
    case LinkClass::nvlink:
      return to_text(LinkKind::nvlink);
    case LinkClass::xgmi:
      return to_text(LinkKind::xgmi);
    case LinkClass::c2c:
      return to_text(LinkKind::c2c);
    case LinkClass::pcie:
      return to_text(LinkKind::pcie);
    case LinkClass::socket_bus:
      return to_text(LinkKind::socket_bus);
    case LinkClass::network:
      return "network";
    case LinkClass::uplink:
      return "uplink";
  }
  return "?";
}

const LinkFit* Calibration::find(LinkClass link) const {
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const LinkFit& fit) { return fit.link == link; });
  return found == links.end() ? nullptr : &*found;
}

PredictionError prediction_error(const std::vector<double>& predicted, const std::vector<double>& measured) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    errors.push_back(std::abs(predicted[i] / measured[i] - 1));
  std::sort(errors.begin(), errors.end());
  PredictionError result;
  result.points = static_cast<int>(errors.size());
  for (const double error : errors) result.mean += error / static_cast<double>(errors.size());
  result.worst = errors.back();
  const auto rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(errors.size())));
  result.spread = errors[rank - 1];
  return result;
}

std::vector<LinkClass> not_fitted(const Cluster& cluster, const Calibration& calibration, int ranks) {
  const Machine& host = cluster.host(0);
  const bool several = ranks > host.ranks();
  const auto crossed = [&](LinkClass wanted) {
    if (wanted == LinkClass::network) return several;
    if (wanted == LinkClass::uplink) return false;  // as the network
    return std::any_of(host.links.begin(), host.links.end(), [&](const Link& link) {
      return class_of(link.kind) == wanted && link.bandwidth.known();
    });
  };
  std::vector<LinkClass> all;
  for (const LinkClass link : kLinkClasses)
    if (crossed(link) && calibration.find(link) == nullptr) all.push_back(link);
  return all;
}

Cluster calibrated(Cluster cluster, const Calibration& calibration) {
  for (HostGroup& group : cluster.groups) apply(calibration, group.machine);
  apply(calibration, cluster.fabric);
  return cluster;
}

}  // namespace polyring
