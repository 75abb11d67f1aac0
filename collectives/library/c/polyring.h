/* Polyring's collectives for C and C++ programs: the multi-ring that follows a cluster's topology, between
 * processes that share a host's memory and over TCP between hosts. The library needs no MPI; polyring_mpi.h
 * makes a communicator of MPI's ranks.
 *
 *     polyring_unique_id id;
 *     if (rank == 0) polyring_get_unique_id(&id);
 *     ...                                                     // rank 0 sends the id to the others
 *     polyring_comm comm;
 *     polyring_result result = polyring_comm_create(&comm, &id, rank, ranks, NULL);
 *     if (result != POLYRING_SUCCESS) fail(polyring_error_text());
 *     polyring_allreduce(comm, gradients, gradients, count, POLYRING_FLOAT32, POLYRING_AVG);
 *     polyring_comm_free(comm);
 *
 * Order. All ranks create a communicator with the same options, except for time limits, interfaces and GPUs'
 * numbers, and call the same operations with the same arguments in the same order. Where they do not, results
 * are wrong or an operation fails; with the option `check` that is found before anything is done. Operations
 * that were started may be waited for in any order.
 *
 * Threads. Any thread may call any function. Calls with one communicator wait for each other, so that one
 * operation is waited for at a time. A thread that waits for an operation of one communicator does not go on
 * with those of another: threads or ranks that use several communicators in different orders need a thread
 * for each, or polyring_test().
 *
 * Topology. Plans follow the links between the ranks: those of the file of `polyring probe --format json`
 * that rank 0's variable POLYRING_CLUSTER names; without it, in host memory on several hosts, those that a
 * probe of each host finds. Else, and where that is "none", they follow rules. See polyring_comm_planning().
 *
 * Failures. Every function returns a code, and keeps a sentence with the remedy for polyring_error_text().
 * These leave a communicator as it was: POLYRING_ERROR_ARGUMENT, POLYRING_ERROR_MISMATCH with the option
 * `check`, and POLYRING_ERROR_NOT_AVAILABLE from polyring_mem_alloc() and polyring_enqueue_...(). An
 * operation that returns any other code has broken its communicator: nothing of it is under way any more, no
 * buffer is in use, every later operation returns the same code, and it can only be freed. The other ranks'
 * calls fail as well, at the latest after their time limit; on the same host within some seconds of a rank's
 * failure or end. No function ends the process, changes its signals or its environment, prints anything, or
 * lets an exception pass. The child of a fork() must not use its parent's communicators.
 */
#ifndef POLYRING_H
#define POLYRING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLYRING_API __attribute__((visibility("default")))

/* So that C++, too, can be told of a number that an enumeration does not have. */
#ifdef __cplusplus
#define POLYRING_OF_INT : int
#else
#define POLYRING_OF_INT
#endif

#define POLYRING_VERSION_MAJOR 0
#define POLYRING_VERSION_MINOR 1

typedef enum polyring_result POLYRING_OF_INT {
  POLYRING_SUCCESS = 0,
  POLYRING_ERROR_INTERNAL = 1,      /* a fault of Polyring's, or no memory */
  POLYRING_ERROR_CUDA = 2,          /* a call of CUDA's failed */
  POLYRING_ERROR_NCCL = 3,          /* a call of NCCL's failed */
  POLYRING_ERROR_TIMEOUT = 4,       /* nothing came from a rank within the time limit */
  POLYRING_ERROR_NOT_AVAILABLE = 5, /* the host has no such thing (any more): a transport, a GPU, memory, or
                                       that of a rank that has ended */
  POLYRING_ERROR_ARGUMENT = 6,      /* nothing was done: an argument is invalid */
  POLYRING_ERROR_MISMATCH = 7,      /* ranks called different operations; with `check` nothing was done */
  POLYRING_ERROR_CONNECTION = 10    /* the connection to a rank was lost */
} polyring_result;

typedef enum polyring_type POLYRING_OF_INT {
  POLYRING_FLOAT32 = 0,
  POLYRING_FLOAT64 = 1,
  POLYRING_FLOAT16 = 2, /* IEEE 754 binary16; sums are kept in float32 and rounded once */
  POLYRING_BFLOAT16 = 3,
  POLYRING_INT32 = 4,
  POLYRING_INT64 = 5
} polyring_type;

