"""Brings a dense network from a safetensors file to every engine: tables in C and Rust, TensorFlow Lite, emlearn.

usage: dense.py FOLDER        (FOLDER/dense.safetensors and the rows of data.py)

Writes dense.h, dense.rs, dense.tflite, emlearn_*.h and the classes that the host gives: dense_f32.txt (in double precision),
dense_sums.txt (integers up to the last sums), dense_int8.txt (with outputs of 8 bits). choose.py asks for its accuracy.

Integers are those of TensorFlow Lite with one scale for a layer: weights without a zero point, input and hidden bytes less
128, scales of activations from all rows of training.
"""
import json
import os
import struct
import sys

import numpy as np


def weights(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + length])
    layers = []
    for name in sorted(name for name in head if name != "__metadata__"):
        start, end = head[name]["data_offsets"]
        layers.append(np.frombuffer(data[8 + length + start : 8 + length + end], "<f4").reshape(head[name]["shape"]))
    first, last = layers
    return first, last


def multiplier(real):
    """real = multiplier / 2^31 * 2^-shift, multiplier in [2^30, 2^31)."""
    mantissa, exponent = np.frexp(real)
    whole = int(round(float(mantissa) * 2**31))
    if whole == 2**31:
        whole, exponent = whole // 2, exponent + 1
    shift = -int(exponent)
    assert 0 <= shift < 31, f"a factor of {real} is out of the range of these engines"
    return whole, shift


def requantise(sums, whole, shift):
    high = (sums.astype(np.int64) * whole + (1 << 30)) >> 31
    mask = (1 << shift) - 1
    return (high >> shift) + ((high & mask) > (mask >> 1) + (high < 0))


class Integers:
    def __init__(self, first, last, train):
        hidden = np.maximum(train.astype(np.float32) @ first.T, 0)
        self.s1, self.s2 = np.abs(first).max() / 127, np.abs(last).max() / 127
        self.sh, self.so = hidden.max() / 255, np.abs(hidden @ last.T).max() / 127
        self.w1 = np.round(first / self.s1).astype(np.int8)
        self.w2 = np.round(last / self.s2).astype(np.int8)
        self.m1 = multiplier(self.s1 / self.sh)
        self.m2 = multiplier(self.sh * self.s2 / self.so)

    def sums(self, x):
        # Products of bytes add up to less than 2^53, so doubles are exact.
        first = (x.astype(np.float64) @ self.w1.T.astype(np.float64)).astype(np.int64)
        hidden = np.clip(requantise(first, *self.m1), 0, 255)
        return hidden @ self.w2.T.astype(np.int64)

    def outputs(self, x):
        return np.clip(requantise(self.sums(x), *self.m2), -128, 127)


