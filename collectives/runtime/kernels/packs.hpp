// Elements by the pack: as many as one vector register of the instruction set holds that this file is
// compiled for, in the type that they are combined in. All is in an anonymous namespace and nothing of the
// standard library is called, since each instruction set must keep its own copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/runtime/half.hpp"
#include "collectives/schedule/element.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace polyring {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kPackBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kPackBytes = 32;
#else
constexpr std::size_t kPackBytes = 16;
#endif

template <typename T, std::size_t kBytes>
struct VectorOf {
  using type [[gnu::vector_size(kBytes)]] = T;
};
template <typename T, std::size_t kBytes = kPackBytes>
using Vector = typename VectorOf<T, kBytes>::type;

using Floats = Vector<float>;
using Bits = Vector<std::uint32_t>;
using Halves = Vector<std::uint16_t, kPackBytes / 2>;

// By intrinsics because GCC 12 makes many instructions of __builtin_convertvector for these.
#if defined(__AVX512F__)
// With a mask of all because of the forms without one GCC 12 warns (its bug 105593).
constexpr __mmask16 kAll = 0xffff;
inline Bits zero_extended(Halves pack) {
  return __builtin_bit_cast(Bits, _mm512_maskz_cvtepu16_epi32(kAll, __builtin_bit_cast(__m256i, pack)));
}
inline Halves low_halves(Bits pack) {
  return __builtin_bit_cast(Halves, _mm512_maskz_cvtepi32_epi16(kAll, __builtin_bit_cast(__m512i, pack)));
}
#elif defined(__AVX2__)
inline Bits zero_extended(Halves pack) {
  return __builtin_bit_cast(Bits, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, pack)));
}
inline Halves low_halves(Bits pack) {
  const __m256i bits = __builtin_bit_cast(__m256i, pack & 0xffffu);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
  return __builtin_bit_cast(Halves, _mm256_castsi256_si128(packed));
}
#elif defined(__x86_64__)
inline Bits zero_extended(Halves pack) {
  const __m128i halves = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&pack));
  return __builtin_bit_cast(Bits, _mm_unpacklo_epi16(halves, _mm_setzero_si128()));
}
inline Halves low_halves(Bits pack) {
  // Sign-extended, the halves pass the saturation.
  const __m128i bits = _mm_srai_epi32(_mm_slli_epi32(__builtin_bit_cast(__m128i, pack), 16), 16);
  const __m128i packed = _mm_packs_epi32(bits, bits);
  Halves halves;
  _mm_storel_epi64(reinterpret_cast<__m128i*>(&halves), packed);
  return halves;
}
#else
inline Bits zero_extended(Halves pack) { return __builtin_convertvector(pack, Bits); }
inline Halves low_halves(Bits pack) { return __builtin_convertvector(pack, Halves); }
#endif

/// What an operand and a result are stored as, what they are combined in, and the way there and back for a
/// pack. What is narrowed has no NaN but the one that `finished` in reduce.hpp makes.
template <typename T>
struct Plain {
  using Stored = T;
  using Result = T;
  using Computed = T;
  static Vector<T> widen(Vector<T> pack) { return pack; }
  static Vector<T> narrow(Vector<T> pack) { return pack; }
};

struct Bfloat16Element {
  static constexpr std::uint16_t kInfinity = 0x7f80;
  static constexpr std::uint16_t kNan = 0x7fc0;
  using Stored = std::uint16_t;
  using Result = std::uint16_t;
  using Computed = float;
  static Floats widen(Halves pack) { return half::from_bfloat16<Floats>(zero_extended(pack)); }
  static Halves narrow(Floats pack) { return low_halves(half::round_to_bfloat16<Bits>(pack)); }
};

