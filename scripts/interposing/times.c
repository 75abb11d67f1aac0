/* Times MPI's own collective calls (PMPI_…) and those by their usual names by turns, in one program: with
 * libpolyring_mpi.so preloaded the latter are Polyring's. Usage: times BYTES PAIRS [CALL]
 *
 *     BYTES   the largest buffer, at most 1 GiB
 *     PAIRS   how often each size is timed; above 1 MiB a quarter of that
 *     CALL    the only call that is wanted; all when not given
 *
 * Prints lines `call type bytes median_mpi median_other ratio low_mpi low_other`. Times are in µs, of the
 * slowest rank. The ratio is the median of the pairs' ratios, and low is the fastest tenth.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000 };

static int rank, ranks;
static char *input, *output;

typedef struct {
  const char *call, *type;
  MPI_Datatype datatype;
  int bytes;
} Work;

static void once(const Work* work, int own, int count) {
  const MPI_Comm all = MPI_COMM_WORLD;
  const MPI_Datatype type = work->datatype;
  if (strcmp(work->call, "allreduce") == 0) {
    (own ? PMPI_Allreduce : MPI_Allreduce)(input, output, count, type, MPI_SUM, all);
  } else if (strcmp(work->call, "reduce-scatter") == 0) {
    (own ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(input, output, count / ranks, type, MPI_SUM,
                                                                 all);
  } else {
    (own ? PMPI_Allgather : MPI_Allgather)(input, count / ranks, type, output, count / ranks, type, all);
  }
}

static int ascending(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

static double part(double* values, int number, double which) {
  qsort(values, (size_t)number, sizeof(double), ascending);
  return values[(int)(which * (number - 1))];
}

static void compare(const Work* work, long bytes, int pairs) {
  static double times[2][MOST], ratios[MOST];
  const int count = (int)(bytes / work->bytes);
  int pair, turn;
  for (pair = -2; pair < pairs; ++pair) {
    for (turn = 0; turn < 2; ++turn) {
      const int own = (pair + turn) & 1;
      double time;
      PMPI_Barrier(MPI_COMM_WORLD);
      time = MPI_Wtime();
      once(work, own, count);
      time = MPI_Wtime() - time;
      if (pair >= 0) times[own ? 0 : 1][pair] = 1e6 * time;
    }
  }
  PMPI_Allreduce(MPI_IN_PLACE, times[0], pairs, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Allreduce(MPI_IN_PLACE, times[1], pairs, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  for (pair = 0; pair < pairs; ++pair) ratios[pair] = times[0][pair] / times[1][pair];
  if (rank != 0) return;
  printf("%s %s %ld %.3f %.3f %.3f", work->call, work->type, bytes, part(times[0], pairs, 0.5),
         part(times[1], pairs, 0.5), part(ratios, pairs, 0.5));
  printf(" %.3f %.3f\n", part(times[0], pairs, 0.1), part(times[1], pairs, 0.1));
  fflush(stdout);
}

/* A call that is passed on, without another rank: the difference is the interposer's. */
static void compare_passed_on(int pairs) {
  static double times[2][MOST];
  float one = 1, sum;
  int pair, own, i;
  for (pair = 0; pair < pairs; ++pair) {
    for (own = 0; own < 2; ++own) {
      const double begin = MPI_Wtime();
      for (i = 0; i < 1000; ++i)
        (own ? PMPI_Allreduce : MPI_Allreduce)(&one, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
      times[own ? 0 : 1][pair] = 1e3 * (MPI_Wtime() - begin);
    }
  }
  if (rank != 0) return;
  printf("passed-on float 4 %.4f %.4f", part(times[0], pairs, 0.5), part(times[1], pairs, 0.5));
  printf(" %.3f %.4f %.4f\n", times[0][pairs / 2] / times[1][pairs / 2], part(times[0], pairs, 0.1),
         part(times[1], pairs, 0.1));
}

int main(int argc, char** argv) {
  const long most = argc >= 3 ? atol(argv[1]) : 0;
  const int pairs = argc >= 3 ? atoi(argv[2]) : 0;
  const char* only = argc == 4 ? argv[3] : NULL;
  long bytes;
  size_t i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (most < 4096 || most > 1 << 30 || pairs < 10 || pairs > MOST) MPI_Abort(MPI_COMM_WORLD, 6);
  input = calloc((size_t)most, 1);
  output = calloc((size_t)most, 1);
  if (input == NULL || output == NULL) {
    fprintf(stderr, "rank %d has no memory for two buffers of %ld bytes; give a smaller --largest\n", rank,
            most);
    MPI_Abort(MPI_COMM_WORLD, 5);
  }
  compare_passed_on(pairs);
  {
    const Work works[] = {
        {"allreduce", "float", MPI_FLOAT, 4},      {"allreduce", "double", MPI_DOUBLE, 8},
        {"allreduce", "int32", MPI_INT, 4},        {"allreduce", "int64", MPI_LONG_LONG, 8},
        {"reduce-scatter", "float", MPI_FLOAT, 4}, {"reduce-scatter", "double", MPI_DOUBLE, 8},
        {"allgather", "int32", MPI_INT, 4}};
    for (i = 0; i < sizeof(works) / sizeof(works[0]); ++i) {
      if (only != NULL && strcmp(only, works[i].call) != 0) continue;
      for (bytes = 4096; bytes <= most; bytes *= 2)
        compare(&works[i], bytes, bytes > (1 << 20) ? (pairs + 3) / 4 : pairs);
    }
  }
  free(input);
  free(output);
  MPI_Finalize();
  return 0;
}
