#include "tests/software_gpu/nccl/operation.hpp"

#include <fmt/format.h>

#include <optional>

#include "collectives/runtime/kernels/table.hpp"

namespace polyring::software_nccl {
namespace {

struct Type {
  const char* name;
  std::size_t bytes;
  std::optional<ElementKind> kind;
};

const Type kTypes[] = {
    {"ncclInt8", 1, {}},
    {"ncclUint8", 1, {}},
    {"ncclInt32", 4, ElementKind::int32},
    {"ncclUint32", 4, {}},
    {"ncclInt64", 8, ElementKind::int64},
    {"ncclUint64", 8, {}},
    {"ncclFloat16", 2, ElementKind::float16},
    {"ncclFloat32", 4, ElementKind::float32},
    {"ncclFloat64", 8, ElementKind::float64},
    {"ncclBfloat16", 2, ElementKind::bfloat16},
    {"ncclFloat8e4m3", 1, {}},
    {"ncclFloat8e5m2", 1, {}},
};

struct Named {
  const char* name;
  ReduceOp op;
};

const Named kReductions[] = {{"ncclSum", ReduceOp::sum},
                             {"ncclProd", ReduceOp::prod},
                             {"ncclMax", ReduceOp::max},
                             {"ncclMin", ReduceOp::min},
                             {"ncclAvg", ReduceOp::avg}};

const Type* find(ncclDataType_t type) {
  return type >= 0 && type < static_cast<int>(std::size(kTypes)) ? &kTypes[type] : nullptr;
}

const Named* find(ncclRedOp_t reduction) {
  return reduction >= 0 && reduction < ncclNumOps ? &kReductions[reduction] : nullptr;
}

const char* call_of(What what) {
  switch (what) {
    case What::all_reduce:
      return "ncclAllReduce";
    case What::reduce_scatter:
      return "ncclReduceScatter";
    case What::all_gather:
      return "ncclAllGather";
    case What::send:
      return "ncclSend";
    case What::receive:
      return "ncclRecv";
  }
  return "";
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  const Type* const known = find(type);
  return known == nullptr ? 0 : known->bytes;
}

bool can_reduce(ncclDataType_t type, ncclRedOp_t reduction) {
  const Type* const known = find(type);
  return known != nullptr && known->kind && find(reduction) != nullptr;
}

std::string to_text(const Operation& operation) {
  const Type* const type = find(operation.type);
  std::string text = fmt::format("operation {}, {} of {} {}", operation.number, call_of(operation.what),
                                 operation.count, type == nullptr ? "?" : type->name);
  if (operation.what == What::all_reduce || operation.what == What::reduce_scatter) {
    const Named* const reduction = find(operation.reduction);
    text += fmt::format(" by {}", reduction == nullptr ? "?" : reduction->name);
  }
  if (operation.what == What::send) text += fmt::format(" to rank {}", operation.peer);
  if (operation.what == What::receive) text += fmt::format(" from rank {}", operation.peer);
  return text;
}

void reduce(const Operation& operation, std::byte* output, const std::vector<const std::byte*>& inputs) {
  const ElementKind kind = *find(operation.type)->kind;
  const ReduceOp op = find(operation.reduction)->op;
  const int divisor = op == ReduceOp::avg ? static_cast<int>(inputs.size()) : 1;
  if (operation.count == 0) return;
  // The kernels' own table, so that no more of Polyring is linked into this library.
  kPortableKernels.combine({{kind, op, divisor, kind},
                            &output,
                            1,
                            inputs.data(),
                            inputs.size(),
                            static_cast<std::size_t>(operation.count),
                            Stores::cached});
}

}  // namespace polyring::software_nccl
