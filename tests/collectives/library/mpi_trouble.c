/* An MPI program in which something goes wrong: see the name of each case. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

enum { COUNT = 1 << 18 };

static int rank;

static int allreduce(MPI_Comm comm, float* data) {
  return MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

static float* zeros(void) { return calloc(COUNT, sizeof(float)); }

static void report(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s\n", rank, code == MPI_SUCCESS ? "success" : text);
  fflush(stdout);
}

/* Rank 1 is killed. MPICH's launcher tells the others by a signal, and ends before them, so that what they
 * say goes to a file. Nobody may enter MPI_Finalize then. */
static void killed(const char* file) {
  float* data = zeros();
  int i;
  signal(SIGUSR1, SIG_IGN);
  if (rank == 0 && freopen(file, "w", stdout) == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (i = 0; i < 3; ++i) allreduce(MPI_COMM_WORLD, data);
  if (rank == 1) raise(SIGKILL);
  report(allreduce(MPI_COMM_WORLD, data));
  report(allreduce(MPI_COMM_WORLD, data));
  printf("alive\n");
  fflush(stdout);
  _exit(0);
}

/* Rank 1 comes a second late, or when rank 0 has given up. */
static void late(int when_given_up) {
  float* data = zeros();
  int code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  allreduce(MPI_COMM_WORLD, data);
  if (rank == 1 && when_given_up) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1 && !when_given_up) sleep(1);
  code = allreduce(MPI_COMM_WORLD, data);
  report(code);
  if (code != MPI_SUCCESS)
    printf("%s\n", allreduce(MPI_COMM_WORLD, data) == code ? "the same code" : "another");
  if (rank == 0 && when_given_up) MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  free(data);
}

/* Rank 0 waits for more than a second, in which it can open no file. */
static void no_descriptors(void) {
  float* data = zeros();
  struct rlimit limit;
  int code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  allreduce(MPI_COMM_WORLD, data);
  if (rank == 1) usleep(1200000);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (rank == 0) setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max});
  code = allreduce(MPI_COMM_WORLD, data);
  setrlimit(RLIMIT_NOFILE, &limit);
  report(code);
  free(data);
}

/* C++'s operator new finds no memory in the first call. It is the preloaded library's, too, but where a
 * sanitizer has its own. */
#ifndef SANITIZED
static int starves;
void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
void* operator_new(size_t bytes) __asm__("_Znwm");
void* operator_new(size_t bytes) {
  void* memory = starves ? NULL : malloc(bytes);
  if (memory == NULL) throw_bad_alloc();
  return memory;
}

static void no_memory(void) {
  float* data = zeros();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  starves = 1;
  printf("rank %d: %s\n", rank, allreduce(MPI_COMM_WORLD, data) == MPI_ERR_OTHER ? "failed" : "passed");
  starves = 0;
  report(allreduce(MPI_COMM_WORLD, data));
  free(data);
}

/* Nor where MPI calls the library: when a communicator is freed, and in MPI_Finalize. */
static void no_memory_at_the_end(void) {
  float* data = zeros();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  report(allreduce(comm, data));
  report(allreduce(MPI_COMM_WORLD, data));
  starves = 1;
  MPI_Comm_free(&comm);
  free(data);
}
#endif

/* Nothing can be said: whoever writes to stderr is told that there is none. */
static void no_stderr(void) {
  float* data = zeros();
  fclose(stderr);
  report(allreduce(MPI_COMM_WORLD, data));
  free(data);
}

/* The receiver waits for a message whose sender is in an allreduce: MPI has it arrive all the same. */
static void progress(void) {
  enum { BYTES = 32 << 20 };
  char* message = malloc(BYTES);
  float* data = zeros();
  MPI_Request request = MPI_REQUEST_NULL;
  memset(message, rank, BYTES);
  allreduce(MPI_COMM_WORLD, data);
  if (rank == 0) MPI_Isend(message, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Recv(message, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  allreduce(MPI_COMM_WORLD, data);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  printf("rank %d: %s\n", rank, message[BYTES - 1] == 0 || rank > 1 ? "arrived" : "lost");
  free(message);
  free(data);
}

static void* many(void* comm) {
  float* data = malloc(COUNT * sizeof(float));
  long wrong = 0;
  int i, k;
  for (i = 0; i < 30; ++i) {
    for (k = 0; k < COUNT; ++k) data[k] = (float)(i + k % 7);
    allreduce(*(MPI_Comm*)comm, data);
    for (k = 0; k < COUNT; ++k) wrong += data[k] != 2 * (float)(i + k % 7);
  }
  free(data);
  return (void*)wrong;
}

static void threads(void) {
  MPI_Comm comms[2];
  pthread_t thread;
  void* wrong[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  pthread_create(&thread, NULL, many, &comms[1]);
  wrong[0] = many(&comms[0]);
  pthread_join(thread, &wrong[1]);
  printf("rank %d: %ld wrong\n", rank, (long)wrong[0] + (long)wrong[1]);
  MPI_Comm_free(&comms[0]);
  MPI_Comm_free(&comms[1]);
}

/* The ranks free two communicators in different orders, as garbage collectors do. */
static void crossed(void) {
  MPI_Comm comms[2];
  float* data = zeros();
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  report(allreduce(comms[0], data));
  report(allreduce(comms[1], data));
  MPI_Comm_free(&comms[rank % 2]);
  MPI_Comm_free(&comms[1 - rank % 2]);
  free(data);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) return 6;
  if (strcmp(argv[1], "killed") == 0 && argc == 3) killed(argv[2]);
  if (strcmp(argv[1], "late") == 0) late(argc == 3);
  if (strcmp(argv[1], "no_descriptors") == 0) no_descriptors();
#ifndef SANITIZED
  if (strcmp(argv[1], "no_memory") == 0) no_memory();
  if (strcmp(argv[1], "no_memory_at_the_end") == 0) no_memory_at_the_end();
#endif
  if (strcmp(argv[1], "no_stderr") == 0) no_stderr();
  if (strcmp(argv[1], "progress") == 0) progress();
  if (strcmp(argv[1], "threads") == 0 && provided == MPI_THREAD_MULTIPLE) threads();
  if (strcmp(argv[1], "crossed") == 0) crossed();
  MPI_Finalize();
  return 0;
}
