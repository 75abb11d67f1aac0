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
 * Threads. Any thread may call any function. Calls with one communicator run one at a time. While a thread
 * waits with one communicator, it makes no progress with others. If threads or ranks use several
 * communicators in different orders, give each communicator its own thread, or poll with polyring_test();
 * otherwise they may wait for each other for ever.
 *
 * Topology. In the memory of one host, plans follow rules. On several hosts, allreduces follow the links
 * between them: those of the file of `polyring probe --format json` that rank 0's variable POLYRING_CLUSTER
 * names, or those that a probe of each host finds. On GPUs they follow the links of such a file, or rules.
 * "none" means rules. See polyring_comm_planning().
 *
 * Failures. Every function returns a code, and keeps a sentence with the remedy for polyring_error_text(). A
 * communicator stays usable after these failures:
 *
 * - POLYRING_ERROR_ARGUMENT
 * - POLYRING_ERROR_MISMATCH, if it was created with `check`
 * - any of polyring_mem_alloc(), polyring_mem_free(), polyring_mem_register() and polyring_mem_deregister()
 * - POLYRING_ERROR_NOT_AVAILABLE of polyring_enqueue_...()
 * - POLYRING_ERROR_TIMEOUT of polyring_stream_wait()
 *
 * Any other failure has broken it: nothing of it is under way any more, no buffer is in use, every later
 * operation returns the same code, and it can only be freed. The other ranks' calls fail as well, at the
 * latest after their time limit; on the same host within some seconds of a rank's failure or end. No function
 * ends the process, changes its signals or its environment, prints anything, or lets an exception pass. The
 * child of a fork() must not use its parent's communicators.
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
  POLYRING_ERROR_NOT_AVAILABLE = 5, /* this host has no such transport, GPU or memory, or another rank's
                                       memory is gone because that rank has ended */
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

/* One sentence with the remedy for this thread's most recent failed call. Empty if no call has failed. Valid
 * until this thread's next failed call. */
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

/* Identifies one communicator while its ranks meet over TCP. Plain bytes: copy them to the other ranks. */
typedef struct {
  char bytes[128];
} polyring_unique_id;

/* Call it in the process that will be rank 0: it listens from this call until it has created the
 * communicator. Another host reaches it at the address of the interface of the default route, or of the one
 * in the variable POLYRING_INTERFACE. */
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

/* If no operation is under way, this is collective and waits for the other ranks, because a rank must not end
 * while another needs it. If operations are under way, they are given up and their requests fail. In both
 * cases the communicator and the memory of polyring_mem_alloc() are freed, and registered buffers are
 * deregistered. */
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
/* Memory of this communicator, which no operation may use. NULL: does nothing. */
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
 * During this call, polyring_mem_deregister() and polyring_comm_free(), no operation may use the buffer and
 * no thread may touch it. Register a buffer with one communicator at a time. Deregister it before you free
 * it. The call needs as much free memory as the buffer has, until it returns. While the buffer is registered,
 * a child of fork() shares it with its parent, and finds zeros there once the parent has deregistered it.
 * Repeat mlock(), madvise(), cudaHostRegister() and ibv_reg_mr() for the buffer: the new pages do not have
 * these settings. */
POLYRING_API polyring_result polyring_mem_register(polyring_comm comm, void* buffer, size_t bytes);
/* Makes the buffer private memory again, with its contents. Also on a broken communicator: until this call,
 * other ranks may still write to buffers of operations that have failed. Needs as much free memory as the
 * buffer has, until it returns. polyring_comm_free() does the same for every buffer that is still registered.
 * POLYRING_ERROR_ARGUMENT: no registered buffer begins at this address, or the buffer was freed.
 * POLYRING_ERROR_NOT_AVAILABLE: too little memory; the buffer stays registered. If this happens in
 * polyring_comm_free(), the buffer keeps its contents, in shared pages. */
POLYRING_API polyring_result polyring_mem_deregister(polyring_comm comm, void* buffer);

/* ---- operations ----
 *
 * Counts are numbers of elements, as NCCL counts them. Input and output do not overlap, or are in place as
 * each function says. The result has the same bits on all ranks, and in every call with the same count, type
 * and operation. With a GPU, work that fills a buffer must be finished before the call: synchronize its
 * stream, or enqueue the operation on that stream. Operations that are not on a stream take any memory of
 * that GPU, and copy what no communicator of this process has allocated by polyring_mem_alloc(). Operations
 * on a stream take only memory that was allocated so. */

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
/* Copies the root's elements to every rank. It is computed as a sum with zeros, so it moves twice the bytes
 * that a broadcast needs. */
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

/* Advances all operations of the request's communicator without blocking. If this one is over, sets `*done`
 * to 1 and the request to POLYRING_REQUEST_NULL. If it failed, does the same and returns why. For
 * POLYRING_REQUEST_NULL, `*done` is 1. */
POLYRING_API polyring_result polyring_test(polyring_request* request, int* done);
/* Returns when it is over, with the request set to POLYRING_REQUEST_NULL. */
POLYRING_API polyring_result polyring_wait(polyring_request* request);

/* ---- on a CUDA stream ----
 *
 * Only for communicators with a GPU (polyring_options.gpu). Each call enqueues the whole operation after the
 * stream's earlier work, and returns at once; the CPU waits for no step. The first call with a new pair of
 * buffers waits until all ranks have called it. All ranks enqueue the same operations in the same order, on
 * one stream at a time. Started operations finish first. If a call returns POLYRING_ERROR_NOT_AVAILABLE,
 * which all ranks then get, use the function without a stream. */

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
 * all that it was given: before an operation that is run on what it makes. POLYRING_ERROR_TIMEOUT: it has not
 * within the communicator's time limit, and the communicator stays usable. */
POLYRING_API polyring_result polyring_stream_wait(polyring_comm comm, void* stream);

#ifdef __cplusplus
}
#endif

#endif
