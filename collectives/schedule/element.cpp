#include "collectives/schedule/element.hpp"

#include <array>

#include "base/error.hpp"
#include "base/names.hpp"

namespace polyring {
namespace {

struct KindRow {
  ElementKind kind;
  std::string_view name;
  std::string_view other_name;
  int size;
};

constexpr std::array kKinds{
    KindRow{ElementKind::float32, "float", "float32", 4},
    KindRow{ElementKind::float64, "double", "float64", 8},
    KindRow{ElementKind::float16, "half", "float16", 2},
    KindRow{ElementKind::bfloat16, "bfloat16", "bf16", 2},
    KindRow{ElementKind::int32, "int32", "int", 4},
    KindRow{ElementKind::int64, "int64", "long", 8},
};

struct OpRow {
  ReduceOp op;
  std::string_view name;
};

constexpr std::array kOps{OpRow{ReduceOp::sum, "sum"}, OpRow{ReduceOp::prod, "prod"},
                          OpRow{ReduceOp::min, "min"}, OpRow{ReduceOp::max, "max"},
                          OpRow{ReduceOp::avg, "avg"}};

const KindRow& row(ElementKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

int size_of(ElementKind kind) { return row(kind).size; }

Bytes bytes_of(Count count, ElementKind kind) { return {static_cast<std::uint64_t>(count * size_of(kind))}; }

bool is_integer(ElementKind kind) { return kind == ElementKind::int32 || kind == ElementKind::int64; }

ElementKind exact_partial(ElementKind kind, ReduceOp op) {
  const bool half = kind == ElementKind::float16 || kind == ElementKind::bfloat16;
  const bool computes = op != ReduceOp::min && op != ReduceOp::max;
  return half && computes ? ElementKind::float32 : kind;
}

std::string_view to_text(ElementKind kind) { return row(kind).name; }

std::vector<std::string> element_kind_names() {
  std::vector<std::string> names;
  for (const KindRow& known : kKinds) names.emplace_back(known.name);
  for (const KindRow& known : kKinds) names.emplace_back(known.other_name);
  return names;
}

ElementKind parse_element_kind(std::string_view text) {
  for (const KindRow& known : kKinds) {
    if (text == known.name || text == known.other_name) return known.kind;
  }
  throw Error(ExitCode::usage, unknown_name("type", text, element_kind_names()));
}

std::string_view to_text(ReduceOp op) { return kOps[static_cast<std::size_t>(op)].name; }

std::vector<std::string> reduce_op_names() {
  std::vector<std::string> names;
  for (const OpRow& known : kOps) names.emplace_back(known.name);
  return names;
}

ReduceOp parse_reduce_op(std::string_view text) {
  for (const OpRow& known : kOps) {
    if (text == known.name) return known.op;
  }
  throw Error(ExitCode::usage, unknown_name("operation", text, reduce_op_names()));
}

}  // namespace polyring
