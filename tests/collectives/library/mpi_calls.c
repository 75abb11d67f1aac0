/* An MPI program that knows nothing of Polyring: blocking collective calls of all kinds, compared with what
 * is known of their results. Prints what it makes of MPI_Allreduce, MPI_Reduce_scatter_block and
 * MPI_Allgather that should be taken by a library with a threshold of 64 KiB for all. Exit code 1 after a
 * wrong result. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 100003, SMALL = 600 };

static int rank, ranks, wrong;
static int taken[3]; /* allreduce, reduce-scatter, allgather */

static void check(int right, const char* what) {
  if (right) return;
  ++wrong;
  fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
}

/* Rank r gives r + 2 + i % 3, so that all results are whole numbers. */
#define DEFINE_ALLREDUCE(name, T)                                                                 \
  static T value_##name(int of, int i) { return (T)(of + 2 + i % 3); }                            \
  static T expected_##name(MPI_Op op, int size, int i) {                                          \
    T result = value_##name(0, i);                                                                \
    int other;                                                                                    \
    for (other = 1; other < size; ++other) {                                                      \
      const T value = value_##name(other, i);                                                     \
      if (op == MPI_SUM) result = (T)(result + value);                                            \
      if (op == MPI_PROD) result = (T)(result * value);                                           \
      if (op == MPI_MIN && value < result) result = value;                                        \
      if (op == MPI_MAX && value > result) result = value;                                        \
    }                                                                                             \
    return result;                                                                                \
  }                                                                                               \
  static void reduce_##name(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, int in_place, \
                            const char* what) {                                                   \
    T *in = malloc((size_t)count * sizeof(T)), *out = malloc((size_t)count * sizeof(T));          \
    int i, own, size, bad = 0;                                                                    \
    MPI_Comm_rank(comm, &own);                                                                    \
    MPI_Comm_size(comm, &size);                                                                   \
    for (i = 0; i < count; ++i) in[i] = value_##name(own, i), out[i] = in_place ? in[i] : (T)77;  \
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, type, op, comm);                      \
    for (i = 0; i < count; ++i) bad += out[i] != expected_##name(op, size, i);                    \
    check(bad == 0, what);                                                                        \
    free(in);                                                                                     \
    free(out);                                                                                    \
  }

#define DEFINE_REDUCE_SCATTER(name, T)                                                                  \
  static void scatter_##name(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int block, int in_place,      \
                             const char* what) {                                                        \
    int i, own, size, bad = 0;                                                                          \
    T *in, *out;                                                                                        \
    MPI_Comm_rank(comm, &own);                                                                          \
    MPI_Comm_size(comm, &size);                                                                         \
    in = malloc((size_t)(block * size) * sizeof(T)), out = malloc((size_t)block * sizeof(T));           \
    for (i = 0; i < block * size; ++i) in[i] = value_##name(own, i);                                    \
    MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, in_place ? in : out, block, type, op, comm); \
    for (i = 0; i < block; ++i)                                                                         \
      bad += (in_place ? in : out)[i] != expected_##name(op, size, own * block + i);                    \
    check(bad == 0, what);                                                                              \
    free(in);                                                                                           \
    free(out);                                                                                          \
  }

DEFINE_ALLREDUCE(float, float)
DEFINE_ALLREDUCE(double, double)
DEFINE_ALLREDUCE(int, int)
DEFINE_ALLREDUCE(long, long)
DEFINE_ALLREDUCE(unsigned, unsigned)
DEFINE_REDUCE_SCATTER(float, float)
DEFINE_REDUCE_SCATTER(double, double)
DEFINE_REDUCE_SCATTER(long, long)

static void reductions(MPI_Comm comm) {
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  int op, in_place;
  for (op = 0; op < 4; ++op) {
    for (in_place = 0; in_place < 2; ++in_place) {
      reduce_float(comm, MPI_FLOAT, ops[op], LARGE, in_place, "allreduce of floats");
      reduce_double(comm, MPI_DOUBLE, ops[op], LARGE, in_place, "allreduce of doubles");
      reduce_int(comm, MPI_INT, ops[op], LARGE, in_place, "allreduce of ints");
      reduce_long(comm, MPI_INT64_T, ops[op], LARGE, in_place, "allreduce of 64-bit ints");
      reduce_unsigned(comm, MPI_UNSIGNED, ops[op], LARGE, in_place, "allreduce of unsigned ints");
      taken[0] += op < 2 ? 5 : 4;
      scatter_float(comm, MPI_FLOAT, ops[op], LARGE, in_place, "reduce-scatter of floats");
      scatter_long(comm, MPI_LONG, ops[op], LARGE, in_place, "reduce-scatter of longs");
      taken[1] += 2;
    }
    reduce_int(comm, MPI_INT, ops[op], SMALL, 0, "allreduce of few ints");
    scatter_double(comm, MPI_DOUBLE, ops[op], SMALL, 0, "reduce-scatter of few doubles");
  }
}