struct Float16Element {
  static constexpr std::uint16_t kInfinity = 0x7c00;
  static constexpr std::uint16_t kNan = 0x7e00;
  using Stored = std::uint16_t;
  using Result = std::uint16_t;
  using Computed = float;
#if defined(__AVX512F__)
  static Floats widen(Halves pack) { return _mm512_maskz_cvtph_ps(kAll, __builtin_bit_cast(__m256i, pack)); }
  static Halves narrow(Floats pack) {
    return __builtin_bit_cast(Halves, _mm512_maskz_cvtps_ph(kAll, pack, _MM_FROUND_TO_NEAREST_INT));
  }
#elif defined(__AVX2__) && defined(__F16C__)
  static Floats widen(Halves pack) { return _mm256_cvtph_ps(__builtin_bit_cast(__m128i, pack)); }
  static Halves narrow(Floats pack) {
    return __builtin_bit_cast(Halves, _mm256_cvtps_ph(pack, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static Floats widen(Halves pack) { return half::from_float16<Floats>(zero_extended(pack)); }
  static Halves narrow(Floats pack) { return low_halves(half::to_float16<Bits>(pack)); }
#endif
};

/// For minima and maxima of a half: its place in the order of all halves, as an integer. A vector holds twice
/// as many of these integers as floats. Take the bits of the halves, and invert all bits except the sign in
/// negative ones; then they count around a circle:
///
///   −∞ … −0 +0 … +∞, NaNs of positive sign, NaNs of negative sign, and −∞ again
///
/// It is cut so that the NaNs are the least of all places for minima, and the greatest for maxima.
template <typename Half, bool kNansAreLeast>
struct HalfPlace {
  using Stored = std::uint16_t;
  using Result = std::uint16_t;
  using Computed = std::int16_t;
  using Pack = Vector<Stored>;
  using Places = Vector<Computed>;

  static Places widen(Pack pack) { return __builtin_bit_cast(Places, inverted(pack) - kCut); }
  static Pack narrow(Places places) {
    const Pack pack = inverted(__builtin_bit_cast(Pack, places) + kCut);
    const auto magnitude = __builtin_bit_cast(Places, pack & kMagnitude);
    return magnitude > static_cast<Computed>(Half::kInfinity) ? Pack{} + Half::kNan : pack;
  }

 private:
  static constexpr std::uint16_t kMagnitude = 0x7fff;
  /// What is to become the least integer: the first NaN, or −∞.
  static constexpr std::uint16_t kFirst =
      static_cast<std::uint16_t>(kNansAreLeast ? Half::kInfinity + 1 : ~Half::kInfinity);
  static constexpr std::uint16_t kCut = kFirst ^ 0x8000;

  /// All bits but the sign, where that is set; its own inverse.
  static Pack inverted(Pack pack) {
    const Places all = __builtin_bit_cast(Places, pack) >> 15;  // the sign in all bits
    return pack ^ (__builtin_bit_cast(Pack, all) >> 1);
  }
};

/// Operands of one sort, results of another that is combined in the same type.
template <typename Operand, typename To>
struct Between {
  using Stored = typename Operand::Stored;
  using Result = typename To::Result;
  using Computed = typename Operand::Computed;
  static Vector<Computed> widen(Vector<Stored, kPackBytes / sizeof(Computed) * sizeof(Stored)> pack) {
    return Operand::widen(pack);
  }
  static auto narrow(Vector<Computed> pack) { return To::narrow(pack); }
};

template <typename T>
constexpr bool kIsFloat = static_cast<T>(0.5) != T{};

// Integers are added and multiplied unsigned, for which overflow is defined. Of floats it is the bits.
template <typename T>
struct Unsigned;
template <>
struct Unsigned<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct Unsigned<std::int64_t> {
  using type = std::uint64_t;
};
template <>
struct Unsigned<float> {
  using type = std::uint32_t;
};
template <>
struct Unsigned<double> {
  using type = std::uint64_t;
};
template <typename T>
using UnsignedPack = Vector<typename Unsigned<T>::type>;

/// An operation combines packs by apply(). Each operand passes through enter() before, and the result through
/// leave() afterwards.
struct ElementOperation {
  template <typename T>
  static Vector<T> enter(Vector<T> operand) {
    return operand;
  }
  template <typename T>
  static Vector<T> leave(Vector<T> result) {
    return result;
  }
};

struct Add : ElementOperation {
  static constexpr bool kDivides = true;  // avg
  template <typename T>
  static Vector<T> apply(Vector<T> a, Vector<T> b) {
    if constexpr (kIsFloat<T>) {
      return a + b;
    } else {
      using U = UnsignedPack<T>;
      return __builtin_bit_cast(Vector<T>, __builtin_bit_cast(U, a) + __builtin_bit_cast(U, b));
    }
  }
};

struct Multiply : ElementOperation {
  static constexpr bool kDivides = false;
  template <typename T>
  static Vector<T> apply(Vector<T> a, Vector<T> b) {
    if constexpr (kIsFloat<T>) {
      return a * b;
    } else {
      using U = UnsignedPack<T>;
      return __builtin_bit_cast(Vector<T>, __builtin_bit_cast(U, a) * __builtin_bit_cast(U, b));
    }
  }
};

struct Least : ElementOperation {
  static constexpr bool kDivides = false;
  /// Of floats the minimum in either order of the operands, joined bit by bit. The two differ only for zeros
  /// of both signs, which together make −0, and where an operand is a NaN. One of the two is then that NaN,
  /// and stays a NaN whatever bits are joined to it.
  template <typename T>
  static Vector<T> apply(Vector<T> a, Vector<T> b) {
    const Vector<T> least = b < a ? b : a;
    if constexpr (kIsFloat<T>) {
      using U = UnsignedPack<T>;
      const Vector<T> other_way = a < b ? a : b;
      return __builtin_bit_cast(Vector<T>, __builtin_bit_cast(U, least) | __builtin_bit_cast(U, other_way));
    } else {
      return least;
    }
  }
};

/// Of floats, the least with all signs changed.
struct Greatest : ElementOperation {
  static constexpr bool kDivides = false;
  template <typename T>
  static Vector<T> enter(Vector<T> operand) {
    return with_other_sign<T>(operand);
  }
  template <typename T>
  static Vector<T> apply(Vector<T> a, Vector<T> b) {
    if constexpr (kIsFloat<T>) {
      return Least::apply<T>(a, b);
    } else {
      return a < b ? b : a;
    }
  }
  template <typename T>
  static Vector<T> leave(Vector<T> result) {
    return with_other_sign<T>(result);
  }

 private:
  template <typename T>
  static Vector<T> with_other_sign(Vector<T> pack) {
    if constexpr (kIsFloat<T>) {
      using U = typename Unsigned<T>::type;
      constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
      return __builtin_bit_cast(Vector<T>, __builtin_bit_cast(UnsignedPack<T>, pack) ^ kSign);
    } else {
      return pack;
    }
  }
};

// memcpy because a byte buffer may have any alignment; compilers make it a plain vector load.
template <typename Pack>
Pack load(const std::byte* from) {
  Pack pack;
  __builtin_memcpy(&pack, from, sizeof pack);
  return pack;
}

template <typename Pack>
void store(std::byte* to, Pack pack) {
  __builtin_memcpy(to, &pack, sizeof pack);
}

constexpr std::size_t kLine = 64;

constexpr std::size_t lesser(std::size_t a, std::size_t b) { return b < a ? b : a; }

/// The bytes from an address to the next cache line.
inline std::size_t to_next_line(const std::byte* address) {
  return -reinterpret_cast<std::uintptr_t>(address) % kLine;
}

/// Asks for the lines of so many bytes, into the second-level cache; nothing comes of addresses that are
/// none.
inline void fetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(from + i, 0, 2);
}

/// Stores a pack, past the caches where the processor can, to a multiple of the pack's size.
template <typename Pack>
void stream_pack(std::byte* to, Pack pack) {
#if defined(__x86_64__)
  if constexpr (sizeof pack == 8) {
    _mm_stream_si64(reinterpret_cast<long long*>(to), __builtin_bit_cast(long long, pack));
  } else if constexpr (sizeof pack == 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, pack));
#if defined(__AVX2__)
  } else if constexpr (sizeof pack == 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, pack));
#endif
#if defined(__AVX512F__)
  } else if constexpr (sizeof pack == 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, pack));
#endif
  }
#else
  store(to, pack);
#endif
}

/// Streaming stores are ordered with nothing; after this, all that went before is seen first.
inline void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace polyring
