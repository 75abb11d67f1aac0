/* Two processes that make many communicators and run many operations by the C library, of all kinds, small
 * and large, blocking, started, and several at once. Prints how much each process has grown since a tenth of
 * them.
 *
 *     growth COMMUNICATORS OPERATIONS
 *
 * Exit code 1: a process has grown; 2: a call has failed; 7: a result is wrong. */
#include <polyring.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "held.h"

enum { RANKS = 2, MOST = 1 << 16, AT_ONCE = 8 };

static int rank;
static int32_t input[MOST], output[RANKS * MOST];
static int32_t started[AT_ONCE][1024];

static void must(polyring_result result) {
  if (result == POLYRING_SUCCESS) return;
  fprintf(stderr, "rank %d: %s\n", rank, polyring_error_text());
  _exit(2);
}

static void expect(int32_t value, int32_t expected, long operation) {
  if (value == expected) return;
  fprintf(stderr, "rank %d: operation %ld gave %d instead of %d\n", rank, operation, value, expected);
  _exit(7);
}

/* The same on all ranks. Few are large. */
static size_t count_of(long operation) {
  const uint32_t random = (uint32_t)operation * 2654435761u >> 8;
  return 1 + random % (operation % 64 == 0 ? (uint32_t)MOST : operation % 8 == 0 ? 4096u : 64u);
}

static int32_t value(int of, long operation, size_t i) {
  return (int32_t)((operation + of * 7) % 1000) + (int32_t)(i % 5);
}

static int32_t sum(long operation, size_t i) {
  int32_t all = 0;
  int of;
  for (of = 0; of < RANKS; ++of) all += value(of, operation, i);
  return all;
}

static void fill(int32_t* data, size_t count, long operation) {
  size_t i;
  for (i = 0; i < count; ++i) data[i] = value(rank, operation, i);
}

static void one(polyring_comm comm, long operation) {
  const size_t count = count_of(operation), block = (count + RANKS - 1) / RANKS;
  size_t i;
  switch (operation % 5) {
    case 0:
      fill(input, count, operation);
      must(polyring_allreduce(comm, input, output, count, POLYRING_INT32, POLYRING_SUM));
      for (i = 0; i < count; ++i) expect(output[i], sum(operation, i), operation);
      break;
    case 1:
      fill(output, RANKS * block, operation);
      must(polyring_reduce_scatter(comm, output, input, block, POLYRING_INT32, POLYRING_SUM));
      for (i = 0; i < block; ++i) expect(input[i], sum(operation, (size_t)rank * block + i), operation);
      break;
    case 2:
      fill(input, count, operation);
      must(polyring_allgather(comm, input, output, count, POLYRING_INT32));
      for (i = 0; i < RANKS * count; ++i)
        expect(output[i], value((int)(i / count), operation, i % count), operation);
      break;
    case 3:
      fill(output, count, operation);
      must(polyring_broadcast(comm, output, count, POLYRING_INT32, (int)(operation % RANKS)));
      for (i = 0; i < count; ++i) expect(output[i], value((int)(operation % RANKS), operation, i), operation);
      break;
    default:
      must(polyring_barrier(comm));
  }
}

/* Rank 1 waits in the other order, and rank 0 by asking. */
static void several(polyring_comm comm, long operation) {
  polyring_request requests[AT_ONCE];
  int k;
  for (k = 0; k < AT_ONCE; ++k) {
    const size_t count = 1 + count_of(operation + k) % 1024;
    fill(started[k], count, operation + k);
    must(polyring_start_allreduce(comm, started[k], started[k], count, POLYRING_INT32, POLYRING_SUM,
                                  &requests[k]));
  }
  for (k = 0; k < AT_ONCE; ++k) {
    const int which = rank == 0 ? k : AT_ONCE - 1 - k;
    const size_t count = 1 + count_of(operation + which) % 1024;
    size_t i;
    int done = 0;
    while (rank == 0 && !done) must(polyring_test(&requests[which], &done));
    must(polyring_wait(&requests[which]));
    for (i = 0; i < count; ++i) expect(started[which][i], sum(operation + which, i), operation + which);
  }
}

static polyring_unique_id next_id(const int* ends) {
  polyring_unique_id id;
  if (rank == 0) must(polyring_get_unique_id(&id));
  if (rank == 0 ? write(ends[1], &id, sizeof(id)) != (ssize_t)sizeof(id)
                : read(ends[0], &id, sizeof(id)) != (ssize_t)sizeof(id)) {
    perror("the id's pipe");
    _exit(2);
  }
  return id;
}

static polyring_comm next_comm(const int* ends, int number) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  polyring_comm comm;
  const polyring_unique_id id = next_id(ends);
  if (number % 2 != 0) options.transport = POLYRING_TRANSPORT_NETWORK, options.interface_name = "lo";
  must(polyring_comm_create(&comm, &id, rank, RANKS, &options));
  return comm;
}

static int run(const int* ends, long communicators, long operations) {
  Held before = {0, 0, 0, 0};
  polyring_comm comm;
  char who[64];
  long i;
  int grown;
  for (i = 0; i < communicators; ++i) {
    if (i == communicators / 10) before = held_now();
    comm = next_comm(ends, (int)i);
    one(comm, i);
    must(polyring_comm_free(comm));
  }
  snprintf(who, sizeof(who), "rank %d: %ld communicators", rank, communicators);
  grown = held_more(who, before);
  comm = next_comm(ends, 0);
  for (i = 0; i < operations; i += AT_ONCE) {
    const long last = i + AT_ONCE;
    if (i >= operations / 10 && i < operations / 10 + AT_ONCE) before = held_now();
    if (i / AT_ONCE % 2 == 0) {
      several(comm, i);
    } else {
      long k;
      for (k = i; k < last; ++k) one(comm, k);
    }
  }
  snprintf(who, sizeof(who), "rank %d: %ld operations", rank, operations);
  grown |= held_more(who, before);
  must(polyring_comm_free(comm));
  fflush(stdout);
  return grown;
}

int main(int argc, char** argv) {
  int ends[2], status = 0, own;
  pid_t child;
  if (argc != 3 || pipe(ends) != 0) {
    fprintf(stderr, "usage: %s COMMUNICATORS OPERATIONS\n", argv[0]);
    return 6;
  }
  child = fork();
  if (child < 0) return 2;
  rank = child == 0;
  own = run(ends, atol(argv[1]), atol(argv[2]));
  if (rank == 1) return own;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 2;
  return own != 0 ? own : WEXITSTATUS(status);
}
