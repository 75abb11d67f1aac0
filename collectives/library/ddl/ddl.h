/* The calls of IBM PowerAI DDL, as its public users have them (horovod/horovod,
 * horovod/common/ops/ddl_operations.cc), done by Polyring: a gradient is summed over all ranks of an MPI job,
 * in place, in the memory of the process's GPU where each process has one of its own and Polyring its CUDA
 * plug-in, else in the host's memory. A process's GPU is the only one that it sees, or else the one that has
 * its number among the ranks of its host; ddl_init() leaves it as CUDA's current device of the calling
 * thread. What fills memory of a GPU is over before a call that takes it.
 *
 * Every function that can fail returns DDL_SUCCESS or a code; ddl_error_text() says why, with the remedy. Any
 * thread may call; calls wait for each other. All ranks make the same calls in the same order. A call that
 * waits for another rank fails with DDL_ERROR_TIMEOUT when nothing has come from it for 60 seconds.
 */
#ifndef POLYRING_DDL_H
#define POLYRING_DDL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDL_API __attribute__((visibility("default")))

/* In C++ of a fixed type, so that a number that they do not have can be told. */
#ifdef __cplusplus
#define DDL_OF_INT : int
#else
#define DDL_OF_INT
#endif

typedef enum DDL_Result DDL_OF_INT {
  DDL_SUCCESS = 0,
  DDL_ERROR = 1, /* a fault of Polyring's, no memory, or no such plug-in as POLYRING_CUDA_PLUGIN names */
  DDL_ERROR_TIMEOUT = 4,  /* nothing came from a rank for 60 seconds */
  DDL_ERROR_ARGUMENT = 6, /* nothing was done: an argument is invalid, or ddl_init() is missing */
  DDL_ERROR_MPI = 10      /* a call of MPI's failed, or the connection to a rank was lost */
} DDL_Result;

typedef enum DDL_Type DDL_OF_INT {
  DDL_TYPE_FLOAT = 0,
  DDL_TYPE_HALF = 1 /* IEEE 754 binary16; sums are kept in float32 and rounded once */
} DDL_Type;

typedef enum DDL_Op DDL_OF_INT { DDL_OP_SUM = 0, DDL_OP_PRODUCT = 1, DDL_OP_MIN = 2, DDL_OP_MAX = 3 } DDL_Op;

/* Collective over MPI_COMM_WORLD. Initializes MPI if the program has not. `options`, or the variable
 * DDL_OPTIONS if it is NULL: "-mode p:4x8x8" is the grid of ranks, its first dimension inside a host; ""
 * leaves it to Polyring. Options that only IBM's algorithms have, such as "-dump_iter 100", change nothing;
 * unknown ones are refused. Later calls may leave the grid out, and are refused if they name another one. */
DDL_API DDL_Result ddl_init(const char* options);

/* This process's rank in MPI_COMM_WORLD, once MPI is initialized. */
DDL_API DDL_Result ddl_rank(int* rank);
/* The number of ranks. */
DDL_API DDL_Result ddl_size(int* size);

/* Allocates `bytes` bytes, aligned to `alignment` (a power of two up to 256), and sets `*memory`. Returns
 * `bytes`, or 0 on failure. If ddl_init() was not called, MPI must be initialized; the call is then
 * collective, and does what ddl_init(NULL) does. */
DDL_API size_t ddl_malloc(void** memory, size_t alignment, size_t bytes);
/* Frees memory of ddl_malloc(). */
DDL_API DDL_Result ddl_free(void* memory);

#ifdef __cplusplus
}
#endif

/* Collective. Combines `count` elements of all ranks, in place. After ddl_init() or ddl_malloc(). In C++
 * `type` and `op` have defaults. */
#ifdef __cplusplus
extern "C" DDL_API DDL_Result ddl_allreduce(void* data, size_t count, DDL_Type type = DDL_TYPE_FLOAT,
                                            DDL_Op op = DDL_OP_SUM);
extern "C" {
#else
DDL_API DDL_Result ddl_allreduce(void* data, size_t count, DDL_Type type, DDL_Op op);
#endif

/* Collective. Frees all of ddl_malloc()'s memory, and finalizes MPI. */
DDL_API DDL_Result ddl_finalize(void);

/* One sentence with the remedy for this thread's most recent failed call. Valid until its next failed call.
 */
DDL_API const char* ddl_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
