// Bytes, Seconds and Bandwidth as types, and the one place where text such as `64MiB`, `200Gb/s` and `5us`
// is read and written.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace polyring {

/// A number of bytes.
struct Bytes {
  std::uint64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
};

/// A duration in seconds.
struct Seconds {
  double value = 0;
  auto operator<=>(const Seconds&) const = default;
};

/// Bytes per second, in one direction. 0 means unknown.
struct Bandwidth {
  double value = 0;
  auto operator<=>(const Bandwidth&) const = default;
  bool known() const { return value > 0; }
  double gigabytes_per_second() const { return value / 1e9; }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }
constexpr Seconds operator-(Seconds a, Seconds b) { return {a.value - b.value}; }
constexpr Seconds operator*(double factor, Seconds s) { return {factor * s.value}; }
constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) { return {a.value + b.value}; }
constexpr Bandwidth operator*(double factor, Bandwidth b) { return {factor * b.value}; }
constexpr Seconds operator/(Bytes bytes, Bandwidth bandwidth) {
  return {static_cast<double>(bytes.value) / bandwidth.value};
}

constexpr Bandwidth gigabytes_per_second(double gigabytes) { return {gigabytes * 1e9}; }
constexpr Bandwidth gigabits_per_second(double gigabits) { return {gigabits * 1e9 / 8}; }
constexpr Seconds microseconds(double us) { return {us * 1e-6}; }

/// Rounds to twelve significant digits, so that 40e9 / 1e9 and 0.6e-6 / 1e-6 print as people write them.
double rounded(double value);

/// With so many significant digits, without zeros behind the last decimal that says something, and never with
/// an exponent: "1240", "97", "0.0125". "?" of what is not finite.
std::string significant(double value, int digits = 3);

/// `8`, `1K`, `64M`, `2G`, `64KiB`, `64MiB` (all binary, as nccl-tests reads them), `100MB` and `1kB`
/// (decimal). Throws a usage Error that names `what` for anything else, such as a sign, a fraction of a byte,
/// or more than 2^63 − 1.
Bytes parse_bytes(std::string_view text, std::string_view what);

/// `25GB/s` (bytes) or `200Gb/s`, `200Gbit` (bits); k, M, G and T are powers of 1000. Throws a usage Error
/// for anything else, and outside of 1 B/s to 1e18 B/s.
Bandwidth parse_bandwidth(std::string_view text, std::string_view what);

/// `5us`, `1.5ms`, `2s`, `90ns`; a bare number is in seconds. Throws a usage Error for anything else, and
/// outside of 0 to 1e9 s.
Seconds parse_seconds(std::string_view text, std::string_view what);

/// An exact form that parse_bytes() reads: `64MiB` if a binary unit fits, else `100MB`, else plain bytes.
std::string to_text(Bytes bytes);
/// Three significant digits: `12.1 GB/s`, `125 MB/s`; `?` when unknown.
std::string to_text(Bandwidth bandwidth);
/// Three significant digits: `213 ms`, `5.00 us`.
std::string to_text(Seconds seconds);

}  // namespace polyring
