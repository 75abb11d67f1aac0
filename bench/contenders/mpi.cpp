#include "bench/contenders/mpi.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "bench/contenders/mpi_call.hpp"
#include "collectives/runtime/kernels.hpp"

/// Of Open MPI and of MPICH, where they have it.
extern "C" __attribute__((weak)) int MPIX_Query_cuda_support();

namespace polyring {
namespace {

/// MPI calls this with nothing but the buffers, so that there is one function for each kind and operation.
template <ElementKind kind, ReduceOp op>
void combine_for_mpi(void* in, void* in_out, int* count, MPI_Datatype*) {
  auto* result = static_cast<std::byte*>(in_out);
  combine_on_host(kind, op, result, result, static_cast<const std::byte*>(in), *count);
}

template <ElementKind kind>
MPI_User_function* user_function(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return combine_for_mpi<kind, ReduceOp::sum>;
    case ReduceOp::prod:
      return combine_for_mpi<kind, ReduceOp::prod>;
    case ReduceOp::min:
      return combine_for_mpi<kind, ReduceOp::min>;
    case ReduceOp::max:
      return combine_for_mpi<kind, ReduceOp::max>;
  }
  return nullptr;
}

MPI_Op builtin_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

MPI_Datatype builtin_type(ElementKind kind) {
  switch (kind) {
    case ElementKind::float32:
      return MPI_FLOAT;
    case ElementKind::float64:
      return MPI_DOUBLE;
    case ElementKind::int32:
      return MPI_INT32_T;
    case ElementKind::int64:
      return MPI_INT64_T;
    case ElementKind::float16:
    case ElementKind::bfloat16:
      break;
  }
  return MPI_DATATYPE_NULL;
}

/// What MPI calls a kind and an operation.
class MpiReduction {
 public:
  MpiReduction(ElementKind kind, ReduceOp op) : type_(builtin_type(kind)), op_(builtin_op(op)) {
    if (type_ != MPI_DATATYPE_NULL) return;
    owns_ = true;
    check_mpi(MPI_Type_contiguous(size_of(kind), MPI_BYTE, &type_), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    MPI_User_function* function = kind == ElementKind::float16 ? user_function<ElementKind::float16>(op)
                                                               : user_function<ElementKind::bfloat16>(op);
    check_mpi(MPI_Op_create(function, 1, &op_), "MPI_Op_create");
  }
  ~MpiReduction() {
    if (!owns_) return;
    MPI_Op_free(&op_);
    MPI_Type_free(&type_);
  }
  MpiReduction(const MpiReduction&) = delete;
  MpiReduction& operator=(const MpiReduction&) = delete;

  MPI_Datatype type() const { return type_; }
  MPI_Op op() const { return op_; }

 private:
  MPI_Datatype type_;
  MPI_Op op_;
  bool owns_ = false;
};

class MpiAllreduce final : public CollectiveCall {
 public:
  MpiAllreduce(const MpiWorld& world, MpiCall call, ElementKind kind, ReduceOp op, Count count)
      : world_(world), call_(std::move(call)), kind_(kind), op_(op), count_(count), mpi_(kind, op) {}

  std::string algorithm() const override { return call_.algorithm; }
  std::string implementation() const override { return MpiWorld::library(); }

  bool keeps_time_limit() const override { return false; }

  void run(const std::byte* input, std::byte* output) override {
    constexpr Count kMostAtOnce = Count{1} << 30;
    for (const MpiSetting& setting : call_.settings) setting.control->write(setting.during);
    for (Count begin = 0; begin < count_; begin += kMostAtOnce) {
      const Count offset = begin * size_of(kind_);
      const auto count = static_cast<int>(std::min(kMostAtOnce, count_ - begin));
      const void* from = input == output ? MPI_IN_PLACE : static_cast<const void*>(input + offset);
      check_mpi(MPI_Allreduce(from, output + offset, count, mpi_.type(), mpi_.op(), call_.comm),
                "MPI_Allreduce");
    }
    for (const MpiSetting& setting : call_.settings) setting.control->write(setting.otherwise);
    if (op_ == ReduceOp::avg) divide_on_host(kind_, output, count_, world_.size());
  }

