"""Processor instructions that Numba has no name for: counting bits, prefetching, and packing 16 numbers by a mask.

With AVX-512, `expand16` and `compress16` are one instruction each; elsewhere, and as plain Python, they are loops.
"""

import numpy as np
from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_FLOAT, _BIT, _INT16, _INT32, _INT64 = ir.FloatType(), ir.IntType(1), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOATS, _MASK = ir.VectorType(_FLOAT, 16), ir.VectorType(_BIT, 16)
_ZEROS = ir.Constant(_FLOATS, [0.0] * 16)


def _has_vectors() -> bool:
    """Whether the code that Numba compiles may use AVX-512."""
    if config.DISABLE_JIT:
        return False
    if config.CPU_NAME or config.CPU_FEATURES:
        return "+avx512f" in (config.CPU_FEATURES or "")
    return bool(binding.get_host_cpu_features().get("avx512f", False))


PACKS_BY_VECTOR = _has_vectors()
"""Whether `expand16` and `compress16` are single instructions."""


@njit(cache=True, nogil=True, inline="always")
def _expand16_in_a_loop(values, first, mask, out, at):
    for j in range(16):
        out[at + j] = np.float32(0.0)
    while mask:
        out[at + lowest_bit(mask)] = values[first]
        first += 1
        mask &= mask - 1


@njit(cache=True, nogil=True, inline="always")
def _compress16_in_a_loop(w, at, smallest, out, first):
    mask = 0
    for j in range(16):
        is_kept = np.int64(abs(w[at + j]) > smallest)
        out[first] = w[at + j]
        first += is_kept
        mask |= is_kept << j
    return mask


def _address(context, builder, type_, array, index):
    return builder.gep(context.make_array(type_)(context, builder, array).data, [index])


def _load16(builder, address):
    return builder.load(builder.bitcast(address, _FLOATS.as_pointer()), align=4)


def _store16(builder, numbers, address):
    builder.store(numbers, builder.bitcast(address, _FLOATS.as_pointer()), align=4)


def _declare(builder, name, result, *arguments):
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


@intrinsic
def _popcount(typing, mask):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic
def _lowest_bit(typing, mask):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], _BIT(1))

    return types.int64(types.int64), generate


@intrinsic
def _prefetch(typing, array, index):
    def generate(context, builder, signature, arguments):
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), ir.IntType(8).as_pointer())
        prefetch = _declare(
            builder, "llvm.prefetch.p0", ir.VoidType(), ir.IntType(8).as_pointer(), _INT32, _INT32, _INT32
        )
        read, into_second_level_cache, data = _INT32(0), _INT32(2), _INT32(1)
        builder.call(prefetch, [address, read, into_second_level_cache, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _expand16(typing, values, first, mask, out, at):
    def generate(context, builder, signature, arguments):
        packed = _load16(builder, _address(context, builder, signature.args[0], *arguments[:2]))
        # an empty instruction keeps the numbers in a register: the form that reads memory is many times slower
        packed = builder.asm(ir.FunctionType(_FLOATS, [_FLOATS]), "", "=v,0", [packed], False)
        mask = builder.bitcast(builder.trunc(arguments[2], _INT16), _MASK)
        expand = _declare(builder, "llvm.x86.avx512.mask.expand.v16f32", _FLOATS, _FLOATS, _FLOATS, _MASK)
        numbers = builder.call(expand, [packed, _ZEROS, mask])
        _store16(builder, numbers, _address(context, builder, signature.args[3], *arguments[3:]))
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64, out, types.int64), generate


@intrinsic
def _compress16(typing, w, at, smallest, out, first):
    def generate(context, builder, signature, arguments):
        numbers = _load16(builder, _address(context, builder, signature.args[0], *arguments[:2]))
        one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), arguments[2], _INT32(0))
        limit = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT32, 16), [0] * 16))
        size = builder.call(_declare(builder, "llvm.fabs.v16f32", _FLOATS, _FLOATS), [numbers])
        mask = builder.fcmp_ordered(">", size, limit)
        compress = _declare(builder, "llvm.x86.avx512.mask.compress.v16f32", _FLOATS, _FLOATS, _FLOATS, _MASK)
        packed = builder.call(compress, [numbers, _ZEROS, mask])
        _store16(builder, packed, _address(context, builder, signature.args[3], *arguments[3:]))
        return builder.zext(builder.bitcast(mask, _INT16), _INT64)

    return types.int64(w, types.int64, types.float32, out, types.int64), generate


if config.DISABLE_JIT:

    def popcount(mask):
        """The number of bits set in `mask`."""
        return int(mask).bit_count()

    def lowest_bit(mask):
        """The place of the lowest bit set in `mask`, which is not 0."""
        return (int(mask) & -int(mask)).bit_length() - 1

    def prefetch(array, index):
        """Start to load the cache line of array[index]."""

else:
    popcount, lowest_bit, prefetch = _popcount, _lowest_bit, _prefetch


@njit(cache=True, nogil=True)
def expand16(values, first, mask, out, at):
    """out[at:at + 16] = the next numbers of values[first:] where `mask` has a bit, 0 elsewhere.

    With AVX-512, 16 numbers from values[first] on are read.
    """
    if PACKS_BY_VECTOR:
        _expand16(values, first, mask, out, at)
    else:
        _expand16_in_a_loop(values, first, mask, out, at)


@njit(cache=True, nogil=True)
def compress16(w, at, smallest, out, first):
    """Write the numbers of w[at:at + 16] above `smallest` in size to out[first:]; returns their mask.

    16 numbers from out[first] on may change.
    """
    if PACKS_BY_VECTOR:
        return _compress16(w, at, smallest, out, first)
    return _compress16_in_a_loop(w, at, smallest, out, first)
