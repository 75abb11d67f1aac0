/* An allreduce in C, between processes that no MPI has started. Rank 0 leaves its id in a file that all ranks
 * see:
 *
 *     cc -std=c99 allreduce.c -lpolyring -o allreduce
 *     rm -f /tmp/id; for rank in 0 1 2 3; do ./allreduce $rank 4 /tmp/id & done; wait
 */
#include <polyring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(polyring_result result) {
  if (result == POLYRING_SUCCESS) return;
  fprintf(stderr, "allreduce: %s\n", polyring_error_text());
  exit((int)result);
}

/* The file takes its name when it is whole. */
static polyring_unique_id share_id(int rank, const char* path) {
  polyring_unique_id id;
  char other[4096];
  FILE* file;
  const struct timespec pause = {0, 10 * 1000 * 1000};
  if (rank == 0) {
    must(polyring_get_unique_id(&id));
    snprintf(other, sizeof(other), "%s.new", path);
    file = fopen(other, "wb");
    if (file == NULL || fwrite(&id, sizeof(id), 1, file) != 1 || fclose(file) != 0 ||
        rename(other, path) != 0) {
      perror(path);
      exit(1);
    }
    return id;
  }
  while ((file = fopen(path, "rb")) == NULL) nanosleep(&pause, NULL);
  if (fread(&id, sizeof(id), 1, file) != 1) {
    fprintf(stderr, "%s: holds no id\n", path);
    exit(1);
  }
  fclose(file);
  return id;
}

int main(int argc, char** argv) {
  enum { COUNT = 1000000 };
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  polyring_unique_id id;
  polyring_comm comm;
  polyring_request sum;
  const char* transport;
  void* memory;
  float* gradients;
  int rank, ranks, i, wrong = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: %s RANK RANKS FILE\n", argv[0]);
    return 6;
  }
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  id = share_id(rank, argv[3]);

  options.timeout = 20;
  must(polyring_comm_create(&comm, &id, rank, ranks, &options));
  must(polyring_comm_transport(comm, &transport));

  /* In memory of the communicator the ranks of a host combine without copies; any other memory will do as
   * well. */
  must(polyring_mem_alloc(comm, COUNT * sizeof(float), &memory));
  gradients = memory;
  for (i = 0; i < COUNT; ++i) gradients[i] = (float)(rank + 1);
  must(polyring_start_allreduce(comm, gradients, gradients, COUNT, POLYRING_FLOAT32, POLYRING_SUM, &sum));
  /* ... whatever else there is to compute ... */
  must(polyring_wait(&sum));

  for (i = 0; i < COUNT; ++i) wrong += gradients[i] != (float)(ranks * (ranks + 1) / 2);
  printf("rank %d of %d over %s: %d of %d sums wrong\n", rank, ranks, transport, wrong, COUNT);
  must(polyring_comm_free(comm));
  return wrong == 0 ? 0 : 7;
}
