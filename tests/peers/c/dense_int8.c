/* Dense layers of 8-bit weights as plain loops: bytes in and out of hidden neurons, sums at the end. */
#include "engine.h"
#include "dense.h"

void prepare(const uint8_t row[INPUTS], void *input)
{
    uint8_t *x = input;
    for (int i = 0; i < INPUTS; i++)
        x[i] = row[i];
}

/* A sum in units of the next layer, rounded twice as TensorFlow Lite does it. */
static int32_t requantise(int32_t sum, int32_t multiplier, int shift)
{
    const int32_t high = (int32_t)(((int64_t)sum * multiplier + (1ll << 30)) >> 31);
    const int32_t mask = (1 << shift) - 1, rest = high & mask;
    return (high >> shift) + (rest > (mask >> 1) + (high < 0));
}

int predict(const void *input)
{
    const uint8_t *x = input;
    uint8_t h[HIDDEN];
    int32_t y[OUTPUTS];
    for (int j = 0; j < HIDDEN; j++) {
        int32_t sum = 0;
        for (int i = 0; i < INPUTS; i++)
            sum += (int32_t)x[i] * W1[j][i];
        sum = requantise(sum, MULTIPLIER_1, SHIFT_1);
        h[j] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
    for (int k = 0; k < OUTPUTS; k++) {
        int32_t sum = 0;
        for (int j = 0; j < HIDDEN; j++)
            sum += (int32_t)h[j] * W2[k][j];
        y[k] = sum;
    }
    int best = 0;
    for (int k = 1; k < OUTPUTS; k++)
        if (y[k] > y[best])
            best = k;
    return best;
}