 private:
  const MpiWorld& world_;
  MpiCall call_;
  ElementKind kind_;
  ReduceOp op_;
  Count count_;
  MpiReduction mpi_;
};

/// The collectives with a block for each rank. MPI's reduce-scatter in place leaves the result in the first
/// block, not in the rank's own.
class MpiBlocks final : public CollectiveCall {
 public:
  MpiBlocks(Collective collective, const MpiWorld& world, ElementKind kind, ReduceOp op, Count count)
      : collective_(collective), world_(world), kind_(kind), op_(op), mpi_(kind, op) {
    check_mpi_count(collective, world.size(), count);
    block_ = static_cast<int>(count / world.size());
  }

  std::string algorithm() const override { return "mpi"; }
  std::string implementation() const override { return MpiWorld::library(); }
  bool keeps_time_limit() const override { return false; }

  void run(const std::byte* input, std::byte* output) override {
    const MPI_Comm comm = world_.handle().comm;
    const MPI_Datatype type = mpi_.type();
    if (collective_ == Collective::reduce_scatter) {
      check_mpi(MPI_Reduce_scatter_block(input, output, block_, type, mpi_.op(), comm),
                mpi_function(collective_));
      if (op_ == ReduceOp::avg) divide_on_host(kind_, output, block_, world_.size());
    } else if (collective_ == Collective::allgather) {
      const bool in_place = input == output + Count{world_.rank()} * block_ * size_of(kind_);
      check_mpi(MPI_Allgather(in_place ? MPI_IN_PLACE : static_cast<const void*>(input), block_, type, output,
                              block_, type, comm),
                "MPI_Allgather");
    } else {
      check_mpi(MPI_Alltoall(input, block_, type, output, block_, type, comm), "MPI_Alltoall");
    }
  }

 private:
  Collective collective_;
  const MpiWorld& world_;
  ElementKind kind_;
  ReduceOp op_;
  MpiReduction mpi_;
  int block_ = 0;
};

}  // namespace

bool mpi_takes_gpu_memory(Collective collective, ElementKind kind, ReduceOp op) {
  const bool by_us = reduces(collective) && (builtin_type(kind) == MPI_DATATYPE_NULL || op == ReduceOp::avg);
  return !by_us && MPIX_Query_cuda_support != nullptr && MPIX_Query_cuda_support() == 1;
}

std::unique_ptr<CollectiveCall> make_mpi_allreduce(const MpiWorld& world, MpiCall call, ElementKind kind,
                                                   ReduceOp op, Count count) {
  return std::make_unique<MpiAllreduce>(world, std::move(call), kind, op, count);
}

std::unique_ptr<CollectiveCall> make_mpi_allreduce(const MpiWorld& world, ElementKind kind, ReduceOp op,
                                                   Count count) {
  return make_mpi_allreduce(world, {"mpi", world.handle().comm, {}}, kind, op, count);
}

std::string mpi_function(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "MPI_Allreduce";
    case Collective::reduce_scatter:
      return "MPI_Reduce_scatter_block";
    case Collective::allgather:
      return "MPI_Allgather";
    case Collective::alltoall:
      return "MPI_Alltoall";
  }
  return "";
}

void check_mpi_count(Collective collective, int ranks, Count count) {
  constexpr Count kMost = std::numeric_limits<int>::max();
  if (collective == Collective::allreduce || count / ranks <= kMost) return;
  usage_error("{} takes blocks of {} elements at most, and the largest here has {}; give a smaller size",
              mpi_function(collective), kMost, count / ranks);
}

std::unique_ptr<CollectiveCall> make_mpi_call(Collective collective, const MpiWorld& world, ElementKind kind,
                                              ReduceOp op, Count count) {
  if (collective == Collective::allreduce) return make_mpi_allreduce(world, kind, op, count);
  return std::make_unique<MpiBlocks>(collective, world, kind, op, count);
}

}  // namespace polyring
