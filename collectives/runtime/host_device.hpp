// Marks functions that run on the host and in GPU kernels, and their loops whose turns keep values in
// registers.
#pragma once

#if defined(__CUDACC__)
#define POLYRING_HD __host__ __device__
#define POLYRING_UNROLL _Pragma("unroll")
#else
#define POLYRING_HD
#define POLYRING_UNROLL
#endif
