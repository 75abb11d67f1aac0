/* An MPI program that makes many communicators and many calls. Prints how much each process has grown since a
 * tenth of them.
 *
 *     mpi_growth interposed COMMUNICATORS CALLS    MPI's own, to be taken by a library that is preloaded
 *     mpi_growth library COMMUNICATORS             Polyring's, each from an MPI_Comm
 *
 * Exit code 1: a process has grown; 2: a call has failed; 7: a result is wrong. */
#include <polyring_mpi.h>
#include <stdlib.h>

#include "held.h"

enum { FEWEST = 1026, MOST = 1 << 16 };

static int rank, ranks;
static int input[MOST], output[MOST];

static void quit(int code, const char* why) {
  fprintf(stderr, "rank %d: %s\n", rank, why);
  MPI_Abort(MPI_COMM_WORLD, code);
}

static void must(polyring_result result) {
  if (result != POLYRING_SUCCESS) quit(2, polyring_error_text());
}

static int sum(int first) { return ranks * first + ranks * (ranks - 1) / 2; }

static void check(const int* data, int count, int first) {
  int i;
  for (i = 0; i < count; ++i)
    if (data[i] != sum(first + i % 3)) quit(7, "a sum is wrong");
}

static void fill(int count, int first) {
  int i;
  for (i = 0; i < count; ++i) input[i] = first + i % 3 + rank;
}

/* Of each rank, and a multiple of 3, since values come again after 3 elements. Few are large. */
static int block_of(long call) {
  const int block = call % 64 == 0 ? MOST / ranks - (int)(call % 999) : FEWEST + (int)(call * 31 % FEWEST);
  return block / 3 * 3;
}

static void one(MPI_Comm comm, long call) {
  const int block = block_of(call), count = block * ranks, first = (int)(call % 1000);
  int i;
  fill(count, first);
  if (call % 3 == 0) {
    MPI_Allreduce(input, output, count, MPI_INT, MPI_SUM, comm);
    check(output, count, first);
  } else if (call % 3 == 1) {
    MPI_Reduce_scatter_block(input, output, block, MPI_INT, MPI_SUM, comm);
    check(output, block, first);
  } else {
    MPI_Allgather(input, block, MPI_INT, output, block, MPI_INT, comm);
    for (i = 0; i < count; ++i)
      if (output[i] != first + i % 3 + i / block) quit(7, "what was gathered is wrong");
  }
}

static MPI_Comm next_comm(int number) {
  MPI_Comm comm;
  if (number % 2 == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  } else {
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
  }
  return comm;
}

static int end(const char* what, long number, Held before) {
  char who[64];
  snprintf(who, sizeof(who), "rank %d: %ld %s", rank, number, what);
  return held_more(who, before);
}

static int interposed(int communicators, long calls) {
  Held before = {0, 0, 0, 0};
  MPI_Comm comm;
  long i;
  int grown;
  for (i = 0; i < communicators; ++i) {
    if (i == communicators / 10) before = held_now();
    comm = next_comm((int)i);
    one(comm, i);
    MPI_Comm_free(&comm);
  }
  grown = end("communicators", communicators, before);
  for (i = 0; i < calls; ++i) {
    if (i == calls / 10) before = held_now();
    one(MPI_COMM_WORLD, i);
  }
  return end("calls", calls, before) | grown;
}

static int library(int communicators) {
  Held before = {0, 0, 0, 0};
  int i;
  for (i = 0; i < communicators; ++i) {
    polyring_comm comm;
    MPI_Comm mpi = next_comm(i);
    if (i == communicators / 10) before = held_now();
    must(polyring_comm_create_from_mpi(&comm, mpi, NULL));
    fill(FEWEST, i);
    must(polyring_allreduce(comm, input, output, FEWEST, POLYRING_INT32, POLYRING_SUM));
    check(output, FEWEST, i);
    must(polyring_comm_free(comm));
    MPI_Comm_free(&mpi);
  }
  return end("communicators", communicators, before);
}

int main(int argc, char** argv) {
  int grown = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 4 && strcmp(argv[1], "interposed") == 0) {
    grown = interposed(atoi(argv[2]), atol(argv[3]));
  } else if (argc == 3 && strcmp(argv[1], "library") == 0) {
    grown = library(atoi(argv[2]));
  } else {
    quit(6, "see the head of mpi_growth.c for the arguments");
  }
  fflush(stdout);
  MPI_Finalize();
  return grown;
}