typedef enum polyring_op POLYRING_OF_INT {
  POLYRING_SUM = 0,
  POLYRING_PROD = 1,
  POLYRING_MIN = 2,
  POLYRING_MAX = 3,
  POLYRING_AVG = 4 /* a sum, divided by the number of ranks */
} polyring_op;

typedef enum polyring_transport POLYRING_OF_INT {
  POLYRING_TRANSPORT_AUTOMATIC = 0, /* shared memory inside a host where it can be had, TCP else */
  POLYRING_TRANSPORT_SHARED = 1,    /* shared memory inside a host must be had */
  POLYRING_TRANSPORT_NETWORK = 2    /* TCP for everything */
} polyring_transport;

/* Never dereferenced. A handle's number is never used again, so that a freed one is told from a live one. */
typedef struct polyring_comm_handle* polyring_comm;
typedef struct polyring_request_handle* polyring_request;

#define POLYRING_COMM_NULL ((polyring_comm)0)
#define POLYRING_REQUEST_NULL ((polyring_request)0)

/* "0.1.0". Never freed. */
POLYRING_API const char* polyring_version(void);

/* Why the last call of this thread that failed did: one sentence with the remedy. Empty where none has. Good
 * until the thread's next call that fails. */
POLYRING_API const char* polyring_error_text(void);
/* "POLYRING_ERROR_TIMEOUT". Never freed. */
POLYRING_API const char* polyring_error_name(polyring_result result);

/* ---- communicators ---- */

typedef struct {
  size_t size;    /* of this struct, for later versions: POLYRING_OPTIONS_DEFAULT sets it */
  double timeout; /* seconds in which something must come from a rank that is waited for; more than 0 */
  polyring_transport transport;
  const char* interface_name; /* of the network for TCP, such as "ib0"; NULL: that of the default route */
  const char* algorithm; /* as --algorithm of `polyring allreduce --help` names them; NULL: multi-ring. Only
                            multi-ring, ring, halving-doubling, direct and pairwise make reduce-scatters and
                            allgathers */
  int check; /* other than 0: ranks compare what they call before each operation, which takes a message more
              */
  int gpu;   /* buffers are in the memory of this GPU, as CUDA counts them in this process; -1: in host memory
              */
} polyring_options;

#define POLYRING_OPTIONS_DEFAULT \
  { sizeof(polyring_options), 60.0, POLYRING_TRANSPORT_AUTOMATIC, NULL, NULL, 0, -1 }

/* By which the ranks of one communicator find each other over TCP. Plain bytes, to be sent to the other
 * ranks. */
typedef struct {
  char bytes[128];
} polyring_unique_id;

/* Called by the process that is rank 0 then: it listens from now on, until it has created that communicator.
 * Another host reaches it at the address of the interface of the default route, or of the one in the variable
 * POLYRING_INTERFACE. */
POLYRING_API polyring_result polyring_get_unique_id(polyring_unique_id* id);

/* The id of ranks that meet where all of them know, such as "node1:4711" (a name or an IPv4 address), without
 * a message between them: rank 0 listens there. Only ranks with the same secret are let in; any text of up to
 * 32 letters, NULL for none. */
POLYRING_API polyring_result polyring_unique_id_at(polyring_unique_id* id, const char* address,
                                                   const char* secret);

/* Collective. Waits until all ranks have come. `options` may be NULL. */
POLYRING_API polyring_result polyring_comm_create(polyring_comm* comm, const polyring_unique_id* id, int rank,
                                                  int ranks, const polyring_options* options);

/* A group whose ranks can already exchange bytes: `allgather` fills `all` with every rank's `bytes` bytes, by
 * rank, on every rank, and returns 0, or anything else where it failed. It is called by
 * polyring_comm_create_from_group() alone, in the calling thread. */
typedef struct {
  void* context;
  int (*allgather)(void* context, const void* own, void* all, size_t bytes);
} polyring_group;

/* Collective. */
POLYRING_API polyring_result polyring_comm_create_from_group(polyring_comm* comm, const polyring_group* group,
                                                             int rank, int ranks,
                                                             const polyring_options* options);

/* A key-value store that all ranks reach. Both return 0, or anything else where they failed. `get` waits
 * until the key is there, for at most `timeout` seconds, sets `*bytes` to the value's length, and copies as
 * much of it as `capacity` allows. Keys begin with `prefix`, which no other communicator of the store has.
 * Creation alone uses it. */
typedef struct {
  void* context;
  const char* prefix;
  int (*set)(void* context, const char* key, const void* value, size_t bytes);
  int (*get)(void* context, const char* key, void* value, size_t capacity, size_t* bytes, double timeout);
} polyring_store;

