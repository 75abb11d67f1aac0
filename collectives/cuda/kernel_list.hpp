// All kernels: their names and their bodies. kernels.cu makes them for the GPU, kernel_table.cpp for the
// host.
#pragma once

#include "collectives/cuda/bodies/compare.hpp"
#include "collectives/cuda/bodies/copy.hpp"
#include "collectives/cuda/bodies/exchange.hpp"
#include "collectives/cuda/bodies/fill.hpp"
#include "collectives/cuda/bodies/messages.hpp"
#include "collectives/cuda/bodies/reduce.hpp"
#include "collectives/cuda/bodies/work.hpp"
#include "collectives/cuda/elements.hpp"

/// X(op, kind of the operands, kind of the results)
#define POLYRING_REDUCTIONS_BY(X, op) \
  X(op, float32, float32)             \
  X(op, float64, float64)             \
  X(op, float16, float16)             \
  X(op, bfloat16, bfloat16)           \
  X(op, int32, int32)                 \
  X(op, int64, int64)                 \
  X(op, float16, float32)             \
  X(op, bfloat16, float32)            \
  X(op, float32, float16)             \
  X(op, float32, bfloat16)

#define POLYRING_REDUCTIONS(X)    \
  POLYRING_REDUCTIONS_BY(X, sum)  \
  POLYRING_REDUCTIONS_BY(X, prod) \
  POLYRING_REDUCTIONS_BY(X, min)  \
  POLYRING_REDUCTIONS_BY(X, max)

/// X(what a kernel that is no reduction does, its body)
#define POLYRING_OTHERS(X)              \
  X(copy, ExchangeBody<CopyingOperand>) \
  X(messages, MessageBody)              \
  X(fill, FillBody)                     \
  X(compare, CompareBody)               \
  X(work, WorkBody)

#define POLYRING_REDUCTION_NAME(op, from, to) polyring_reduce_##op##_##from##_##to
#define POLYRING_REDUCTION_BODY(op, from, to) \
  ExchangeBody<Reducing<element::from, element::to, operation::op>>
#define POLYRING_OTHER_NAME(name) polyring_##name