/* Ranks describe the same bytes by different types: even ranks as ints, odd ones as pairs with a gap between
 * them. */
static void gathers(MPI_Comm comm) {
  int own, size, i, in_place, bad = 0;
  const int block = 40002;
  int *in = malloc(sizeof(int) * 2 * (size_t)block), *all;
  MPI_Datatype pairs, spread;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &size);
  all = malloc(sizeof(int) * 2 * (size_t)(block * size));
  MPI_Type_contiguous(2, MPI_INT, &pairs);
  MPI_Type_create_resized(pairs, 0, 4 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  for (in_place = 0; in_place < 2; ++in_place) {
    const int gaps = own % 2;
    memset(all, 0, sizeof(int) * 2 * (size_t)(block * size));
    for (i = 0; i < block; ++i) {
      const int at = gaps ? i / 2 * 4 + i % 2 : i;
      in[at] = 3 * own + i;
      if (in_place) all[(gaps ? 2 : 1) * own * block + at] = in[at];
    }
    if (gaps) {
      MPI_Allgather(in_place ? MPI_IN_PLACE : in, block / 2, spread, all, block / 2, spread, comm);
    } else {
      MPI_Allgather(in_place ? MPI_IN_PLACE : in, block, MPI_INT, all, block, MPI_INT, comm);
    }
    ++taken[2];
    for (i = 0; i < block * size; ++i) {
      const int of = i / block, element = i % block;
      bad += all[gaps ? (i / 2) * 4 + i % 2 : i] != 3 * of + element;
    }
  }
  check(bad == 0, "allgather");
  MPI_Allgather(in, 7, MPI_INT, all, 7, MPI_INT, comm);
  MPI_Type_free(&spread);
  MPI_Type_free(&pairs);
  free(in);
  free(all);
}

static int copies;
static int count_copy(MPI_Comm comm, int key, void* extra, void* value, void* copied, int* flag) {
  (void)comm, (void)key, (void)extra, (void)value, (void)copied;
  ++copies;
  return *flag = 0;
}

/* The library may not copy the program's attributes, nor its own. */
static void communicators(void) {
  MPI_Comm half, same;
  int key, i;
  MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
  for (i = 0; i < 20; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    reduce_float(same, MPI_FLOAT, MPI_SUM, LARGE, i % 2, "allreduce on a duplicate");
    ++taken[0];
    MPI_Comm_free(&same);
  }
  check(copies == 20, "an attribute was copied by a call that does not");
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &half);
  reduce_int(half, MPI_INT, MPI_SUM, LARGE, 0, "allreduce on a part");
  if (rank != 0 && ranks > 2) ++taken[0];
  MPI_Comm_dup(half, &same);
  reduce_int(same, MPI_INT, MPI_MAX, LARGE, 1, "allreduce on a part's duplicate"); /* and never freed */
  if (rank != 0 && ranks > 2) ++taken[0];
  MPI_Comm_free(&half);
  reduce_int(MPI_COMM_SELF, MPI_INT, MPI_SUM, LARGE, 0, "allreduce alone");
}

static void others(void) {
  int *in = malloc(sizeof(int) * LARGE), *out = malloc(sizeof(int) * LARGE);
  MPI_Request request;
  MPI_Comm half, both;
  int i, bad = 0;
  for (i = 0; i < LARGE; ++i) in[i] = rank + i;
  MPI_Iallreduce(in, out, LARGE, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  reduce_double(MPI_COMM_WORLD, MPI_DOUBLE, MPI_SUM, LARGE, 0, "allreduce beside a nonblocking one");
  ++taken[0];
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (i = 0; i < LARGE; ++i) bad += out[i] != ranks * i + ranks * (ranks - 1) / 2;
  MPI_Allreduce(in, out, LARGE, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
  for (i = 0; i < LARGE; ++i) {
    int of, any = 0;
    for (of = 0; of < ranks; ++of) any |= of + i;
    bad += out[i] != any;
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 5, &both);
  MPI_Allreduce(in, out, LARGE, MPI_INT, MPI_MAX, both);
  for (i = 0; i < LARGE; ++i) bad += out[i] != (rank == 0 ? ranks - 1 : 0) + i;
  check(bad == 0, "what is not taken");
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  reductions(MPI_COMM_WORLD);
  gathers(MPI_COMM_WORLD);
  communicators();
  others();
  printf("rank %d taken %d %d %d\n", rank, taken[0], taken[1], taken[2]);
  fflush(stdout);
  MPI_Finalize();
  return wrong != 0;
}