/* Collective. */
POLYRING_API polyring_result polyring_comm_create_from_store(polyring_comm* comm, const polyring_store* store,
                                                             int rank, int ranks,
                                                             const polyring_options* options);

/* Collective where nothing is under way: a rank must not end while another needs it. Else gives up what is
 * under way, whose requests then fail. The communicator and the memory of polyring_mem_alloc() are freed in
 * any case. */
POLYRING_API polyring_result polyring_comm_free(polyring_comm comm);

/* Breaks the communicator, without the other ranks: what is under way is given up, every later call with it
 * fails with POLYRING_ERROR_CONNECTION, and polyring_comm_free() waits for nobody. The memory stays until
 * then. A call of another thread that waits for other ranks fails in the same way. */
POLYRING_API polyring_result polyring_comm_abort(polyring_comm comm);

POLYRING_API polyring_result polyring_comm_rank(polyring_comm comm, int* rank);
POLYRING_API polyring_result polyring_comm_size(polyring_comm comm, int* ranks);
/* On how many hosts the ranks are. */
POLYRING_API polyring_result polyring_comm_hosts(polyring_comm comm, int* hosts);
/* "shared memory and TCP by eth0"; an interface is named only where the options name one. Good until the
 * communicator is freed. */
POLYRING_API polyring_result polyring_comm_transport(polyring_comm comm, const char** transport);
/* How plans are chosen: "by the links that 'cluster.json' describes", or "by rules, since …". Good until the
 * communicator is freed. */
POLYRING_API polyring_result polyring_comm_planning(polyring_comm comm, const char** planning);

/* ---- memory ---- */

/* Memory that the ranks of a host reach directly: operations on it copy nothing. At least one byte, on a page
 * of its own; of the communicator's GPU where it has one. */
POLYRING_API polyring_result polyring_mem_alloc(polyring_comm comm, size_t bytes, void** memory);
/* Of this communicator's. No operation on it is under way. NULL is nothing. */
POLYRING_API polyring_result polyring_mem_free(polyring_comm comm, void* memory);

/* Registers a buffer of the program's own: the ranks of a host reach it directly, too, and operations on it
 * copy nothing. Its pages are replaced, at the same address and with the same contents, by pages that
 * processes share. Not collective, and any rank may register a buffer or not.
 *
 * The buffer begins on a page and is whole pages long, since what else is on its pages would be shared, too:
 * aligned_alloc(4096, bytes), posix_memalign() or mmap(). It is private memory of no file, that can be read
 * and written; huge pages of hugetlbfs count as a file, transparent ones become ordinary pages. Anything else
 * is POLYRING_ERROR_ARGUMENT. Memory of a GPU cannot be registered, which is POLYRING_ERROR_NOT_AVAILABLE. In
 * any failure the buffer is as before, and the communicator as well.
 *
 * No operation uses the buffer, and no other thread touches it, during these two calls and
 * polyring_comm_free(). It is registered with one communicator at a time, and deregistered before it is
 * freed. The call needs as much memory again as the buffer has, until it returns. While it is registered,
 * the child of a fork() shares it with its parent, and finds zeros there once the parent deregisters it.
 * What the system or a device was told of the pages (mlock(), madvise(), cudaHostRegister(), ibv_reg_mr())
 * holds no longer: tell it again. */
POLYRING_API polyring_result polyring_mem_register(polyring_comm comm, void* buffer, size_t bytes);
/* Private memory again, with its contents, which needs as much memory again until it returns; also of a
 * communicator that is broken, where other ranks may write to buffers of operations that have failed until
 * then. polyring_comm_free() does the same to all that are left. POLYRING_ERROR_ARGUMENT where none that is
 * registered begins there, or it was freed meanwhile; POLYRING_ERROR_NOT_AVAILABLE where there is no memory,
 * and it is still registered. Where polyring_comm_free() fails so, the buffer keeps its contents, too, in
 * shared pages. */
POLYRING_API polyring_result polyring_mem_deregister(polyring_comm comm, void* buffer);

/* ---- operations ----
 *
 * Counts are numbers of elements, as NCCL counts them. Input and output are apart or, in place, where each
 * function says. The result has the same bits on all ranks, and from call to call of one count, type and
 * operation. What fills buffers in GPU memory is over before the call: synchronize its stream, or enqueue the
 * operation on it. Operations on a GPU take any of its memory, and copy what is not polyring_mem_alloc()'s of
 * a communicator of this process; only those on a stream take no other. */