def table(values, number):
    lines = np.array_split(values, -(-len(values) // 16))
    return ",\n".join("    " + ", ".join(number(v) for v in line) for line in lines)


def matrix(values, number, brackets):
    left, right = brackets
    return left + "\n" + ",\n".join(left + "\n" + table(row, number) + "\n" + right for row in values) + "\n" + right


def tables(work, first, last, q):
    float_text = lambda v: repr(float(v)) + ("" if "." in repr(float(v)) or "e" in repr(float(v)) else ".0")
    whole = lambda v: str(int(v))
    names = [("W1", "i8", q.w1, whole), ("W2", "i8", q.w2, whole)]
    names += [("F1", "f32", first, float_text), ("F2", "f32", last, float_text)]
    numbers = [("INPUTS", "usize", first.shape[1]), ("MULTIPLIER_1", "i32", q.m1[0]), ("SHIFT_1", "u32", q.m1[1]), ("MULTIPLIER_2", "i32", q.m2[0]),
               ("SHIFT_2", "u32", q.m2[1]), ("HIDDEN", "usize", len(first)), ("OUTPUTS", "usize", len(last))]
    ctypes = {"i8": "int8_t", "f32": "float"}
    with open(f"{work}/dense.h", "w") as c, open(f"{work}/dense.rs", "w") as rust:
        print("#ifndef DENSE_H\n#define DENSE_H\n#include <stdint.h>", file=c)
        for name, kind, value in numbers:
            print(f"#define {name} {value}", file=c)
            print(f"pub const {name}: {kind} = {value};", file=rust)
        for name, kind, values, number in names:
            m, n = values.shape
            suffix = (lambda v: number(v) + "f") if kind == "f32" else number
            print(f"static const {ctypes[kind]} {name}[{m}][{n}] = {matrix(values, suffix, '{}')};", file=c)
            print(f"pub static {name}: [[{kind}; {n}]; {m}] = {matrix(values, number, '[]')};", file=rust)
        print("#endif", file=c)


def tflite(path, q):
    import flatbuffers
    import tflite as t

    b = flatbuffers.Builder(1 << 16)

    def vector(start, values, prepend):
        start(b, len(values))
        for value in reversed(values):
            prepend(value)
        return b.EndVector()

    def quantisation(scale, zero):
        scales = vector(t.QuantizationParametersStartScaleVector, [float(scale)], b.PrependFloat32)
        zeros = vector(t.QuantizationParametersStartZeroPointVector, [int(zero)], b.PrependInt64)
        t.QuantizationParametersStart(b)
        t.QuantizationParametersAddScale(b, scales)
        t.QuantizationParametersAddZeroPoint(b, zeros)
        return t.QuantizationParametersEnd(b)

    m, outputs = len(q.w1), len(q.w2)
    contents = [b"", q.w1.tobytes(), np.zeros(m, "<i4").tobytes(), q.w2.tobytes(), np.zeros(outputs, "<i4").tobytes()]
    buffers = []
    for content in contents:
        data = b.CreateNumpyVector(np.frombuffer(content, np.uint8)) if content else None
        t.BufferStart(b)
        if data is not None:
            t.BufferAddData(b, data)
        buffers.append(t.BufferEnd(b))
    int8, int32 = t.TensorType.INT8, t.TensorType.INT32
    tensors = []
    for name, shape, kind, buffer, scale, zero in [
        ("input", [1, q.w1.shape[1]], int8, 0, 1.0, -128),
        ("w1", [m, q.w1.shape[1]], int8, 1, q.s1, 0),
        ("b1", [m], int32, 2, q.s1, 0),
        ("hidden", [1, m], int8, 0, q.sh, -128),
        ("w2", [outputs, m], int8, 3, q.s2, 0),
        ("b2", [outputs], int32, 4, q.sh * q.s2, 0),
        ("output", [1, outputs], int8, 0, q.so, 0),
    ]:
        text, how = b.CreateString(name), quantisation(scale, zero)
        dims = vector(t.TensorStartShapeVector, shape, b.PrependInt32)
        t.TensorStart(b)
        t.TensorAddName(b, text)
        t.TensorAddShape(b, dims)
        t.TensorAddType(b, kind)
        t.TensorAddBuffer(b, buffer)
        t.TensorAddQuantization(b, how)
        tensors.append(t.TensorEnd(b))
    operators = []
    relu, none = t.ActivationFunctionType.RELU, t.ActivationFunctionType.NONE
    for inputs, output, activation in [([0, 1, 2], 3, relu), ([3, 4, 5], 6, none)]:
        takes = vector(t.OperatorStartInputsVector, inputs, b.PrependInt32)
        gives = vector(t.OperatorStartOutputsVector, [output], b.PrependInt32)
        t.FullyConnectedOptionsStart(b)
        t.FullyConnectedOptionsAddFusedActivationFunction(b, activation)
        options = t.FullyConnectedOptionsEnd(b)
        t.OperatorStart(b)
        t.OperatorAddOpcodeIndex(b, 0)
        t.OperatorAddInputs(b, takes)
        t.OperatorAddOutputs(b, gives)
        t.OperatorAddBuiltinOptionsType(b, t.BuiltinOptions.FullyConnectedOptions)
        t.OperatorAddBuiltinOptions(b, options)
        operators.append(t.OperatorEnd(b))
    of_tensors = vector(t.SubGraphStartTensorsVector, tensors, b.PrependUOffsetTRelative)
    of_operators = vector(t.SubGraphStartOperatorsVector, operators, b.PrependUOffsetTRelative)
    takes = vector(t.SubGraphStartInputsVector, [0], b.PrependInt32)
    gives = vector(t.SubGraphStartOutputsVector, [6], b.PrependInt32)
    t.SubGraphStart(b)
    t.SubGraphAddTensors(b, of_tensors)
    t.SubGraphAddInputs(b, takes)
    t.SubGraphAddOutputs(b, gives)
    t.SubGraphAddOperators(b, of_operators)
    graphs = vector(t.ModelStartSubgraphsVector, [t.SubGraphEnd(b)], b.PrependUOffsetTRelative)
    t.OperatorCodeStart(b)
    t.OperatorCodeAddDeprecatedBuiltinCode(b, t.BuiltinOperator.FULLY_CONNECTED)
    t.OperatorCodeAddBuiltinCode(b, t.BuiltinOperator.FULLY_CONNECTED)
    codes = vector(t.ModelStartOperatorCodesVector, [t.OperatorCodeEnd(b)], b.PrependUOffsetTRelative)
    of_buffers = vector(t.ModelStartBuffersVector, buffers, b.PrependUOffsetTRelative)
    t.ModelStart(b)
    t.ModelAddVersion(b, 3)
    t.ModelAddOperatorCodes(b, codes)
    t.ModelAddSubgraphs(b, graphs)
    t.ModelAddBuffers(b, of_buffers)
    b.Finish(t.ModelEnd(b), b"TFL3")
    open(path, "wb").write(b.Output())


def emlearn(work, first, last):
    """The code of both of its ways. What it predicts on the host comes from the same code, by host.c."""
    from emlearn import net

    # Six digits behind the point are what it writes of a weight, so it gets inputs of 0 to 1, and larger weights.
    matrices, biases = [255 * first.T, last.T.copy()], [np.zeros(len(first)), np.zeros(len(last))]
    # It compiles in a folder of its own beside the current one.
    os.chdir(work)
    for way in ["loadable", "inline"]:
        path = f"{work}/emlearn_{way}.h"
        if os.path.exists(path):
            os.remove(path)
        try:
            net.Wrapper(["relu", "identity"], matrices, biases, classifier=way).save(name="net", file=path, inference=[way])
        except Exception as error:
            reason = f"its generator fails: {type(error).__name__}: {error}"
            open(f"{work}/skipped.txt", "a").write(f"emlearn, f32, {way}|{reason}\n")
            print(f"emlearn, {way}: {reason}", file=sys.stderr)


def write(path, classes):
    open(path, "w").write("".join(str(int(c)) for c in classes))


def floats(first, last, x):
    return (np.maximum(x.astype(np.float64) @ first.T.astype(np.float64), 0) @ last.T.astype(np.float64)).argmax(1)


def score(file, folder, part):
    """Accuracy with floats and with 8-bit integers."""
    first, last = weights(file)
    x, y = np.load(f"{folder}/{part}_x.npy"), np.load(f"{folder}/{part}_y.npy")
    q = Integers(first, last, np.load(f"{folder}/train_x.npy"))
    return [float((floats(first, last, x) == y).mean()), float((q.outputs(x).argmax(1) == y).mean())]


def main(folder):
    first, last = weights(f"{folder}/dense.safetensors")
    q = Integers(first, last, np.load(f"{folder}/train_x.npy"))
    test = np.load(f"{folder}/test_x.npy")
    tables(folder, first, last, q)
    tflite(f"{folder}/dense.tflite", q)
    sums, outputs = q.sums(test).argmax(1), q.outputs(test).argmax(1)
    for name, classes in [("dense_f32", floats(first, last, test)), ("dense_sums", sums), ("dense_int8", outputs)]:
        write(f"{folder}/{name}.txt", classes)
    emlearn(folder, first, last)


if __name__ == "__main__":
    main(*sys.argv[1:])
