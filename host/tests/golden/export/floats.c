/*
 * A model of floats: 20 inputs, 1 output, 20 weights, checksum 1332d866.
 *
 * Exported by tamis: export it again rather than edit it. C99, without libraries and without a heap.
 */
#include "floats.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

static const uint16_t counts_1[5] = {
    4, 4, 4, 4, 4,
};
static const uint16_t columns_1[20] = {
    0, 9, 14, 19, 0, 8, 13, 16, 4, 7, 12, 17, 3, 9, 14, 16, 4, 9, 12, 19,
};
static const float values_1[20] = {
    -0.7837838f, -2.7297297f, 3.0f, -0.6216216f, -0.6216216f, 1.6756756f, 1.081081f, -1.2432432f,
    1.945946f, -0.5135135f, 2.7027028f, 2.0270271f, 1.2432432f, 3.2702703f, -1.8108108f, -2.108108f,
    -3.108108f, 3.2162163f, -0.6756757f, 3.108108f,
};
static const uint32_t signs_2[1] = {
    9u,
};

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define ALONE __attribute__((noipa))
#elif defined(__GNUC__)
#define ALONE __attribute__((noinline))
#else
#define ALONE
#endif

ALONE static void rows(const float *x, const uint16_t *counts, const uint16_t *columns, const float *values,
                       float *y, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        float sum = 0.0f;
        for (uint32_t n = counts[j]; n > 0; n--) {
            sum += *values++ * x[*columns++];
        }
        y[j] = sum;
    }
}

static void relu(float *y, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        y[j] = y[j] <= 0.0f ? 0.0f : y[j];
    }
}

static float signed_sum(const uint32_t *signs, const float *x, uint32_t n)
{
    float total = 0.0f;
    for (uint32_t j = 0; j < n; j++) {
        total = (signs[j / 32] >> (j % 32) & 1u) != 0 ? total - x[j] : total + x[j];
    }
    return total;
}

void tiny_predict(const float x[TINY_INPUTS], float y[TINY_OUTPUTS])
{
    float h_1[5];
    rows(x, counts_1, columns_1, values_1, h_1, 5);
    relu(h_1, 5);
    y[0] = signed_sum(signs_2, h_1, 5);
}

uint32_t tiny_classify(const float x[TINY_INPUTS])
{
    float y[TINY_OUTPUTS];
    tiny_predict(x, y);
    return y[0] >= TINY_THRESHOLD ? 1u : 0u;
}
