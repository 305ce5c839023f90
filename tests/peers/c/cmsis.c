/* CMSIS-NN: arm_fully_connected_s8 twice. The offsets are those of TensorFlow Lite: bytes less 128. */
#include "engine.h"
#include "dense.h"
#include "arm_nnfunctions.h"

void prepare(const uint8_t row[INPUTS], void *input)
{
    int8_t *x = input;
    for (int i = 0; i < INPUTS; i++)
        x[i] = (int8_t)(row[i] - 128);
}

static void layer(const int8_t *x, const int8_t *w, int inputs, int outputs, int32_t multiplier, int shift, int zero,
                  int8_t *y)
{
    const cmsis_nn_context context = {0, 0};
    const cmsis_nn_fc_params params = {128, 0, zero, {-128, 127}};
    const cmsis_nn_per_tensor_quant_params quant = {multiplier, -shift};
    const cmsis_nn_dims in = {1, 1, 1, inputs}, filter = {inputs, 1, 1, outputs}, out = {1, 1, 1, outputs};
    arm_fully_connected_s8(&context, &params, &quant, &in, x, &filter, w, &out, 0, &out, y);
}

int predict(const void *input)
{
    int8_t h[HIDDEN], y[OUTPUTS];
    layer(input, W1[0], INPUTS, HIDDEN, MULTIPLIER_1, SHIFT_1, -128, h);
    layer(h, W2[0], HIDDEN, OUTPUTS, MULTIPLIER_2, SHIFT_2, 0, y);
    int best = 0;
    for (int k = 1; k < OUTPUTS; k++)
        if (y[k] > y[best])
            best = k;
    return best;
}
