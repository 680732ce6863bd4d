"""Processor instructions that Numba has no name for: counting bits, prefetching, and packing 16 numbers by a mask.

With AVX-512, `expand16` and `compress16` are about one instruction each. Without it, and as plain Python, 16 numbers
are stored with their zeros unless all are zero.
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


IS_PYTHON = bool(config.DISABLE_JIT)
"""Whether the kernels run as plain Python."""
PACKS_BY_VECTOR = _has_vectors()
"""Whether `expand16` and `compress16` are single instructions."""


@njit(cache=True, nogil=True, inline="always")
def soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def _expand16_whole(values, first, mask, s, out, at):
    first, at = np.uint64(first), np.uint64(at)  # unsigned: no check for negative indices in the loops
    if mask:
        for j in range(np.uint64(16)):
            out[at + j] = soft(values[first + j], s)
    else:
        for j in range(np.uint64(16)):
            out[at + j] = np.float32(0.0)


@njit(cache=True, nogil=True)
def _compress16_whole(w, at, s, smallest, now, out, first):
    first, at, count = np.uint64(first), np.uint64(at), 0
    for j in range(np.uint64(16)):
        z = w[at + j] + np.copysign(s, w[at + j])
        is_kept = abs(z) > smallest
        count += is_kept
        out[first + j] = z if is_kept else np.float32(0.0)
        w[at + j] = soft(z, now)
    return (count << 16) + 0xFFFF if count else 0


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
        byte = ir.IntType(8).as_pointer()
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), byte)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), (byte, _INT32, _INT32, _INT32))
        )
        read, into_second_level_cache, data = _INT32(0), _INT32(2), _INT32(1)
        builder.call(prefetch, [address, read, into_second_level_cache, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _repeat16(builder, number):
    one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), number, _INT32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT32, 16), [0] * 16))


def _soft16(builder, z, s):
    limit = _repeat16(builder, s)
    below = builder.fneg(limit)
    clipped = builder.select(builder.fcmp_ordered(">", z, below), z, below)
    return builder.fsub(z, builder.select(builder.fcmp_ordered("<", clipped, limit), clipped, limit))


@intrinsic
def _expand16(typing, values, first, mask, s, out, at):
    def generate(context, builder, signature, arguments):
        packed = _load16(builder, _address(context, builder, signature.args[0], *arguments[:2]))
        if PACKS_BY_VECTOR:
            # an empty instruction keeps the numbers in a register: the form that reads memory is many times slower
            packed = builder.asm(ir.FunctionType(_FLOATS, [_FLOATS]), "", "=v,0", [packed], False)
            mask = builder.bitcast(builder.trunc(arguments[2], _INT16), _MASK)
            expand = _declare(builder, "llvm.x86.avx512.mask.expand.v16f32", _FLOATS, _FLOATS, _FLOATS, _MASK)
            numbers = builder.call(expand, [packed, _ZEROS, mask])
        else:
            numbers = builder.select(builder.icmp_signed("!=", arguments[2], _INT64(0)), packed, _ZEROS)
        numbers = _soft16(builder, numbers, arguments[3])
        _store16(builder, numbers, _address(context, builder, signature.args[4], *arguments[4:]))
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64, types.float32, out, types.int64), generate


@intrinsic
def _compress16(typing, w, at, s, smallest, now, out, first):
    def generate(context, builder, signature, arguments):
        place = _address(context, builder, signature.args[0], *arguments[:2])
        numbers = _load16(builder, place)
        s, smallest, now = arguments[2:5]
        copysign = _declare(builder, "llvm.copysign.v16f32", _FLOATS, _FLOATS, _FLOATS)
        z = builder.fadd(numbers, builder.call(copysign, [_repeat16(builder, s), numbers]))
        size = builder.call(_declare(builder, "llvm.fabs.v16f32", _FLOATS, _FLOATS), [z])
        mask = builder.fcmp_ordered(">", size, _repeat16(builder, smallest))
        if PACKS_BY_VECTOR:
            compress = _declare(builder, "llvm.x86.avx512.mask.compress.v16f32", _FLOATS, _FLOATS, _FLOATS, _MASK)
            packed = builder.call(compress, [z, _ZEROS, mask])
        else:
            packed = builder.select(mask, z, _ZEROS)
        _store16(builder, packed, _address(context, builder, signature.args[5], *arguments[5:]))
        _store16(builder, _soft16(builder, z, now), place)
        return builder.zext(builder.bitcast(mask, _INT16), _INT64)

    number = types.float32
    return types.int64(w, types.int64, number, number, number, out, types.int64), generate


if IS_PYTHON:

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
def expand16(values, first, mask, s, out, at):
    """out[at:at + 16] = soft(the next numbers of values[first:], s) where `mask` has a bit, 0 elsewhere.

    16 numbers from values[first] on are read. `mask` is one that `compress16` returned.
    """
    if IS_PYTHON:
        _expand16_whole(values, first, mask, s, out, at)
    else:
        _expand16(values, first, mask, s, out, at)


@njit(cache=True, nogil=True)
def compress16(w, at, s, smallest, now, out, first):
    """With z = v + sign(v) · s for the numbers v of w[at:at + 16]: write the z above `smallest` in size to out[first:].

    The numbers become soft(z, now). Returns the mask of what was written, and from bit 16 on how many are not zero; 16
    numbers from out[first] on may change.
    """
    if IS_PYTHON:
        return _compress16_whole(w, at, s, smallest, now, out, first)
    mask = _compress16(w, at, s, smallest, now, out, first)
    if PACKS_BY_VECTOR or mask == 0:
        return mask + (popcount(mask) << 16)
    return 0xFFFF + (popcount(mask) << 16)
