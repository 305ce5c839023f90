/* Dense layers of floats as plain loops. */
#include "engine.h"
#include "dense.h"

void prepare(const uint8_t row[INPUTS], void *input)
{
    float *x = input;
    for (int i = 0; i < INPUTS; i++)
        x[i] = row[i];
}

int predict(const void *input)
{
    const float *x = input;
    float h[HIDDEN], y[OUTPUTS];
    for (int j = 0; j < HIDDEN; j++) {
        float sum = 0;
        for (int i = 0; i < INPUTS; i++)
            sum += x[i] * F1[j][i];
        h[j] = sum > 0 ? sum : 0;
    }
    for (int k = 0; k < OUTPUTS; k++) {
        float sum = 0;
        for (int j = 0; j < HIDDEN; j++)
            sum += h[j] * F2[k][j];
        y[k] = sum;
    }
    int best = 0;
    for (int k = 1; k < OUTPUTS; k++)
        if (y[k] > y[best])
            best = k;
    return best;
}