/* output[i] = input[i] of all ranks combined. In place: input == output. */
POLYRING_API polyring_result polyring_allreduce(polyring_comm comm, const void* input, void* output,
                                                size_t count, polyring_type type, polyring_op op);
/* Combines ranks × count elements of each rank; rank r has the r-th count of them. In place: output == input
 * + rank × count. */
POLYRING_API polyring_result polyring_reduce_scatter(polyring_comm comm, const void* input, void* output,
                                                     size_t count, polyring_type type, polyring_op op);
/* output has ranks × count elements: every rank's count, by rank. In place: input == output + rank × count.
 */
POLYRING_API polyring_result polyring_allgather(polyring_comm comm, const void* input, void* output,
                                                size_t count, polyring_type type);
/* The root's elements at every rank. It is a sum in which all others give zeros, and so moves twice the bytes
 * of the least. */
POLYRING_API polyring_result polyring_broadcast(polyring_comm comm, void* buffer, size_t count,
                                                polyring_type type, int root);
/* Returns when all ranks have called it. */
POLYRING_API polyring_result polyring_barrier(polyring_comm comm);

/* The same, started. The buffers belong to the operation until polyring_test() or polyring_wait() says that
 * it is over. */
POLYRING_API polyring_result polyring_start_allreduce(polyring_comm comm, const void* input, void* output,
                                                      size_t count, polyring_type type, polyring_op op,
                                                      polyring_request* request);
POLYRING_API polyring_result polyring_start_reduce_scatter(polyring_comm comm, const void* input,
                                                           void* output, size_t count, polyring_type type,
                                                           polyring_op op, polyring_request* request);
POLYRING_API polyring_result polyring_start_allgather(polyring_comm comm, const void* input, void* output,
                                                      size_t count, polyring_type type,
                                                      polyring_request* request);
POLYRING_API polyring_result polyring_start_broadcast(polyring_comm comm, void* buffer, size_t count,
                                                      polyring_type type, int root,
                                                      polyring_request* request);
POLYRING_API polyring_result polyring_start_barrier(polyring_comm comm, polyring_request* request);

/* Goes on with all operations of the request's communicator, without blocking. Sets `*done` to 1 where this
 * one is over, and the request to POLYRING_REQUEST_NULL, which is always over. Where the operation has
 * failed, returns why, with both set. */
POLYRING_API polyring_result polyring_test(polyring_request* request, int* done);
/* Returns when it is over, with the request set to POLYRING_REQUEST_NULL. */
POLYRING_API polyring_result polyring_wait(polyring_request* request);

/* ---- on a CUDA stream ----
 *
 * For communicators with a GPU (polyring_options.gpu), by the CUDA plug-in, which the library opens when it
 * is asked for a GPU. Each call enqueues the whole operation behind what the stream has, and returns; the CPU
 * does not wait for any step. Buffers are polyring_mem_alloc()'s. The first call with two buffers waits until
 * the other ranks have called it, too. All ranks of a communicator enqueue the same in the same order, on one
 * stream at a time. What was started before is over first. Returns POLYRING_ERROR_NOT_AVAILABLE where the
 * operation cannot be enqueued, the same on all ranks; then it can be run. */

/* `stream` is a cudaStream_t. */
POLYRING_API polyring_result polyring_enqueue_allreduce(polyring_comm comm, const void* input, void* output,
                                                        size_t count, polyring_type type, polyring_op op,
                                                        void* stream);
POLYRING_API polyring_result polyring_enqueue_reduce_scatter(polyring_comm comm, const void* input,
                                                             void* output, size_t count, polyring_type type,
                                                             polyring_op op, void* stream);
POLYRING_API polyring_result polyring_enqueue_allgather(polyring_comm comm, const void* input, void* output,
                                                        size_t count, polyring_type type, void* stream);
/* Returns when all that was enqueued is over. A stream alone waits for ever for a rank that has ended; this
 * ends that at the time limit, and says for whom it waited. */
POLYRING_API polyring_result polyring_enqueued_wait(polyring_comm comm);
/* Not collective. Returns when `stream`, a cudaStream_t of the program's on the communicator's GPU, has done
 * all that it was given: before an operation that is run on what it makes. */
POLYRING_API polyring_result polyring_stream_wait(polyring_comm comm, void* stream);

#ifdef __cplusplus
}
#endif

#endif
