// The file in which `polyring calibrate` keeps what it found: JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collectives/schedule/data_device.hpp"
#include "reports/result.hpp"
#include "simulation/calibration.hpp"

namespace polyring {

/// A calibration, and how it came about.
struct CalibrationRecord {
  std::string created;               // ISO 8601, UTC
  std::string command;               // the command line
  Source source = Source::measured;  // emulated when any of the runs was
  DataDevice device = DataDevice::cpu;
  std::vector<std::string> fitted_to;   // each run: its file, and what ran
  std::vector<std::string> checked_on;  // likewise
  Calibration calibration;
};

std::string calibration_text(const CalibrationRecord& record);

/// Throws a usage Error that names `file` unless `text` is of this format and no newer version, and every
/// number makes sense.
CalibrationRecord parse_calibration(const std::string& text, const std::string& file);

/// The same from a file. Throws as read_file() does, too.
CalibrationRecord read_calibration(const std::filesystem::path& path);

/// The same for a machine that is modelled, whose ranks are on its GPUs if it has any. Throws a usage Error
/// for one of GPUs where it has none. One of host memory is taken everywhere: it has the network.
CalibrationRecord read_calibration(const std::filesystem::path& path, const Cluster& modelled);

/// Throws a usage Error that names `file` unless it holds for data on this device.
void check_device(const CalibrationRecord& record, DataDevice device, const std::string& file);

/// "Calibrated on 24 emulated times of up to 16 ranks; at 60 others …": what is to be said where a table
/// rests on it.
std::string note_of(const CalibrationRecord& record);

}  // namespace polyring
